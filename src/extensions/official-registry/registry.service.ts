import { Inject, Injectable, Logger } from '@nestjs/common';
import { errorOf, Http, KeyedLimiter } from '../../extension.js';
import { REGISTRY_BASE } from './registry-base.js';
import { readServerList, SERVERS_MAX, type RegistryServer } from './registry-server.js';

const TIMEOUT_MS = 5_000;

const BYTES_MAX = 2 * 1024 * 1024;

const FRESH_MS = 5 * 60_000;
const FAILED_MS = 10_000;

const CACHED_MAX = 32;

const EACH_MAX = 2;
const ALL_MAX = 6;

export interface RegistryPage {
  servers: RegistryServer[];
  /** Null on the last page. */
  nextCursor: string | null;
}

export class RegistryUnavailableError extends errorOf('unavailable') {}

/**
 * Reads the official MCP registry under the egress policy. One page is one request of at most 5 s and 2 MB. This
 * process caches pages for 5 min, and failures for 10 s.
 */
@Injectable()
export class RegistryService {
  /** Pages by URL, the least recently used first. */
  private readonly pages = new Map<string, { page: Promise<RegistryPage>; until: number }>();
  private readonly limiter = new KeyedLimiter(EACH_MAX, ALL_MAX, TIMEOUT_MS);
  private readonly logger = new Logger(RegistryService.name);

  constructor(
    private readonly http: Http,
    @Inject(REGISTRY_BASE) private readonly base: string,
  ) {}

  get host(): string {
    return new URL(this.base).host;
  }

  /**
   * Returns a page of servers. @param cursor of the previous page; null for the first one @throws
   * RegistryUnavailableError
   */
  async search(accountId: string, q: string, cursor: string | null): Promise<RegistryPage> {
    const query = new URLSearchParams({ limit: String(SERVERS_MAX), version: 'latest' });
    if (q !== '') query.set('search', q);
    if (cursor !== null) query.set('cursor', cursor);
    const url = `${this.base}/v0.1/servers?${query.toString()}`;
    const cached = this.pages.get(url);
    this.pages.delete(url);
    const isFresh = cached !== undefined && cached.until > Date.now();
    const entry = isFresh ? cached : { page: this.read(accountId, url), until: Date.now() + FRESH_MS };
    this.pages.set(url, entry);
    for (const oldest of this.pages.keys()) if (this.pages.size > CACHED_MAX) this.pages.delete(oldest);
    if (!isFresh) entry.page.catch(() => (entry.until = Date.now() + FAILED_MS));
    return entry.page;
  }

  private async read(accountId: string, url: string): Promise<RegistryPage> {
    try {
      return await this.limiter.run(accountId, async () => {
        const headers = { accept: 'application/json' };
        const response = await this.http.fetch(url, { headers, timeoutMs: TIMEOUT_MS, bytesMax: BYTES_MAX });
        if (!response.ok) throw new Error(`The registry returned ${response.status}`);
        const page = readServerList(await response.json());
        if (page === null) throw new Error('The registry did not return a list of servers');
        return page;
      });
    } catch (error) {
      this.logger.warn({ err: error, url }, 'the official registry is unavailable');
      throw new RegistryUnavailableError(`The registry at ${this.host} is unavailable`, error);
    }
  }
}
