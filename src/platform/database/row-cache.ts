import { LRUCache } from 'lru-cache';

/**
 * Cache of rows with a lifetime of seconds. Concurrent callers share one query; a missing row is not cached.
 *
 * A row that is dropped while it is being read is returned to the callers that wait for it, and not cached: later callers
 * read it again. (`LRUCache.fetch` rejects the callers that wait, who would answer 500.)
 */
export class RowCache<Row extends object> {
  private readonly rows: LRUCache<string, Row>;
  private readonly reading = new Map<string, Promise<Row | null>>();

  constructor(
    private readonly load: (key: string) => Promise<Row | null>,
    { max, ttlMs }: { max: number; ttlMs: number },
  ) {
    this.rows = new LRUCache({ max, ttl: ttlMs });
  }

  /** The row, from the cache or read now. @throws errors of the query */
  async get(key: string): Promise<Row | null> {
    return this.rows.get(key) ?? this.reading.get(key) ?? this.read(key);
  }

  /** Drops the row of this key. */
  drop(key: string): void {
    this.rows.delete(key);
    this.reading.delete(key);
  }

  /** Drops every row that matches, and does not cache those being read, whose content is unknown. */
  dropWhere(matches: (row: Row) => boolean): void {
    for (const [key, row] of this.rows.entries()) if (matches(row)) this.rows.delete(key);
    this.reading.clear();
  }

  private read(key: string): Promise<Row | null> {
    const isWanted = () => this.reading.get(key) === started;
    const started: Promise<Row | null> = this.load(key)
      .then((row) => {
        if (row && isWanted()) this.rows.set(key, row);
        return row;
      })
      .finally(() => {
        if (isWanted()) this.reading.delete(key);
      });
    this.reading.set(key, started);
    return started;
  }
}
