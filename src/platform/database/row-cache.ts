import { LRUCache } from 'lru-cache';

/**
 * Rows that are believed for a few seconds. Callers that ask at once share one query; a missing row is not remembered.
 *
 * A row that is dropped while it is being read is still given to those who asked before, and is not kept: what is asked
 * afterwards is read afterwards. (`LRUCache.fetch` rejects those who wait, which their callers would see as a 500.)
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

  /** The row, read unless it is known. @throws what reading throws */
  async get(key: string): Promise<Row | null> {
    return this.rows.get(key) ?? this.reading.get(key) ?? this.read(key);
  }

  /** Forgets the row of this key. */
  drop(key: string): void {
    this.rows.delete(key);
    this.reading.delete(key);
  }

  /** Forgets every row that matches, and keeps none of those being read: nobody knows yet what they are. */
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
