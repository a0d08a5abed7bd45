import type { Client } from 'pg';
import { DAY_MS, HOUR_MS, leastIdAt } from './invocation-days.js';
import type { LogPartition } from './log-partitions.js';
import { searchIndexName, type SearchIndex } from './search-indexes.js';
import type { IndexedRange } from './search-slices.js';

/** A day is closed so long after its end: what waited in a queue is in it by then. */
export const DAY_GRACE_MS = HOUR_MS;

/** A row may come so late and still be there when the index of its part is built; later ones are added to it. */
const PART_GRACE_MS = 60_000;

/** An open day gets an index for the next part when so many rows have none: reading through so many takes about 50 ms. */
const PART_ROWS = 50_000;

/** And not for less than this share of the day, so that the parts of a busy day stay some dozens. */
const PARTS = 24;

/** Trigrams of text; the server is in it because a word that is common elsewhere would have many hits to throw away. */
const COVERED = 'gin (server_id, search_text gin_trgm_ops)';

/** A build takes one core and so much memory. */
const BUILD_SETTINGS = `SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0`;

/**
 * Brings the indexes of a day to what it should have, while ingestion goes on. Trigrams cost an insert more than everything
 * else together, so no row meets such an index on its way in: the past parts of an open day have one each, and when it is
 * closed one over all of it takes their place. What a build that was cut off left behind is dropped and built anew.
 *
 * @param existing the indexes of this partition
 * @param client a connection of its own, without a time limit for statements
 */
export async function buildIndexes(
  partition: LogPartition,
  existing: SearchIndex[],
  client: Client,
  now: number,
): Promise<void> {
  const invalid = existing.filter(({ isValid }) => !isValid);
  const valid = existing.filter(({ isValid }) => isValid);
  for (const { name } of invalid) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  const start = Date.parse(partition.day);
  const whole = { from: start, to: start + DAY_MS };
  const isClosed = whole.to + DAY_GRACE_MS <= now;
  const wanted = isClosed ? whole : await nextPart(partition, valid, client, now);
  const name = wanted && searchIndexName(partition.day, wanted);
  if (wanted && !valid.some((index) => index.name === name)) {
    const where = isClosed ? '' : `WHERE id >= '${leastIdAt(wanted.from)}' AND id < '${leastIdAt(wanted.to)}'`;
    await client.query(BUILD_SETTINGS);
    await client.query(`CREATE INDEX CONCURRENTLY ${name} ON ${partition.name} USING ${COVERED} ${where}`);
    // Without it the planner knows of an open day what the last autovacuum knew.
    await client.query(`ANALYZE ${partition.name}`);
  }
  if (!isClosed) return;
  for (const part of valid) if (part.name !== name) await client.query(`DROP INDEX CONCURRENTLY ${part.name}`);
}

/** The part of an open day that is next to get an index; null while it has few rows. */
async function nextPart(
  { name, day, rows }: LogPartition,
  parts: IndexedRange[],
  client: Client,
  now: number,
): Promise<IndexedRange | null> {
  const start = Date.parse(day);
  const from = Math.max(start, ...parts.map(({ to }) => to));
  const to = Math.min(start + DAY_MS, now - PART_GRACE_MS);
  if (to <= from) return null;
  const enough = Math.max(PART_ROWS, Math.ceil(rows / PARTS));
  const { rows: counted } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM (SELECT FROM ${name} WHERE id >= $1 AND id < $2 LIMIT $3) AS present`,
    [leastIdAt(from), leastIdAt(to), enough],
  );
  return counted[0].count < enough ? null : { from, to };
}
