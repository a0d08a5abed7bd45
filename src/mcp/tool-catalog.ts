import type { Channel } from './channel.js';
import { withinDeadline } from './deadline.js';
import { listPages, mcpLists } from './list-pages.js';

/** How long a list is believed. Legacy servers announce changes on a stream we do not hold open. */
const FRESH_MS = 30_000;

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

/** The tools of one upstream, listed once for all callers and remembered for half a minute. */
export class ToolCatalog {
  private known: { tools: ToolText[]; at: number } | null = null;
  private listing: Promise<ToolText[]> | null = null;

  constructor(private readonly channel: Channel) {}

  /** Every tool, at most {@link FRESH_MS} old. */
  async list(timeoutMs: number): Promise<ToolText[]> {
    if (this.known && Date.now() - this.known.at < FRESH_MS) return this.known.tools;
    return this.refresh(timeoutMs);
  }

  /**
   * What `path` means. The exact name wins; then the name whose dots the path spells as slashes; then all names below
   * `path.`. A list that does not know the path is read anew before that is believed.
   */
  async find(path: string, timeoutMs: number): Promise<ToolMatch> {
    const found = matchTool(await this.list(timeoutMs), path);
    if (found || (this.known && Date.now() - this.known.at < REFRESH_MS_MIN)) return found;
    return matchTool(await this.refresh(timeoutMs), path);
  }

  /** The upstream says that its list has changed: it is read anew when it is asked for next. */
  forget(): void {
    this.known = null;
  }

  private refresh(timeoutMs: number): Promise<ToolText[]> {
    this.listing ??= readAll(this.channel)
      .then((tools) => {
        this.known = { tools, at: Date.now() };
        return tools;
      })
      .finally(() => (this.listing = null));
    return withinDeadline(this.listing, timeoutMs, 'The MCP server did not list its tools in time.');
  }
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

async function readAll(channel: Channel): Promise<ToolText[]> {
  const tools: ToolText[] = [];
  let pages = 0;
  for await (const { items } of listPages(channel, mcpLists.tools, LIST_TIMEOUT_MS)) {
    tools.push(...items.flatMap(toToolText));
    pages += 1;
    if (pages === PAGES_MAX || tools.length >= TOOLS_MAX) break;
  }
  return tools.slice(0, TOOLS_MAX);
}

/** What is no tool is passed over. */
function toToolText(text: string): ToolText[] {
  const name = (JSON.parse(text) as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? [{ name, text }] : [];
}
