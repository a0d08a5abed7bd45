import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { repeat } from '../../platform/schedule/repeat.js';
import type { UpstreamHandle } from './upstream-handle.js';

/** Idle timeout of an upstream session. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** One account may hold 1/4 of the handles, so that it cannot evict those of other accounts. */
const SHARE = 4;

/** Handles of one kind in this process by key, shared by all callers and closed after 10 idle minutes. */
export class HandlePool<L extends UpstreamHandle> {
  private readonly links: LRUCache<string, { link: L; account: string }>;
  private readonly counts = new Map<string, number>();
  private readonly sweeper = repeat(SWEEP_EVERY_MS, () => this.closeIdle());
  private readonly logger: Logger;

  /** @param max limit of open handles; above it the least recently used one is dropped */
  constructor(
    name: string,
    private readonly max: number,
  ) {
    this.logger = new Logger(name);
    // One entry more than `max`: the cache must never evict a handle without closing it.
    this.links = new LRUCache({ max: max + 1 });
  }

  get size(): number {
    return this.links.size;
  }

  get(key: string): L | undefined {
    return this.links.get(key)?.link;
  }

  /** Stores `handle` for this account. A handle it replaces closes after its running calls. */
  put(key: string, link: L, account: string): void {
    this.drop(key);
    this.links.set(key, { link, account });
    const own = (this.counts.get(account) ?? 0) + 1;
    this.counts.set(account, own);
    if (own > Math.max(1, Math.floor(this.max / SHARE))) this.dropOldestOf(account);
    else if (this.links.size > this.max) this.drop(this.links.rkeys().next().value as string);
  }

  /** Removes a handle, which closes after its running calls; `forGood` when its connection or release was deleted. */
  drop(key: string, forGood = false): void {
    void this.take(key)?.retire(forGood);
  }

  /** {@link drop} for every link that matches. */
  dropWhere(matches: (link: L) => boolean, forGood = false): void {
    for (const [key, { link }] of [...this.links.entries()]) if (matches(link)) this.drop(key, forGood);
  }

  /** Clears the cached lists of matching handles. Their upstream sessions stay open. */
  forgetListsWhere(matches: (link: L) => boolean): void {
    for (const [, { link }] of this.links.entries()) if (matches(link)) link.forgetLists();
  }

  /**
   * Removes a handle and closes it at once, aborting its calls; `forGood` when its connection or release was deleted.
   */
  async end(key: string, forGood = false): Promise<void> {
    await this.take(key)?.close(forGood);
  }

  /** Closes all handles and the sweep timer. */
  async close(): Promise<void> {
    this.sweeper.stop();
    await Promise.all([...this.links.keys()].map((key) => this.end(key)));
  }

  private take(key: string): L | undefined {
    const held = this.links.peek(key);
    if (!held) return undefined;
    this.links.delete(key);
    const left = (this.counts.get(held.account) ?? 1) - 1;
    if (left === 0) this.counts.delete(held.account);
    else this.counts.set(held.account, left);
    return held.link;
  }

  /** Linear in all handles: 10 ns each, negligible beside opening a session. */
  private dropOldestOf(account: string): void {
    for (const key of this.links.rkeys()) if (this.links.peek(key)?.account === account) return this.drop(key);
  }

  private closeIdle(): void {
    const before = Date.now() - IDLE_MS;
    const idle = [...this.links.entries()].filter(([, { link }]) => link.isIdle && link.lastUsedAt < before);
    for (const [key] of idle) this.drop(key);
    if (idle.length > 0) this.logger.debug(`${idle.length} idle upstream sessions ended`);
  }
}
