import type { Client } from 'pg';
import { DAY_MS, HOUR_MS, leastIdAt, partitionOf } from './invocation-days.js';
import type { LogPartition } from './log-partitions.js';

/** A row of a closed hour may come so late and still be there when the index is built; later ones are added to it. */
const HOUR_GRACE_MS = 60_000;

/** A day is closed this long after its end: what waited in a queue is in it by then. */
export const DAY_GRACE_MS = HOUR_MS;

/** Smaller days are read through faster than any index is built. */
const SMALL_BYTES = 16 * 1024 * 1024;

/** An index that search needs. */
interface WantedIndex {
  name: string;
  table: string;
  /** Of which rows; all without it. */
  where: string;
}

/** The index over a whole day. */
export function dayIndexOf(day: string): string {
  return `${partitionOf(day)}_search`;
}

function hourIndexOf(day: string, hour: number): string {
  return `${partitionOf(day)}_h${String(hour).padStart(2, '0')}_search`;
}

/**
 * The indexes a day should have now. Trigrams cost an insert more than everything else together, so no row meets such an
 * index on its way in: each past hour of the open day gets one of its own, and a closed day one over all of it.
 */
export function wantedIndexes({ name: table, day, bytes }: LogPartition, now: number): WantedIndex[] {
  const start = Date.parse(day);
  if (start + DAY_MS + DAY_GRACE_MS <= now) return [{ name: dayIndexOf(day), table, where: '' }];
  const wanted: WantedIndex[] = [];
  for (let hour = 0; hour < 24 && bytes >= SMALL_BYTES; hour += 1) {
    const [from, to] = [start + hour * HOUR_MS, start + (hour + 1) * HOUR_MS];
    if (to + HOUR_GRACE_MS > now) break;
    const where = `WHERE id >= '${leastIdAt(from)}' AND id < '${leastIdAt(to)}'`;
    wanted.push({ name: hourIndexOf(day, hour), table, where });
  }
  return wanted;
}

/** How much of the memory of the machine one build may take, and that it takes one core. */
const BUILD_SETTINGS = `SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0`;

const EXISTING = `
  SELECT c.relname AS name, i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
   WHERE i.indrelid = $1::regclass AND c.relname LIKE '%\\_search'`;

/**
 * Brings the indexes of a day to what it should have. Ingestion goes on meanwhile. What a build that was cut off left
 * behind is dropped and built anew, and hours go once their day has an index.
 *
 * @param client a connection of its own, without a time limit for statements
 * @returns how many were built
 */
export async function buildIndexes(partition: LogPartition, client: Client, now: number): Promise<number> {
  const { rows: existing } = await client.query<{ name: string; valid: boolean }>(EXISTING, [partition.name]);
  const wanted = wantedIndexes(partition, now);
  const valid = new Set(existing.filter((index) => index.valid).map(({ name }) => name));
  for (const { name } of existing.filter((index) => !index.valid))
    await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  const missing = wanted.filter(({ name }) => !valid.has(name));
  if (missing.length > 0) await client.query(BUILD_SETTINGS);
  for (const { name, table, where } of missing) {
    await client.query(
      `CREATE INDEX CONCURRENTLY ${name} ON ${table} USING gin (server_id, search_text gin_trgm_ops) ${where}`,
    );
  }
  // Reads that know of the hours only are over before these go: see searchSlices.
  const surplus = [...valid].filter((name) => wanted.some((index) => index.where === '') && name !== wanted[0]?.name);
  for (const name of surplus) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  // What the planner knows of an open day is as old as its last autovacuum.
  if (missing.length > 0) await client.query(`ANALYZE ${partition.name}`);
  return missing.length;
}
