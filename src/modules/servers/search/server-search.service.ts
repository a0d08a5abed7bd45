import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { project } from '../../../platform/http/input-values.js';
import { AccessService } from '../../auth/access.service.js';
import type { Caller } from '../../auth/access.types.js';
import { NamespacesService } from '../../namespaces/namespaces.service.js';
import { ServerCardsService } from '../server-cards.service.js';
import { ServerUrlsService } from '../server-urls.service.js';
import { toServerSummaryDto } from '../server.mapper.js';
import { conditionsOf, scopeOf, SqlValues, type ServerScope } from './server-filters.js';
import { searchedFor, type Searched } from './server-ranking.js';
import type { ServerListDto, ServerQueryDto } from './server-search.dto.js';
import { ServerSearchRepository, type PageMark, type ServerFilter } from './server-search.repository.js';

/** Searches with fewer hits also find servers that have only some of the words, or similar ones. */
const FEW_HITS = 10;

/** Distance of page marks: a deep page is read from the mark before it. */
const MARK_EVERY = 500;

const CACHED_MS = 5_000;

const CACHED_MAX = 200;

/** Length of a list, and the servers at its places 0, 500, 1,000, … */
interface PageMarks {
  total: number;
  marks: PageMark[];
}

/** A page of a list: ids of its servers, and the length of the list. */
interface FoundPage {
  ids: string[];
  total: number;
  scores?: Map<string, number>;
}

/** Lists and searches the registry. */
@Injectable()
export class ServerSearchService {
  /** Page marks by filter. They are believed for 5 s; servers made meanwhile may shift a page by a place. */
  private readonly marks = new LRUCache<string, Promise<PageMarks>>({ max: CACHED_MAX, ttl: CACHED_MS });

  constructor(
    private readonly servers: ServerSearchRepository,
    private readonly namespaces: NamespacesService,
    private readonly urls: ServerUrlsService,
    private readonly cards: ServerCardsService,
    private readonly access: AccessService,
  ) {}

  /**
   * Lists servers that are listed, and unlisted ones to their owner who filters by namespace or account. A page past the
   * end is empty. The total of a list longer than a page may be 5 s old.
   */
  async list(query: ServerQueryDto, caller: Caller): Promise<ServerListDto> {
    const { page = 1, pageSize = 10, q = '' } = query;
    const scope = await scopeOf(query, caller, {
      find: (name) => this.namespaces.find(name),
      owns: (ownerId) => this.access.owns(caller, ownerId),
    });
    const searched = q.trim() === '' ? null : searchedFor(q);
    const { ids, total, scores } = !scope
      ? { ids: [], total: 0 }
      : searched
        ? await this.search(scope, searched)
        : await this.browse(scope);
    const rows = await this.servers.findListed(ids);
    const added = await this.cards.read(
      rows.map(({ id }) => id),
      query.fields,
    );
    const servers = rows.map((row) => ({
      ...toServerSummaryDto(row, scores?.get(row.id) ?? null, this.urls),
      ...added(row.id),
    }));
    return {
      servers: servers.map((server) => project(server, query.fields)),
      pagination: { currentPage: page, pageSize, totalPages: Math.ceil(total / pageSize), totalCount: total },
    };
  }

  /** A page by popularity, or in the order of a seed. */
  private async browse(scope: ServerScope): Promise<FoundPage> {
    const { page = 1, pageSize = 10, seed } = scope.query;
    const values = new SqlValues();
    const filter = { conditions: conditionsOf(scope, values), values: values.list };
    // A bigint: pages go up to 2^53, and Postgres takes offsets up to 2^63.
    const offset = BigInt(page - 1) * BigInt(pageSize);
    const isDeep = offset >= BigInt(MARK_EVERY);
    if (isDeep) {
      const { total } = await this.marksOf(filter);
      if (offset >= BigInt(total)) return { ids: [], total };
    }
    const ids =
      seed === undefined
        ? await this.popular(filter, Number(offset), pageSize)
        : await this.seeded(filter, seed, Number(offset), pageSize);
    const isEnd = ids.length < pageSize && (ids.length > 0 || page === 1);
    const seen = Number(offset) + ids.length;
    if (isEnd) return { ids, total: seen };
    const { total } = await this.marksOf(filter);
    return { ids, total: ids.length > 0 ? Math.max(total, seen) : Math.min(total, Number(offset)) };
  }

  /** Most used first, then newest. A deep page is read from the mark before it. */
  private async popular(filter: ServerFilter, offset: number, limit: number): Promise<string[]> {
    const place = Math.floor(offset / MARK_EVERY);
    const mark = place > 0 ? (await this.marksOf(filter)).marks[place] : undefined;
    return this.servers.findPopular(filter, mark ?? null, mark ? offset % MARK_EVERY : offset, limit);
  }

  /** In the order of ids, which are random, from the place that the seed names; the end continues with the first id. */
  private async seeded(filter: ServerFilter, seed: number, offset: number, limit: number): Promise<string[]> {
    const pivot = pivotOf(seed);
    const first = await this.servers.findByPivot(filter, { pivot, isBefore: false }, offset, limit);
    if (first.length === limit) return first;
    const skipped = Math.max(0, offset - (await this.servers.countFromPivot(filter, pivot)));
    const rest = limit - first.length;
    return [...first, ...(await this.servers.findByPivot(filter, { pivot, isBefore: true }, skipped, rest))];
  }

  /** A page of the best servers for the words, best first. */
  private async search(scope: ServerScope, searched: Searched): Promise<FoundPage> {
    const { page = 1, pageSize = 10, topK = 500 } = scope.query;
    let hits = await this.servers.search(scope, searched, topK);
    if (hits.length < FEW_HITS) hits = await this.servers.searchSimilar(scope, searched, topK);
    const offset = (page - 1) * pageSize;
    const shown = hits.slice(offset, offset + pageSize);
    const scores = new Map(shown.map(({ id, score }) => [id, score]));
    return { ids: shown.map(({ id }) => id), total: hits.length, scores };
  }

  /**
   * The page marks of a list, cached: without them Postgres counts and skips all rows before a page for each request.
   * Concurrent requests share one walk along the index.
   */
  private marksOf(filter: ServerFilter): Promise<PageMarks> {
    const key = JSON.stringify([filter.conditions, filter.values]);
    const known = this.marks.get(key);
    if (known) return known;
    const started = this.readMarks(filter);
    this.marks.set(key, started);
    started.catch(() => this.marks.delete(key));
    return started;
  }

  /** Reads the marks; then only the servers behind the last one are counted. */
  private async readMarks(filter: ServerFilter): Promise<PageMarks> {
    const marks = await this.servers.findMarks(filter, MARK_EVERY);
    const last = marks.at(-1);
    if (!last) return { total: 0, marks };
    return { total: (marks.length - 1) * MARK_EVERY + (await this.servers.countFrom(last, filter)), marks };
  }
}

/** A place in the order of ids: the same for the same seed, far apart for near seeds (golden ratio). */
function pivotOf(seed: number): string {
  const place = (BigInt(seed) * 0x9e3779b97f4a7c15n) & 0xffff_ffff_ffff_ffffn;
  const hex = place.toString(16).padStart(16, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-0000-000000000000`;
}
