import { Injectable } from '@nestjs/common';
import { growingLru } from '../../../platform/limits/growing-lru.js';
import { project } from '../../../platform/http/input-values.js';
import { AccessService } from '../../auth/access.service.js';
import type { Caller } from '../../auth/access.types.js';
import { TargetsService } from '../../targets/targets.service.js';
import { ServerCardsService } from '../server-cards.service.js';
import { ServerUrlsService } from '../server-urls.service.js';
import { toServerSummaryDto } from '../server.mapper.js';
import { conditionsOf, scopeOf, SqlValues, type ServerScope } from './server-filters.js';
import { searchedFor, type Searched } from './server-ranking.js';
import type { ServerListDto, ServerQueryDto } from './server-search.dto.js';
import { ServerSearchRepository, type ServerFilter } from './server-search.repository.js';

/** Number of hits below which a search also finds servers with only some of the words, or similar ones. */
const FEW_HITS = 10;

const COUNTED_MS = 5_000;

/** Number of rows before a page from which the page is read from the end of the list, if that is closer. */
const DEEP_ROWS = 1_000;

interface FoundPage {
  ids: string[];
  total: number;
  scores?: Map<string, number>;
}

@Injectable()
export class ServerSearchService {
  /** Cached totals; concurrent requests share one index scan. */
  private readonly totals = growingLru<Promise<number>>(undefined, { ttl: COUNTED_MS });

  constructor(
    private readonly serverSearchRepository: ServerSearchRepository,
    private readonly targetsService: TargetsService,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly serverCardsService: ServerCardsService,
    private readonly accessService: AccessService,
  ) {}

  /**
   * Lists servers; unlisted ones only for their owner who filters by namespace or account. A page past the end is empty.
   * The total of a list longer than a page is up to 5 s old. A page after 1,000 rows, in the second half of its list, is found by the
   * total, so changes of the last 5 s can shift it.
   */
  async list(query: ServerQueryDto, caller: Caller): Promise<ServerListDto> {
    const { page = 1, pageSize = 10, q = '' } = query;
    const scope = await scopeOf(query, caller, {
      find: (name) => this.targetsService.findNamespace(name),
      owns: (ownerId) => this.accessService.owns(caller, 'discover', ownerId),
      remoteTypes: this.serverUrlsService.remoteTypes,
    });
    const searched = q.trim() === '' ? null : searchedFor(q);
    const { ids, total, scores } = !scope
      ? { ids: [], total: 0 }
      : searched
        ? await this.search(scope, searched)
        : await this.browse(scope);
    const rows = await this.serverSearchRepository.findListed(ids);
    const added = await this.serverCardsService.read(
      rows.map(({ id }) => id),
      query.fields,
    );
    const servers = rows.map((row) => ({
      ...toServerSummaryDto(row, scores?.get(row.id) ?? null, this.serverUrlsService),
      ...added(row.id),
    }));
    return {
      servers: servers.map((server) => project(server, query.fields)),
      pagination: { currentPage: page, pageSize, totalPages: Math.ceil(total / pageSize), totalCount: total },
    };
  }

  /** Lists servers by popularity, or in the order of their random ids from a position that the seed determines. */
  private async browse(scope: ServerScope): Promise<FoundPage> {
    const { page = 1, pageSize = 10, seed } = scope.query;
    const values = new SqlValues();
    const filter = { conditions: conditionsOf(scope, values), values: values.list };
    const offset = (page - 1) * pageSize;
    let pivot: string | null = null;
    if (seed !== undefined) {
      // The same seed gives the same pivot, and close seeds distant ones (golden ratio).
      const hex = ((BigInt(seed) * 0x9e3779b97f4a7c15n) & 0xffff_ffff_ffff_ffffn).toString(16).padStart(16, '0');
      pivot = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-0000-000000000000`;
    }
    const total = pivot === null && offset >= DEEP_ROWS ? await this.count(filter) : 0;
    const ids =
      offset < total && offset * 2 > total
        ? await this.serverSearchRepository.findPageFromEnd(filter, total - offset, pageSize)
        : await this.serverSearchRepository.findPage(filter, pivot, offset, pageSize);
    const reached = offset + ids.length;
    if (ids.length < pageSize && (ids.length > 0 || page === 1)) return { ids, total: reached };
    const counted = await this.count(filter);
    return { ids, total: ids.length > 0 ? Math.max(counted, reached) : Math.min(counted, offset) };
  }

  private count(filter: ServerFilter): Promise<number> {
    const key = JSON.stringify([filter.conditions, filter.values]);
    let counting = this.totals.get(key);
    if (!counting) {
      counting = this.serverSearchRepository.count(filter);
      this.totals.set(key, counting);
      counting.catch(() => this.totals.delete(key));
    }
    return counting;
  }

  private async search(scope: ServerScope, searched: Searched): Promise<FoundPage> {
    const { page = 1, pageSize = 10, topK = 500 } = scope.query;
    let hits = await this.serverSearchRepository.search(scope, searched, topK);
    if (hits.length < FEW_HITS) hits = await this.serverSearchRepository.searchSimilar(scope, searched, topK);
    const offset = (page - 1) * pageSize;
    const pageHits = hits.slice(offset, offset + pageSize);
    const scores = new Map(pageHits.map(({ id, score }) => [id, score]));
    return { ids: pageHits.map(({ id }) => id), total: hits.length, scores };
  }
}
