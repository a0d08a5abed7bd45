/**
 * Results that an upstream allows to cache: `ttlMs` in the results of the four lists and of `resources/read` (MCP
 * 2026-07-28), up to an hour.
 *
 * A result may depend on the capabilities of the caller, so they are part of the key. Invalidation increments a
 * generation. The key is computed before the request is sent, so a result older than a change is never found.
 *
 * Not cached: a result above 1 MB, incomplete results, and requests with `inputResponses` or `requestState`. All
 * channels of the process share 64 MB (characters).
 */
import { LRUCache } from 'lru-cache';
import type { McpReply } from '../protocol/channel.js';
import { resultOf } from '../protocol/messages.js';
import { TTL_MS_MAX } from '../protocol/protocol.js';

const CHARS_MAX = 64 * 1024 * 1024;
const RESULT_CHARS_MAX = 1024 * 1024;
/** Minimum length that is charged for a result, which limits the number of results to 20,971. */
const RESULT_CHARS_MIN = 3_200;

const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];

const staleBy: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['tools/list', new Set(['notifications/tools/list_changed'])],
  ['prompts/list', new Set(['notifications/prompts/list_changed'])],
  ['resources/list', new Set(['notifications/resources/list_changed'])],
  ['resources/templates/list', new Set(['notifications/resources/list_changed'])],
  ['resources/read', new Set(['notifications/resources/updated', 'notifications/resources/list_changed'])],
]);

export class ResultStore {
  readonly results = new LRUCache<string, McpReply>({
    maxSize: CHARS_MAX,
    maxEntrySize: RESULT_CHARS_MAX,
    sizeCalculation: ({ text }, key) => Math.max(text.length + key.length, RESULT_CHARS_MIN),
  });
  private lastChannel = 0;

  forChannel(): ResultCache {
    return new ResultCache(this.results, `${(this.lastChannel += 1)}`);
  }
}

export class ResultCache {
  private readonly generations = new Map<string, number>();

  constructor(
    private readonly results: LRUCache<string, McpReply>,
    private readonly channel: string,
  ) {}

  /**
   * Returns null when the result must not be cached.
   *
   * @param capabilities of the caller as JSON text, on which the result may depend
   */
  keyOf(method: string, params: string | undefined, capabilities: string): string | null {
    if (!staleBy.has(method)) return null;
    if (params && (params.includes('"inputResponses"') || params.includes('"requestState"'))) return null;
    const generation = this.generations.get(method) ?? 0;
    let about = params ?? '{}';
    // `_meta` differs per request.
    if (about.includes('"_meta"')) {
      const { _meta, ...rest } = JSON.parse(about) as Record<string, unknown>;
      about = JSON.stringify(rest);
    }
    return `${this.channel} ${generation} ${method} ${capabilities} ${about}`;
  }

  get(key: string): McpReply | undefined {
    return this.results.get(key);
  }

  /** Stores a complete result that carries `ttlMs`. @param key computed before the request was sent */
  store(key: string, reply: McpReply): void {
    if (!reply.result || !reply.text.includes('"ttlMs"')) return;
    const { ttlMs, resultType = 'complete' } = resultOf(reply) as { ttlMs?: unknown; resultType?: unknown };
    if (resultType !== 'complete' || typeof ttlMs !== 'number' || !(ttlMs > 0)) return;
    this.results.set(key, reply, { ttl: Math.min(Math.ceil(ttlMs), TTL_MS_MAX) });
  }

  invalidate(notification: string): void {
    for (const [method, reasons] of staleBy) if (reasons.has(notification)) this.forget(method);
  }

  /** Drops cached lists, after a change was found elsewhere. */
  forgetLists(): void {
    for (const method of LISTS) this.forget(method);
  }

  forgetPages(method: string): void {
    if (LISTS.includes(method)) this.forget(method);
  }

  clear(): void {
    for (const method of staleBy.keys()) this.forget(method);
  }

  private forget(method: string): void {
    this.generations.set(method, (this.generations.get(method) ?? 0) + 1);
  }
}
