import type { Channel, McpReply } from './channel.js';
import { deadlineIn, withinDeadline } from './deadline.js';
import { elements, members, slice, type Span } from './json-text.js';
import { UpstreamError } from './mcp-errors.js';
import { rpcCode } from './protocol.js';

/** How long a list is believed. Legacy servers announce changes on a stream we do not hold open. */
const FRESH_MS = 30_000;

/** Not asked again sooner, however many callers name tools that do not exist. */
const REFRESH_MS_MIN = 1_000;

/** What is read of an endless list: pages as the official SDK caps them, and tools. */
const PAGES_MAX = 64;
const TOOLS_MAX = 10_000;
const LIST_CHARS_MAX = 16 * 1024 * 1024;

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
  const left = deadlineIn(LIST_TIMEOUT_MS);
  const tools: ToolText[] = [];
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page += 1) {
    const reply = await channel.request({
      method: 'tools/list',
      params: cursor === undefined ? undefined : JSON.stringify({ cursor }),
      timeoutMs: left(),
    });
    chars += reply.text.length;
    if (chars > LIST_CHARS_MAX) throw new UpstreamError('The MCP server lists more than 16 MB of tools.');
    if (reply.error?.code === rpcCode.methodNotFound) return tools;
    const read = readPage(reply);
    tools.push(...read.tools);
    if (read.nextCursor === undefined) return tools;
    cursor = read.nextCursor;
  }
  return tools.slice(0, TOOLS_MAX);
}

/** One page of a list. What is no tool in it is passed over. @throws UpstreamError when it is no list */
function readPage({ text, result, error }: McpReply): { tools: ToolText[]; nextCursor?: string } {
  if (error)
    throw new UpstreamError(`The MCP server refused to list its tools: ${error.message.slice(0, 300)}`, {
      code: error.code,
    });
  const parts = result && text[result[0]] === '{' ? members(text, result[0]) : new Map<string, Span>();
  const list = parts.get('tools');
  if (!list || text[list[0]] !== '[') {
    throw new UpstreamError('The MCP server listed its tools in a form that is not MCP.');
  }
  const tools = elements(text, list[0]).flatMap((span) => {
    const tool = slice(text, span);
    const name = (JSON.parse(tool) as { name?: unknown } | null)?.name;
    return typeof name === 'string' ? [{ name, text: tool }] : [];
  });
  const next = parts.get('nextCursor');
  const nextCursor: unknown = next && JSON.parse(slice(text, next));
  return typeof nextCursor === 'string' ? { tools, nextCursor } : { tools };
}
