import { LRUCache } from 'lru-cache';
import type { Repository } from 'typeorm';
import type { Server } from '../server.entity.js';

/** A list is marked at every so many servers: a page is read from the mark before it. */
export const MARK_EVERY = 500;

const CACHED_MS = 5_000;
const CACHED_MAX = 200;

/** Where a list stands at one place: the sort key of the server there. */
interface Mark {
  popularity: number;
  /** As Postgres wrote it. */
  createdAt: string;
  id: string;
}

/** A whole list in outline. */
export interface PageMarks {
  total: number;
  /** Of the places 0, 500, 1,000, … */
  marks: Mark[];
}

/**
 * How long lists are and where their pages begin, so that a deep page costs what the first one does: without it Postgres
 * would count and skip everything in front of the page for each request. One walk along the index is believed for 5 s,
 * by everybody who asks the same; servers made meanwhile may move what lies behind them by a place.
 */
export class ServerPageMarks {
  private readonly known = new LRUCache<string, Promise<PageMarks>>({ max: CACHED_MAX, ttl: CACHED_MS });

  constructor(private readonly servers: Repository<Server>) {}

  /** @param conditions on `servers s`, with their values */
  get(conditions: string, values: readonly unknown[]): Promise<PageMarks> {
    const key = JSON.stringify([conditions, values]);
    const known = this.known.get(key);
    if (known) return known;
    const started = this.walk(conditions, values);
    this.known.set(key, started);
    started.catch(() => this.known.delete(key));
    return started;
  }

  /** The marks first; then only what lies behind the last of them must be counted. */
  private async walk(conditions: string, values: readonly unknown[]): Promise<PageMarks> {
    const marks = await this.servers.query<Mark[]>(
      `SELECT popularity, created_at::text AS "createdAt", id FROM (
         SELECT s.popularity, s.created_at, s.id,
                row_number() OVER (ORDER BY s.popularity DESC, s.created_at DESC, s.id DESC) AS place
           FROM servers s WHERE ${conditions}) placed
        WHERE place % ${MARK_EVERY} = 1 ORDER BY place`,
      [...values],
    );
    const last = marks.at(-1);
    if (!last) return { total: 0, marks };
    const [{ rest } = { rest: 0 }] = await this.servers.query<{ rest: number }[]>(
      `SELECT count(*)::int AS rest FROM servers s WHERE ${conditions} AND ${fromMark(values.length)}`,
      [...values, ...keyOf(last)],
    );
    return { total: (marks.length - 1) * MARK_EVERY + rest, marks };
  }
}

/** The condition that a server stands at a mark or behind it; the mark's values follow `before` others. */
export function fromMark(before: number): string {
  const [popularity, createdAt, id] = [before + 1, before + 2, before + 3];
  return `(s.popularity, s.created_at, s.id) <= ($${popularity}::smallint, $${createdAt}::timestamptz, $${id}::uuid)`;
}

/** The values of {@link fromMark}. */
export function keyOf({ popularity, createdAt, id }: Mark): unknown[] {
  return [popularity, createdAt, id];
}
