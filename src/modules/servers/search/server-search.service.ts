import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { project } from '../../../platform/http/input-values.js';
import type { Caller } from '../../auth/access.types.js';
import { NamespacesService } from '../../namespaces/namespaces.service.js';
import { conditionsOf, scopeOf, SqlValues, type ServerScope } from './server-filters.js';
import { ServerCardsService } from '../server-cards.service.js';
import { ServerUrlsService } from '../server-urls.service.js';
import { toServerSummaryDto, type ListedRow } from '../server.mapper.js';
import { rankingOf, searchedFor, type Searched } from './server-ranking.js';
import type { ServerListDto, ServerQueryDto } from './server-search.dto.js';
import { Server } from '../server.entity.js';
import { LRUCache } from 'lru-cache';

/** Fewer hits than this are filled up with servers that have only some of the words, or similar ones. */
const FEW_HITS = 10;

/** How much of a word must be there: half of its trigrams are, when one letter of six is missing. */
const SIMILARITY_MIN = 0.45;

/** A list is marked at every so many servers: a page is read from the mark before it. */
const MARK_EVERY = 500;

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
interface PageMarks {
  total: number;
  /** Of the places 0, 500, 1,000, … */
  marks: Mark[];
}

/**
 * How long lists are and where their pages begin, so that a deep page costs what the first one does: without it Postgres
 * would count and skip everything in front of the page for each request. One walk along the index is believed for 5 s,
 * by everybody who asks the same; servers made meanwhile may move what lies behind them by a place.
 */
class ServerPageMarks {
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

interface Hit {
  id: string;
  score: number;
}

/** A page of a list: which servers, and how many there are altogether. */
interface Found {
  ids: string[];
  total: number;
  scores?: Map<string, number>;
}

/** Lists and searches the registry. */
@Injectable()
export class ServerSearchService {
  private readonly outlines: ServerPageMarks;

  constructor(
    @InjectRepository(Server) private readonly servers: Repository<Server>,
    private readonly namespaces: NamespacesService,
    private readonly links: ServerUrlsService,
    private readonly cards: ServerCardsService,
  ) {
    this.outlines = new ServerPageMarks(servers);
  }

  /**
   * Listed servers, and the caller's own unlisted ones when they ask for their own. A page past the end is empty. The
   * total of a list longer than a page may be 5 s old.
   */
  async list(query: ServerQueryDto, caller: Caller): Promise<ServerListDto> {
    const { page = 1, pageSize = 10, q = '' } = query;
    const scope = await scopeOf(query, caller, (name) => this.namespaces.find(name));
    const searched = q.trim() === '' ? null : searchedFor(q);
    const { ids, total, scores } = !scope
      ? { ids: [], total: 0 }
      : searched
        ? await this.search(scope, searched)
        : await this.browse(scope);
    const rows = await this.read(ids);
    const added = await this.cards.read(
      rows.map(({ id }) => id),
      query.fields,
    );
    const servers = rows.map((row) => ({
      ...toServerSummaryDto(row, scores?.get(row.id) ?? null, this.links),
      ...added(row.id),
    }));
    return {
      servers: servers.map((server) => project(server, query.fields)),
      pagination: { currentPage: page, pageSize, totalPages: Math.ceil(total / pageSize), totalCount: total },
    };
  }

  /** By popularity, or in the order a seed gives. */
  private async browse(scope: ServerScope): Promise<Found> {
    const { page = 1, pageSize = 10, seed } = scope.query;
    const values = new SqlValues();
    const conditions = conditionsOf(scope, values);
    // Exact also beyond 2^53: a page may be that high, and Postgres takes offsets up to 2^63.
    const offset = BigInt(page - 1) * BigInt(pageSize);
    const isDeep = offset >= BigInt(MARK_EVERY);
    if (isDeep) {
      const { total } = await this.outlines.get(conditions, values.list);
      if (offset >= BigInt(total)) return { ids: [], total };
    }
    const ids =
      seed === undefined
        ? await this.popular(conditions, values.list, Number(offset), pageSize)
        : await this.seeded(conditions, values.list, seed, Number(offset), pageSize);
    const isEnd = ids.length < pageSize && (ids.length > 0 || page === 1);
    const seen = Number(offset) + ids.length;
    if (isEnd) return { ids, total: seen };
    const { total } = await this.outlines.get(conditions, values.list);
    return { ids, total: ids.length > 0 ? Math.max(total, seen) : Math.min(total, Number(offset)) };
  }

