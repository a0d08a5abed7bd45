import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { UpstreamHandle } from './upstream-handle.js';

/** An upstream session nobody uses is ended after this long. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** One account may hold a quarter of the links, so that it cannot push out everybody else's. */
const SHARE = 4;

/** The links of one kind in this process, by key: shared by all callers, ended when nobody uses them. */
export class HandlePool<L extends UpstreamHandle> {
  private readonly links: LRUCache<string, { link: L; account: string }>;
  private readonly counts = new Map<string, number>();
  private readonly sweeper = setInterval(() => this.closeIdle(), SWEEP_EVERY_MS).unref();
  private readonly logger: Logger;

  /** @param max links held at most: beyond it the one that was asked for least recently goes */
  constructor(
    name: string,
    private readonly max: number,
  ) {
    this.logger = new Logger(name);
    // One more, so that the cache itself never lets go of a link that nobody ends.
    this.links = new LRUCache({ max: max + 1 });
  }

  get size(): number {
    return this.links.size;
  }

  get(key: string): L | undefined {
    return this.links.get(key)?.link;
  }

  /** Holds `link` for this account from now on. One that it replaces closes when its calls are over. */
  put(key: string, link: L, account: string): void {
    this.drop(key);
    this.links.set(key, { link, account });
    const own = (this.counts.get(account) ?? 0) + 1;
    this.counts.set(account, own);
    if (own > Math.max(1, Math.floor(this.max / SHARE))) this.dropOldestOf(account);
    else if (this.links.size > this.max) this.drop(this.links.rkeys().next().value as string);
  }

  /** Forgets a link, which closes when its calls are over; `forGood` when what it led to is gone. */
  drop(key: string, forGood = false): void {
    void this.take(key)?.retire(forGood);
  }

  /** {@link drop} for every link that matches. */
  dropWhere(matches: (link: L) => boolean, forGood = false): void {
    for (const [key, { link }] of [...this.links.entries()]) if (matches(link)) this.drop(key, forGood);
  }

  /** What the links that match remember of their upstreams' lists is asked for anew. Their sessions stay. */
  forgetListsWhere(matches: (link: L) => boolean): void {
    for (const [, { link }] of this.links.entries()) if (matches(link)) link.forgetLists();
  }

  /** Forgets a link and closes it now, calls or not; `forGood` when what it led to is gone. */
  async end(key: string, forGood = false): Promise<void> {
    await this.take(key)?.close(forGood);
  }

  /** Ends everything. */
  async close(): Promise<void> {
    clearInterval(this.sweeper);
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

  /** Looks through those of others that nobody asked for either: 10 ns each, beside the session that is being opened. */
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
