/**
 * Handles of one kind (connections, or releases) in this process, by key. All callers of a key share its handle, which
 * has the upstream sessions.
 *
 * A handle closes after 10 idle minutes, when its connection or release changes (after its running calls), or when it
 * is closed immediately, with its calls. Above `max` the least recently used handle closes. One account has at most a
 * quarter of `max`, so that it cannot evict those of others.
 */
import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { repeat } from '../../platform/schedule/repeat.js';
import type { UpstreamHandle } from './upstream-handle.js';

const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

const SHARE = 4;

export class HandlePool<H extends UpstreamHandle> {
  private readonly handles: LRUCache<string, { handle: H; account: string }>;
  /** Keys of each account, the least recently used first. */
  private readonly keysOf = new Map<string, Set<string>>();
  private readonly sweeper = repeat(SWEEP_EVERY_MS, () => {
    const before = Date.now() - IDLE_MS;
    const idle = [...this.handles.entries()].filter(([, { handle }]) => handle.isIdle && handle.lastUsedAt < before);
    for (const [key] of idle) this.drop(key);
    if (idle.length > 0) this.logger.debug(`${idle.length} idle upstream sessions closed`);
  });
  private readonly logger: Logger;

  constructor(
    name: string,
    private readonly max: number,
  ) {
    this.logger = new Logger(name);
    // One entry more than `max`: the cache must never evict a handle without closing it.
    this.handles = new LRUCache({ max: max + 1 });
  }

  get size(): number {
    return this.handles.size;
  }

  *values(): Iterable<H> {
    for (const { handle } of this.handles.values()) yield handle;
  }

  get(key: string): H | undefined {
    const entry = this.handles.get(key);
    if (entry) this.touch(key, entry.account);
    return entry?.handle;
  }

  /** Stores a handle. A replaced one closes after its running calls. */
  put(key: string, handle: H, account: string): void {
    this.drop(key);
    this.handles.set(key, { handle, account });
    const keys = this.touch(key, account);
    if (keys.size > Math.max(1, Math.floor(this.max / SHARE))) this.drop(keys.values().next().value as string);
    else if (this.handles.size > this.max) this.drop(this.handles.rkeys().next().value as string);
  }

  /** Closes a handle after its running calls. `forGood` is true if its connection or release was deleted. */
  drop(key: string, forGood = false): void {
    void this.remove(key)?.retire(forGood);
  }

  dropWhere(matches: (handle: H) => boolean, forGood = false): void {
    for (const [key, { handle }] of [...this.handles.entries()]) if (matches(handle)) this.drop(key, forGood);
  }

  /** Drops cached lists; upstream sessions stay open. */
  forgetListsWhere(matches: (handle: H) => boolean): void {
    for (const [, { handle }] of this.handles.entries()) if (matches(handle)) handle.forgetLists();
  }

  /** Aborts running calls; `forGood` when the connection or release was deleted. */
  async closeHandle(key: string, forGood = false): Promise<void> {
    await this.remove(key)?.close(forGood);
  }

  /** This method never throws. */
  endWhere(matches: (handle: H) => boolean, forGood = false): void {
    for (const [key, { handle }] of [...this.handles.entries()]) {
      if (matches(handle))
        this.closeHandle(key, forGood).catch((err: unknown) => this.logger.debug({ msg: 'an end failed', err }));
    }
  }

  async close(): Promise<void> {
    this.sweeper.stop();
    await Promise.all([...this.handles.keys()].map((key) => this.closeHandle(key)));
  }

  /** @returns the keys of the account */
  private touch(key: string, account: string): Set<string> {
    const keys = this.keysOf.get(account) ?? new Set();
    this.keysOf.set(account, keys);
    keys.delete(key);
    return keys.add(key);
  }

  private remove(key: string): H | undefined {
    const entry = this.handles.peek(key);
    if (!entry) return undefined;
    this.handles.delete(key);
    const keys = this.keysOf.get(entry.account);
    keys?.delete(key);
    if (keys?.size === 0) this.keysOf.delete(entry.account);
    return entry.handle;
  }
}
