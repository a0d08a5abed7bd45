import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ListedRow } from '../server.mapper.js';
import { conditionsOf, SqlValues, type ServerScope } from './server-filters.js';
import { rankingOf, type Searched } from './server-ranking.js';

/** Fraction of a word's trigrams that must match: half of them do when one letter of six is missing. */
const SIMILARITY_MIN = 0.45;

/** SQL conditions on `servers s`, and the values of their placeholders. */
export interface ServerFilter {
  conditions: string;
  values: readonly unknown[];
}

/** The sort key of a server in the list by popularity. */
export interface PageMark {
  popularity: number;
  /** As text, in full precision. */
  createdAt: string;
  id: string;
}

/** A server that a search found, with its score from 0 to 1. */
export interface SearchHit {
  id: string;
  score: number;
}

const BY_POPULARITY = 's.popularity DESC, s.created_at DESC, s.id DESC';

/** Statements that list and search servers. */
@Injectable()
export class ServerSearchRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Ids of a page, most used first, then newest. @param mark the first server that counts; null for the whole list */
  findPopular(filter: ServerFilter, mark: PageMark | null, offset: number, limit: number): Promise<string[]> {
    const { conditions, values } = mark ? from(mark, filter) : filter;
    const sql = `SELECT s.id FROM servers s WHERE ${conditions} ORDER BY ${BY_POPULARITY} OFFSET $${values.length + 1} LIMIT $${values.length + 2}`;
    return this.ids(sql, [...values, offset, limit]);
  }

  /** The servers at the places 0, `every`, 2 · `every`, … of the list by popularity. */
  findMarks({ conditions, values }: ServerFilter, every: number): Promise<PageMark[]> {
    return this.database.query<PageMark[]>(
      `SELECT popularity, created_at::text AS "createdAt", id FROM (
         SELECT s.popularity, s.created_at, s.id, row_number() OVER (ORDER BY ${BY_POPULARITY}) AS place
           FROM servers s WHERE ${conditions}) placed
        WHERE place % ${every} = 1 ORDER BY place`,
      [...values],
    );
  }

  /** Number of servers from a mark on. */
  countFrom(mark: PageMark, filter: ServerFilter): Promise<number> {
    return this.count(from(mark, filter));
  }

  /** Ids in their own order from `pivot` on; `isBefore`: those below it. */
  findByPivot(
    { conditions, values }: ServerFilter,
    { pivot, isBefore }: { pivot: string; isBefore: boolean },
    offset: number,
    limit: number,
  ): Promise<string[]> {
    const at = values.length;
    return this.ids(
      `SELECT s.id FROM servers s WHERE ${conditions} AND s.id ${isBefore ? '<' : '>='} $${at + 1}::uuid
        ORDER BY s.id OFFSET $${at + 2} LIMIT $${at + 3}`,
      [...values, pivot, offset, limit],
    );
  }

  /** Number of servers whose id is `pivot` or above. */
  countFromPivot({ conditions, values }: ServerFilter, pivot: string): Promise<number> {
    const condition = `${conditions} AND s.id >= $${values.length + 1}::uuid`;
    return this.count({ conditions: condition, values: [...values, pivot] });
  }

  /** The best servers that have all the words, best first. */
  search(scope: ServerScope, searched: Searched, limit: number): Promise<SearchHit[]> {
    const values = new SqlValues();
    const sql = rankingOf(searched, 'all words', conditionsOf(scope, values), values, limit);
    return this.database.query<SearchHit[]>(sql, values.list);
  }

  /** The best servers that have some of the words or similar ones. The operator's threshold is set for one transaction. */
  searchSimilar(scope: ServerScope, searched: Searched, limit: number): Promise<SearchHit[]> {
    const values = new SqlValues();
    const sql = rankingOf(searched, 'some words', conditionsOf(scope, values), values, limit);
    return this.database.transaction(async (tx) => {
      await tx.query(`SET LOCAL pg_trgm.word_similarity_threshold = ${SIMILARITY_MIN}`);
      return tx.query<SearchHit[]>(sql, values.list);
    });
  }

  /** The columns that lists show, in the order of `ids`; deleted servers are left out. */
  async findListed(ids: string[]): Promise<ListedRow[]> {
    if (ids.length === 0) return [];
    const rows = await this.database.query<ListedRow[]>(
      `SELECT s.id, n.name AS namespace, s.name, s.display_name AS "displayName", s.description, s.visibility, s.verified,
              s.use_count AS "useCount", s.current_type AS "currentType", s.created_at AS "createdAt", s.homepage,
              s.icon_url AS "iconUrl", i.source AS "iconSource", n.account_id AS owner
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id
         LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL
        WHERE s.id = ANY($1::uuid[])`,
      [ids],
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  private async ids(sql: string, values: unknown[]): Promise<string[]> {
    const rows = await this.database.query<{ id: string }[]>(sql, values);
    return rows.map(({ id }) => id);
  }

  private async count({ conditions, values }: ServerFilter): Promise<number> {
    const sql = `SELECT count(*)::int AS count FROM servers s WHERE ${conditions}`;
    const [row] = await this.database.query<{ count: number }[]>(sql, [...values]);
    return row?.count ?? 0;
  }
}

/** The filter, restricted to servers at a mark or behind it. */
function from({ popularity, createdAt, id }: PageMark, { conditions, values }: ServerFilter): ServerFilter {
  const at = values.length;
  const key = `($${at + 1}::smallint, $${at + 2}::timestamptz, $${at + 3}::uuid)`;
  return {
    conditions: `${conditions} AND (s.popularity, s.created_at, s.id) <= ${key}`,
    values: [...values, popularity, createdAt, id],
  };
}
