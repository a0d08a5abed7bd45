import type { Channel } from '../protocol/channel.js';
import { withinDeadline } from '../protocol/deadline.js';
import { listPages, mcpLists } from '../protocol/list-pages.js';

/** How long a list is believed whose server does not say how long it stays good. */
const FRESH_MS = 30_000;

/** However long a server says. */
const FRESH_MS_MAX = 60 * 60_000;

/** Not asked again sooner, however many callers name tools that do not exist. */
const REFRESH_MS_MIN = 1_000;

/** What is read of an endless list: pages as the official SDK caps them, and tools. */
const PAGES_MAX = 64;
const TOOLS_MAX = 10_000;

/** The list is read for all who wait for it, so its own time does not depend on who asked first. */
const LIST_TIMEOUT_MS = 30_000;

/** One tool as its server describes it. */
export interface ToolText {
  name: string;
  /** The whole description as JSON text, unknown fields included. */
  text: string;
}

/** What a tool path means: one tool, the tools of a category, or nothing. */
export type ToolMatch = { tool: ToolText } | { category: ToolText[] } | null;

/** What was listed, when, and how long its server says that it stays good. */
interface Listed {
  tools: ToolText[];
  at: number;
  ttlMs: number | null;
}

/** The tools of one upstream, listed once for all callers and remembered as long as it says, or half a minute. */
export class ToolCatalog {
  private known: Listed | null = null;
  private listing: Promise<Listed> | null = null;

  constructor(private readonly channel: Channel) {}

  /** Every tool, no older than the upstream allows, or half a minute if it does not say. */
  async list(timeoutMs: number): Promise<ToolText[]> {
    if (this.known && isFresh(this.known, this.known.ttlMs ?? FRESH_MS)) return this.known.tools;
    return this.refresh(timeoutMs);
  }

  /** The upstream says that its tools changed: the list is read anew when it is needed. */
  forget(): void {
    this.known = null;
    this.listing = null;
  }

  /**
   * What `path` means. The exact name wins; then the name whose dots the path spells as slashes; then all names below
   * `path.`. A list that does not know the path is read anew before that is believed.
   */
  async find(path: string, timeoutMs: number): Promise<ToolMatch> {
    // To name a tool a list may be older than its server allows: a name it lacks is looked for in a new one.
    const isKnown = this.known && isFresh(this.known, Math.max(this.known.ttlMs ?? 0, FRESH_MS));
    const found = matchTool(isKnown && this.known ? this.known.tools : await this.list(timeoutMs), path);
    if (found || (this.known && Date.now() - this.known.at < REFRESH_MS_MIN)) return found;
    return matchTool(await this.refresh(timeoutMs), path);
  }

  private async refresh(timeoutMs: number): Promise<ToolText[]> {
    this.listing ??= this.readAll();
    const late = 'The MCP server did not list its tools in time.';
    return (await withinDeadline(this.listing, timeoutMs, late)).tools;
  }

  private readAll(): Promise<Listed> {
    const isWanted = () => this.listing === reading;
    const reading: Promise<Listed> = readAll(this.channel)
      .then((listed) => {
        if (isWanted()) this.known = listed;
        return listed;
      })
      .finally(() => {
        if (isWanted()) this.listing = null;
      });
    return reading;
  }
}

function isFresh({ at }: Listed, ms: number): boolean {
  return Date.now() - at < Math.min(ms, FRESH_MS_MAX);
}

/** See {@link ToolCatalog.find}. */
export function matchTool(tools: ToolText[], path: string): ToolMatch {
  const dotted = path.replaceAll('/', '.');
  const tool =
    tools.find(({ name }) => name === path) ?? tools.find(({ name }) => name.replaceAll('/', '.') === dotted);
  if (tool) return { tool };
  const category = tools.filter(({ name }) => name.replaceAll('/', '.').startsWith(`${dotted}.`));
  return category.length > 0 ? { category } : null;
}

async function readAll(channel: Channel): Promise<Listed> {
  const tools: ToolText[] = [];
  let pages = 0;
  let ttlMs: number | null = null;
  for await (const page of listPages(channel, mcpLists.tools, LIST_TIMEOUT_MS)) {
    tools.push(...page.items.flatMap(toToolText));
    if (page.ttlMs !== undefined) ttlMs = Math.min(ttlMs ?? page.ttlMs, page.ttlMs);
    pages += 1;
    if (pages === PAGES_MAX || tools.length >= TOOLS_MAX) break;
  }
  return { tools: tools.slice(0, TOOLS_MAX), at: Date.now(), ttlMs };
}

/** What is no tool is passed over. */
function toToolText(text: string): ToolText[] {
  const name = (JSON.parse(text) as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? [{ name, text }] : [];
}
