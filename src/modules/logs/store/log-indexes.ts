import type { Client } from 'pg';
import { DAY_MS, HOUR_MS } from './invocation-days.js';
import type { LogPartition, PartitionsRepository, SearchIndex } from './partitions.repository.js';
import type { IndexedRange } from './search-ranges.js';

/** Time after the end of a day at which it is closed: jobs that waited in the queue are stored by then. */
export const DAY_GRACE_MS = HOUR_MS;

/** Time after the end of a part at which its index is built; rows that come later are added to the index. */
const PART_GRACE_MS = 60_000;

/** Rows without an index after which the next part of an open day gets one: a search reads them all. */
const PART_ROWS = 50_000;

/** Maximum number of parts of a day, since each build reads the whole table. */
const PARTS = 48;

/** Number of blocks of a busy day, each with one index. Few, because the planner considers each index in each branch. */
const BLOCKS = 8;
const BUSY_ROWS = 400_000;

/**
 * Builds and drops the search indexes of a day while rows are inserted. A trigram index costs an insert more than all else
 * together, so rows are inserted without one: past parts of an open day get one each; an index over their block replaces
 * them, or, on a day with few rows, one over the whole closed day. Indexes left by an interrupted build are built again.
 *
 * @param existing the indexes of this partition
 * @param client not in a transaction and without a time limit for statements
 */
export async function buildIndexes(
  partitions: PartitionsRepository,
  partition: LogPartition,
  existing: SearchIndex[],
  client: Client,
  now: number,
): Promise<void> {
  const invalid = existing.filter(({ isValid }) => !isValid);
  const valid = existing.filter(({ isValid }) => isValid);
  for (const index of invalid) await partitions.dropIndex(index, client);
  const lasting = lastingRanges(partition, valid, now);
  for (const range of lasting) if (!valid.some(isSame(range))) await partitions.buildIndex(partition, range, client);
  const lastsUntil = Math.max(...lasting.map(({ to }) => to));
  const replaced = valid.filter((part) => part.to <= lastsUntil && !lasting.some(isSame(part)));
  for (const index of replaced) await partitions.dropIndex(index, client);
  const next = nextRange(partition, [...valid, ...lasting], now);
  if (!next) return;
  const enough = Math.max(PART_ROWS, Math.ceil(partition.rows / PARTS));
  const count = await partitions.countRows(partition, next, enough, client);
  if (count >= enough) await partitions.buildIndex(partition, next, client);
}

const isSame = (one: IndexedRange) => (other: IndexedRange) => one.from === other.from && one.to === other.to;

/** The ranges with a permanent index: a closed day with few rows as a whole, otherwise the blocks that are over. */
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

/** The past part of a day that has no index; null if there is none. */
function nextRange({ day }: LogPartition, parts: IndexedRange[], now: number): IndexedRange | null {
  const start = Date.parse(day);
  const from = Math.max(start, ...parts.map(({ to }) => to));
  const to = Math.min(start + DAY_MS, now - PART_GRACE_MS);
  return to <= from ? null : { from, to };
}
