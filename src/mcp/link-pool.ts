import { Logger } from '@nestjs/common';
import type { Link } from './link.js';

/** An upstream session nobody uses is ended after this long. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** The links of one kind in this process, by key: shared by all callers, ended when nobody uses them. */
export class LinkPool<L extends Link> {
  private readonly links = new Map<string, L>();
  private readonly sweeper = setInterval(() => this.closeIdle(), SWEEP_EVERY_MS).unref();
  private readonly logger: Logger;

  /** @param max links held at most: beyond it the one that was asked for least recently goes */
  constructor(
    name: string,
    private readonly max: number,
  ) {
    this.logger = new Logger(name);
  }

  get(key: string): L | undefined {
    const link = this.links.get(key);
    if (link) {
      // A Map keeps its keys in order of arrival, so the first one is the one nobody asked for the longest.
      this.links.delete(key);
      this.links.set(key, link);
    }
    return link;
  }

  /** Holds `link` from now on. One that it replaces closes when its calls are over. */
  put(key: string, link: L): void {
    this.drop(key);
    this.links.set(key, link);
    if (this.links.size > this.max) this.drop(this.links.keys().next().value as string);
  }

  /** Forgets a link, which closes when its calls are over; `forGood` when what it led to is gone. */
  drop(key: string, forGood = false): void {
    const link = this.links.get(key);
    this.links.delete(key);
    void link?.retire(forGood);
  }

  /** {@link drop} for every link that matches. */
  dropWhere(matches: (link: L) => boolean, forGood = false): void {
    for (const [key, link] of this.links) if (matches(link)) this.drop(key, forGood);
  }

  /** What the links that match remember of their upstreams' lists is asked for anew. Their sessions stay. */
  forgetListsWhere(matches: (link: L) => boolean): void {
    for (const link of this.links.values()) if (matches(link)) link.forgetLists();
  }

  /** Forgets a link and closes it now, calls or not; `forGood` when what it led to is gone. */
  async end(key: string, forGood = false): Promise<void> {
    const link = this.links.get(key);
    this.links.delete(key);
    await link?.close(forGood);
  }

  /** Ends everything. */
  async close(): Promise<void> {
    clearInterval(this.sweeper);
    await Promise.all([...this.links.keys()].map((key) => this.end(key)));
  }

  private closeIdle(): void {
    const before = Date.now() - IDLE_MS;
    const idle = [...this.links].filter(([, link]) => link.isIdle && link.lastUsedAt < before);
    for (const [key] of idle) this.drop(key);
    if (idle.length > 0) this.logger.debug(`${idle.length} idle upstream sessions ended`);
  }
}
