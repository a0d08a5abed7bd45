/**
 * Tools of one upstream, listed once for all callers and cached for the server's `ttlMs` (at most an hour), by default
 * 30 s. `notifications/tools/list_changed` empties it.
 *
 * `find` resolves the path of a call by REST, such as `issues/create`: the exact name wins, then the name whose dots
 * the path spells as slashes, then all names under `path.` as a category. A name that is not in the list causes a
 * refresh, at most one a second, since the server might have added the tool without a notification.
 *
 * Listing has its own timeout (30 s), independent of the first caller; a caller that times out first gets an
 * UpstreamTimeoutError.
 */
import type { Channel } from '../../protocol/channel.js';
import { withinDeadline } from '../../protocol/deadline.js';
import { mcpLists, readList, type LeftOutItem, type ListItem } from '../../protocol/list-pages.js';
import { TTL_MS_MAX } from '../../protocol/protocol.js';

const FRESH_MS = 30_000;

const REFRESH_MS_MIN = 1_000;

const LIST_TIMEOUT_MS = 30_000;

export type ToolMatch = { tool: ListItem } | { category: ListItem[] } | null;

interface Listed {
  tools: ListItem[];
  leftOut: LeftOutItem[];
  at: number;
  ttlMs: number | null;
}

export class ToolCatalog {
  private cached: Listed | null = null;
  private listing: Promise<Listed> | null = null;

  constructor(private readonly channel: Pick<Channel, 'request'>) {}

  async list(timeoutMs = LIST_TIMEOUT_MS): Promise<ListItem[]> {
    if (this.cached && isFresh(this.cached, this.cached.ttlMs ?? FRESH_MS)) return this.cached.tools;
    return this.refresh(timeoutMs);
  }

  get names(): string[] {
    return this.cached?.tools.map(({ name }) => name) ?? [];
  }

  /** Returns the list however old it is; null before the first one. */
  get last(): ListItem[] | null {
    return this.cached?.tools ?? null;
  }

  /** Items that the server listed last and that are not valid tools. */
  get leftOut(): LeftOutItem[] {
    return this.cached?.leftOut ?? [];
  }

  forget(): void {
    this.cached = null;
    this.listing = null;
  }

  /** Finds a tool by the rules of the file header. */
  async find(path: string, timeoutMs: number): Promise<ToolMatch> {
    // Resolving accepts an older list than `ttlMs` allows: a missing name causes a refresh.
    const isKnown = this.cached && isFresh(this.cached, Math.max(this.cached.ttlMs ?? 0, FRESH_MS));
    const match = matchTool(isKnown && this.cached ? this.cached.tools : await this.list(timeoutMs), path);
    if (match || (this.cached && Date.now() - this.cached.at < REFRESH_MS_MIN)) return match;
    return matchTool(await this.refresh(timeoutMs), path);
  }

  private async refresh(timeoutMs: number): Promise<ListItem[]> {
    this.listing ??= this.readAll();
    const late = 'The MCP server did not list its tools in time.';
    return (await withinDeadline(this.listing, timeoutMs, late)).tools;
  }

  private readAll(): Promise<Listed> {
    const isWanted = () => this.listing === reading;
    const reading: Promise<Listed> = readList(this.channel, mcpLists.tools, LIST_TIMEOUT_MS)
      .then(({ items: tools, leftOut, ttlMs }) => {
        const listed = { tools, leftOut, at: Date.now(), ttlMs };
        if (isWanted()) this.cached = listed;
        return listed;
      })
      .finally(() => {
        if (isWanted()) this.listing = null;
      });
    return reading;
  }
}

function isFresh({ at }: Listed, ms: number): boolean {
  return Date.now() - at < Math.min(ms, TTL_MS_MAX);
}

export function matchTool(tools: ListItem[], path: string): ToolMatch {
  const dotted = path.replaceAll('/', '.');
  // A name can have megabytes.
  const beginning = (name: string) => name.slice(0, dotted.length + 1).replaceAll('/', '.');
  const tool = tools.find(({ name }) => name === path) ?? tools.find(({ name }) => beginning(name) === dotted);
  if (tool) return { tool };
  const category = tools.filter(({ name }) => beginning(name) === `${dotted}.`);
  return category.length > 0 ? { category } : null;
}
