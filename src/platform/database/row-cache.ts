import type { LRUCache } from 'lru-cache';
import { growingLru } from '../limits/growing-lru.js';
import { withTimeout } from '../limits/with-timeout.js';
import { databaseAvailability } from './database-availability.js';
import { isDatabaseUnreachable } from './postgres-errors.js';

/**
 * Lifetime of a row: a revoked key, grant or client authorization stops working everywhere within this time, even if
 * the message about it is lost.
 */
const LIFETIME_MS = 5_000;

/** Time after which the ping has noticed that the database does not respond. */
const NOTICED_MS = 3_000;

/** A cached row, with the time at which its query began, by the monotonic clock. */
interface Entry<Row> {
  row: Row;
  readAt: number;
  isExpired: boolean;
}

interface Reading<Row> {
  row: Promise<Row | null>;
  /** Set by {@link RowCache.expire}: its row is cached as expired if this is true for it. */
  isCurrent?: (row: Row) => boolean;
}

/**
 * Rows live for seconds. Concurrent callers share one query; a missing row is not cached. While the database is
 * unavailable, rows are used for longer, as {@link databaseAvailability} allows; a dropped one is not.
 *
 * A row that is dropped while it is being read is returned to the waiting callers but not cached: later callers read it
 * again. (`LRUCache.fetch` would reject the waiting callers, which would return 500.)
 */
export class RowCache<Row extends object> {
  private readonly rows: LRUCache<string, Entry<Row>>;
  private readonly reading = new Map<string, Reading<Row>>();
  private readonly ttlMs: number;

  constructor(
    private readonly load: (key: string) => Promise<Row | null>,
    { max, ttlMs = LIFETIME_MS }: { max?: number; ttlMs?: number } = {},
  ) {
    this.rows = growingLru(max);
    this.ttlMs = ttlMs;
  }

  /** Returns the row if {@link get} would return it without a query; otherwise null. */
  peek(key: string): Row | null {
    const entry = this.rows.get(key);
    if (!entry) return null;
    const isFresh = !entry.isExpired && performance.now() - entry.readAt < this.ttlMs;
    return isFresh || databaseAvailability.mayUse(entry.readAt) ? entry.row : null;
  }

  /** @throws errors of the query */
  async get(key: string): Promise<Row | null> {
    const cached = this.peek(key);
    if (cached) return cached;
    const entry = this.rows.get(key);
    const reading = this.reading.get(key);
    const row = reading && !reading.isCurrent ? reading.row : this.read(key);
    return entry ? this.orStale(key, row) : row;
  }

  drop(key: string): void {
    this.rows.delete(key);
    this.reading.delete(key);
  }

  /**
   * Expires a row: the next caller reads it again. The old row, or the one being read, is used while the database is unavailable
   * if `isCurrent` is true for it.
   */
  expire(key: string, isCurrent: (row: Row) => boolean = () => true): void {
    const entry = this.rows.get(key);
    if (entry && isCurrent(entry.row)) entry.isExpired = true;
    else this.rows.delete(key);
    const reading = this.reading.get(key);
    if (reading) reading.isCurrent = isCurrent;
  }

  /** Drops matching rows. Rows that are being read are not cached, since they might match. */
  dropWhere(matches: (row: Row) => boolean): void {
    for (const [key, { row }] of this.rows.entries()) if (matches(row)) this.rows.delete(key);
    this.reading.clear();
  }

  /** Returns the row that is being read, or the previous one if the database turns out to be unavailable. */
  private async orStale(key: string, read: Promise<Row | null>): Promise<Row | null> {
    const unanswered = {};
    try {
      const row = await withTimeout(NOTICED_MS, read, unanswered);
      if (row !== unanswered) return row as Row | null;
    } catch (error) {
      if (!isDatabaseUnreachable(error)) throw error;
      databaseAvailability.failed();
    }
    const entry = this.rows.get(key);
    return entry && databaseAvailability.mayUse(entry.readAt) ? entry.row : read;
  }

  private read(key: string): Promise<Row | null> {
    const isWanted = () => this.reading.get(key) === reading;
    const readAt = performance.now();
    const row = this.load(key)
      .then((row) => {
        if (!isWanted()) return row;
        const { isCurrent } = reading;
        if (row && (!isCurrent || isCurrent(row)))
          this.rows.set(key, { row, readAt, isExpired: isCurrent !== undefined });
        else this.rows.delete(key);
        return row;
      })
      .finally(() => {
        if (isWanted()) this.reading.delete(key);
      });
    const reading: Reading<Row> = { row };
    this.reading.set(key, reading);
    return row;
  }
}
