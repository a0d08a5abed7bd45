import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ListedRow } from '../server.mapper.js';
import { conditionsOf, SqlValues, type ServerScope } from './server-filters.js';
import { rankingOf, type Searched } from './server-ranking.js';

/** Fraction of a word's trigrams that must match: half of them match when one letter of six is missing. */
const SIMILARITY_MIN = 0.45;

const POPULAR_FIRST = 's.popularity DESC, s.created_at DESC, s.id DESC';
const POPULAR_LAST = 's.popularity, s.created_at, s.id';

export interface ServerFilter {
  conditions: string;
  values: readonly unknown[];
}

export interface SearchHit {
  id: string;
  score: number;
}

@Injectable()
export class ServerSearchRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Lists the most used servers first, then the newest; with `pivot`, in the order of ids from it, with wrap-around. */
  async findPage(filter: ServerFilter, pivot: string | null, offset: number, limit: number): Promise<string[]> {
    if (pivot === null) return this.findIds(filter, POPULAR_FIRST, offset, limit);
    const values = [...filter.values, pivot];
    return this.findIds({ ...filter, values }, `s.id < $${values.length}::uuid, s.id`, offset, limit);
  }

  /**
   * Lists like {@link findPage} without `pivot`, but skips the rows after the page instead of those before it.
   *
   * @param rowCount number of rows from the first of the page to the last of the list
   */
  async findPageFromEnd(filter: ServerFilter, rowCount: number, limit: number): Promise<string[]> {
    const offset = Math.max(0, rowCount - limit);
    return (await this.findIds(filter, POPULAR_LAST, offset, rowCount - offset)).reverse();
  }

  private async findIds(filter: ServerFilter, order: string, offset: number, limit: number): Promise<string[]> {
    const { conditions, values } = filter;
    const at = values.length;
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT s.id FROM servers s WHERE ${conditions} ORDER BY ${order} OFFSET $${at + 1} LIMIT $${at + 2}`,
      [...values, offset, limit],
    );
    return rows.map(({ id }) => id);
  }

  async count({ conditions, values }: ServerFilter): Promise<number> {
    const sql = `SELECT count(*)::int AS count FROM servers s WHERE ${conditions}`;
    const [row] = await this.database.query<{ count: number }[]>(sql, [...values]);
    return row?.count ?? 0;
  }

  search(scope: ServerScope, searched: Searched, limit: number): Promise<SearchHit[]> {
    const values = new SqlValues();
    const sql = rankingOf(searched, 'all words', conditionsOf(scope, values), values, limit);
    return this.database.query<SearchHit[]>(sql, values.list);
  }

  /** Overrides the operator's similarity threshold within one transaction. */
  searchSimilar(scope: ServerScope, searched: Searched, limit: number): Promise<SearchHit[]> {
    const values = new SqlValues();
    const sql = rankingOf(searched, 'some words', conditionsOf(scope, values), values, limit);
    return this.database.transaction(async (tx) => {
      await tx.query(`SET LOCAL pg_trgm.word_similarity_threshold = ${SIMILARITY_MIN}`);
      return tx.query<SearchHit[]>(sql, values.list);
    });
  }

  /** Returns rows in the order of `ids`, without deleted servers. */
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
}
