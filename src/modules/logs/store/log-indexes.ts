import type { Client } from 'pg';
import { DAY_MS, HOUR_MS, leastIdAt } from './invocation-days.js';
import type { LogPartition } from './log-partitions.js';
import { searchIndexName, type SearchIndex } from './search-indexes.js';
import type { IndexedRange } from './search-ranges.js';

/** A day is closed so long after its end: what waited in a queue is in it by then. */
export const DAY_GRACE_MS = HOUR_MS;

/** A row may come so late and still be there when the index of its part is built; later ones are added to it. */
const PART_GRACE_MS = 60_000;

/** An open day gets an index for the next part when so many rows have none and must be read through. */
const PART_ROWS = 50_000;

/** And not for less than this share of the day: each build reads all of its table. */
const PARTS = 48;

/**
 * A busy day has one index for each of so many blocks of equal length. A common word is found in the newest of them, and
 * the planner looks at every index for every part it reads, so they must be few.
 */
const BLOCKS = 8;
const BUSY_ROWS = 400_000;

/** Trigrams of text; the server is in it because a word that is common elsewhere would have many hits to throw away. */
const COVERED = 'gin (server_id, search_text gin_trgm_ops)';

/** A build takes one core and so much memory. */
const BUILD_SETTINGS = `SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0`;

/**
 * Brings the indexes of a day to what it should have, while ingestion goes on. Trigrams cost an insert more than everything
 * else together, so no row meets such an index on its way in: the past parts of an open day have one each, which one over
 * their block replaces, or, on a day of few rows, one over all of it once it is closed. What a build that was cut off left
 * behind is dropped and built anew.
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
  const lasting = lastingRanges(partition, valid, now);
  for (const range of lasting) if (!valid.some(isSame(range))) await build(partition, range, client);
  const lastsUntil = Math.max(...lasting.map(({ to }) => to));
  const replaced = valid.filter((part) => part.to <= lastsUntil && !lasting.some(isSame(part)));
  for (const { name } of replaced) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  const next = await nextPart(partition, [...valid, ...lasting], client, now);
  if (next) await build(partition, next, client);
}

const isSame = (one: IndexedRange) => (other: IndexedRange) => one.from === other.from && one.to === other.to;

/** What has an index for good, from the beginning of the day on: a closed day of few rows as a whole, else blocks that are over. */
function lastingRanges({ day, rows }: LogPartition, valid: IndexedRange[], now: number): IndexedRange[] {
  const start = Date.parse(day);
  const whole = { from: start, to: start + DAY_MS };
  const isClosed = whole.to + DAY_GRACE_MS <= now;
  if (isClosed && (rows < BUSY_ROWS || valid.some(isSame(whole)))) return [whole];
  if (rows < BUSY_ROWS) return [];
  const blockMs = DAY_MS / BLOCKS;
  return Array.from({ length: BLOCKS }, (_, n) => ({
    from: start + n * blockMs,
    to: start + (n + 1) * blockMs,
  })).filter(({ to }) => to + (to === whole.to ? DAY_GRACE_MS : PART_GRACE_MS) <= now);
}

async function build({ day, name }: LogPartition, range: IndexedRange, client: Client): Promise<void> {
  const isWhole = range.to - range.from === DAY_MS;
  const where = isWhole ? '' : `WHERE id >= '${leastIdAt(range.from)}' AND id < '${leastIdAt(range.to)}'`;
  await client.query(BUILD_SETTINGS);
  await client.query(`CREATE INDEX CONCURRENTLY ${searchIndexName(day, range)} ON ${name} USING ${COVERED} ${where}`);
  // Without it the planner knows of an open day what the last autovacuum knew.
  await client.query(`ANALYZE ${name}`);
}

/** The part of a day that is next to get an index; null while it has few rows, and when all have one. */
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
