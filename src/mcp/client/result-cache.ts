import { LRUCache } from 'lru-cache';
import type { McpReply } from '../protocol/channel.js';
import { resultOf } from '../protocol/messages.js';

/** Results of all channels of a process that are remembered: characters in all, and of one. */
const CHARS_MAX = 64 * 1024 * 1024;
const RESULT_CHARS_MAX = 1024 * 1024;
const RESULTS_MAX = 20_000;

/** One channel may fill no more than this many places of them with what its callers ask for. */
const RESULTS_OF_CHANNEL_MAX = 200;

/** What is asked for by a longer key (its params, mostly) is not remembered: keys lie outside of the bound on results. */
const KEY_CHARS_MAX = 8_192;

/** However long a server says that its results stay good. */
const TTL_MS_MAX = 60 * 60_000;

const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];

/** The methods whose results say how long they stay good (MCP 2026-07-28), and what makes them stale at once. */
const staleBy: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['tools/list', new Set(['notifications/tools/list_changed'])],
  ['prompts/list', new Set(['notifications/prompts/list_changed'])],
  ['resources/list', new Set(['notifications/resources/list_changed'])],
  ['resources/templates/list', new Set(['notifications/resources/list_changed'])],
  ['resources/read', new Set(['notifications/resources/updated', 'notifications/resources/list_changed'])],
]);

/** The results that a process remembers, for all its channels within one bound. */
export class ResultStore {
  readonly results = new LRUCache<string, McpReply>({
    max: RESULTS_MAX,
    maxSize: CHARS_MAX,
    maxEntrySize: RESULT_CHARS_MAX,
    sizeCalculation: ({ text }) => text.length,
  });
  private lastChannel = 0;

  /** A channel's own part: what one channel remembers is never told by another. */
  forChannel(): ResultCache {
    return new ResultCache(this.results, `${(this.lastChannel += 1)}`);
  }
}

/** What one channel remembers of its upstream's results, as long as the upstream says that they stay good. */
export class ResultCache {
  /** Counted up when results of a method become stale, so that nothing finds them any more. */
  private readonly generations = new Map<string, number>();
  private readonly keys = new Set<string>();

  constructor(
    private readonly results: LRUCache<string, McpReply>,
    private readonly channel: string,
  ) {}

  /**
   * Under which key the result of a request is remembered; null when it never is.
   *
   * @param capabilities what the caller declared, as JSON text: a server may answer by it
   */
  keyOf(method: string, params: string | undefined, capabilities: string): string | null {
    if (!staleBy.has(method)) return null;
    if (params && (params.includes('"inputResponses"') || params.includes('"requestState"'))) return null;
    const generation = this.generations.get(method) ?? 0;
    const key = `${this.channel} ${generation} ${method} ${capabilities} ${params ? withoutMeta(params) : '{}'}`;
    return key.length > KEY_CHARS_MAX ? null : key;
  }

  get(key: string): McpReply | undefined {
    return this.results.get(key);
  }

  /** Remembers a complete result that says how long it stays good. `key` was made before it was asked for. */
  keep(key: string, reply: McpReply): void {
    if (!reply.result || !reply.text.includes('"ttlMs"')) return;
    const { ttlMs, resultType = 'complete' } = resultOf(reply) as { ttlMs?: unknown; resultType?: unknown };
    if (resultType !== 'complete' || typeof ttlMs !== 'number' || !(ttlMs > 0)) return;
    if (this.keys.size >= RESULTS_OF_CHANNEL_MAX) this.clear();
    this.keys.add(key);
    this.results.set(key, reply, { ttl: Math.min(Math.ceil(ttlMs), TTL_MS_MAX) });
  }

  /** A notification of the upstream: what it makes stale is forgotten. */
  noticed(notification: string): void {
    for (const [method, reasons] of staleBy) if (reasons.has(notification)) this.forget(method);
  }

  /** The lists of the upstream are others now, as was found out elsewhere. */
  forgetLists(): void {
    for (const method of LISTS) this.forget(method);
  }

  /** A cursor was refused: every page of the list may be another one now. */
  forgetPages(method: string): void {
    if (LISTS.includes(method)) this.forget(method);
  }

  clear(): void {
    for (const key of this.keys) this.results.delete(key);
    this.keys.clear();
  }

  private forget(method: string): void {
    this.generations.set(method, (this.generations.get(method) ?? 0) + 1);
  }
}

/** Params without `_meta`, which is about the one request. */
function withoutMeta(params: string): string {
  if (!params.includes('"_meta"')) return params;
  const { _meta, ...rest } = JSON.parse(params) as Record<string, unknown>;
  return JSON.stringify(rest);
}