  /** Most used first, then newest. A deep page is read from the mark before it. */
  private async popular(conditions: string, values: unknown[], offset: number, limit: number): Promise<string[]> {
    const place = Math.floor(offset / MARK_EVERY);
    const mark = place > 0 ? (await this.outlines.get(conditions, values)).marks[place] : undefined;
    const where = mark ? `${conditions} AND ${fromMark(values.length)}` : conditions;
    return this.ids(
      `SELECT s.id FROM servers s WHERE ${where} ORDER BY s.popularity DESC, s.created_at DESC, s.id DESC
        OFFSET ${mark ? offset % MARK_EVERY : offset} LIMIT ${limit}`,
      mark ? [...values, ...keyOf(mark)] : values,
    );
  }

  /**
   * Ids are random, so their order is one that nobody chose; a seed says where in it the list begins, and behind the
   * last one it goes on with the first.
   */
  private async seeded(conditions: string, values: unknown[], seed: number, offset: number, limit: number) {
    const pivot = `$${values.length + 1}::uuid`;
    const given = [...values, pivotOf(seed)];
    const from = `SELECT s.id FROM servers s WHERE ${conditions} AND s.id`;
    const first = await this.ids(`${from} >= ${pivot} ORDER BY s.id OFFSET ${offset} LIMIT ${limit}`, given);
    if (first.length === limit) return first;
    const [{ count } = { count: 0 }] = await this.servers.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM servers s WHERE ${conditions} AND s.id >= ${pivot}`,
      given,
    );
    const skipped = Math.max(0, offset - count);
    const rest = limit - first.length;
    return [...first, ...(await this.ids(`${from} < ${pivot} ORDER BY s.id OFFSET ${skipped} LIMIT ${rest}`, given))];
  }

  /** The best servers for the words, best first; of all of them only those of the page are read. */
  private async search(scope: ServerScope, searched: Searched): Promise<Found> {
    const { page = 1, pageSize = 10, topK = 500 } = scope.query;
    const values = new SqlValues();
    const text = rankingOf(searched, 'all words', conditionsOf(scope, values), values, topK);
    let hits = await this.servers.query<Hit[]>(text, values.list);
    if (hits.length < FEW_HITS) hits = await this.searchLoosely(scope, searched, topK);
    const offset = (page - 1) * pageSize;
    const shown = hits.slice(offset, offset + pageSize);
    const scores = new Map(shown.map(({ id, score }) => [id, score]));
    return { ids: shown.map(({ id }) => id), total: hits.length, scores };
  }

  /** The operator that finds similar words goes by a setting, which must not outlive the statement. */
  private async searchLoosely(scope: ServerScope, searched: Searched, topK: number): Promise<Hit[]> {
    const values = new SqlValues();
    const text = rankingOf(searched, 'some words', conditionsOf(scope, values), values, topK);
    return this.servers.manager.transaction(async (tx) => {
      await tx.query(`SET LOCAL pg_trgm.word_similarity_threshold = ${SIMILARITY_MIN}`);
      return tx.query<Hit[]>(text, values.list);
    });
  }

  private async ids(text: string, values: unknown[]): Promise<string[]> {
    const rows = await this.servers.query<{ id: string }[]>(text, values);
    return rows.map(({ id }) => id);
  }

  /** What lists show of these servers, in this order; without those that went meanwhile. */
  private async read(ids: string[]): Promise<ListedRow[]> {
    if (ids.length === 0) return [];
    const rows = await this.servers.query<ListedRow[]>(
      `SELECT s.id, n.name AS namespace, s.name, s.display_name AS "displayName", s.description, s.verified,
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

/** A place in the order of ids: the same seed gives the same place, near seeds places far apart (golden ratio). */
function pivotOf(seed: number): string {
  const place = (BigInt(seed) * 0x9e3779b97f4a7c15n) & 0xffff_ffff_ffff_ffffn;
  const hex = place.toString(16).padStart(16, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-0000-000000000000`;
}

/** The condition that a server stands at a mark or behind it; the mark's values follow `before` others. */
function fromMark(before: number): string {
  const [popularity, createdAt, id] = [before + 1, before + 2, before + 3];
  return `(s.popularity, s.created_at, s.id) <= ($${popularity}::smallint, $${createdAt}::timestamptz, $${id}::uuid)`;
}

/** The values of {@link fromMark}. */
function keyOf({ popularity, createdAt, id }: Mark): unknown[] {
  return [popularity, createdAt, id];
}
