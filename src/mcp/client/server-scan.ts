import { DEPTH_MAX } from '../../platform/database/storable.js';
import { isObject, isWithinDepth } from '../../platform/text/json.js';
import { quoted } from '../../platform/text/quoted.js';
import type { Channel } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { isDeclared, listPages, mcpLists, type ListKind } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** Limit of items per list. A larger list is refused instead of cut, because unscanned items would still be served. */
const ITEMS_MAX = 1_000;

/** Limit of pages per list; pages may be small or empty. */
const PAGES_MAX = 1_000;

/** Limit of omitted items reported individually. */
const REPORTED_MAX = 20;

/** Identity and lists of a server. A list is null when the server does not declare its capability. */
export interface ServerScan extends UpstreamIdentity {
  /** Items as the server sent them, with unknown members; each has a name, resources and templates also their URI. */
  tools: Record<string, unknown>[] | null;
  resources: Record<string, unknown>[] | null;
  resourceTemplates: Record<string, unknown>[] | null;
  prompts: Record<string, unknown>[] | null;
}

export interface ScanOptions {
  /** Timeout of the whole scan. */
  timeoutMs: number;
  /** Receives progress as sentences for the publisher. */
  onProgress?(message: string): void;
}

/**
 * Reads all lists of a server without calling its tools. Requests only declared lists; one that the server then does
 * not know counts as empty, and so does one other than the tools that it refuses or breaks. Omits and reports items without
 * a name. Leaves the channel open.
 *
 * @throws UpstreamFailure when the server is unreachable, refuses its tools, repeats a cursor, or lists more than 1,000
 * items or 16 MB
 */
export async function scanServer(channel: Channel, options: ScanOptions): Promise<ServerScan> {
  const scan = new Scan(channel, options);
  return scan.run();
}

class Scan {
  /** Rest of the timeout for each request, at least 1 ms, which then ends the scan. */
  private readonly left: () => number;
  private readonly tell: (message: string) => void;

  constructor(
    private readonly channel: Channel,
    options: ScanOptions,
  ) {
    this.left = deadlineIn(options.timeoutMs);
    this.tell = (message) => options.onProgress?.(message);
  }

  async run(): Promise<ServerScan> {
    const identity = await this.channel.open(this.left());
    const { capabilities, serverInfo, protocolVersion, era } = identity;
    this.tell(
      `Connected to ${quoted(serverInfo.name)} ${quoted(serverInfo.version)} with MCP ${protocolVersion} (${era}).`,
    );
    const list = (kind: ListKind) =>
      isDeclared(capabilities[kind.capability]) ? this.list(kind) : Promise.resolve(null);
    const optional = (kind: ListKind) => list(kind).catch((error: unknown) => this.withoutList(kind, error));
    return {
      ...identity,
      tools: await list(mcpLists.tools),
      resources: await optional(mcpLists.resources),
      resourceTemplates: await optional(mcpLists.resourceTemplates),
      prompts: await optional(mcpLists.prompts),
    };
  }

  /** Reports a list that the server refuses or breaks, and counts it as empty. @throws the error of any other failure */
  private withoutList({ noun }: ListKind, error: unknown): [] {
    if (!(error instanceof UpstreamError) || error.hint !== 'broken list') throw error;
    this.tell(`Warning: the list of ${noun} counts as empty. ${error.message}`);
    return [];
  }

  private async list(kind: ListKind): Promise<Record<string, unknown>[]> {
    const { noun, method } = kind;
    const items: Record<string, unknown>[] = [];
    const cursors = new Set<string>();
    let read = 0;
    for await (const page of listPages(this.channel, kind, this.left())) {
      if (page.isUnknown) {
        this.tell(`The server declares ${noun} but does not know ${method}: it counts as having none.`);
        return [];
      }
      read += page.items.length;
      if (read > ITEMS_MAX) {
        throw new UpstreamError(`The MCP server lists more than ${ITEMS_MAX} ${noun}: that is all a release may have.`);
      }
      items.push(...this.usable(kind, page.items, read - page.items.length));
      requireEnd(noun, cursors, page.nextCursor);
    }
    this.tell(`Found ${items.length} ${items.length === 1 ? noun.slice(0, -1) : noun}.`);
    return items;
  }

  private usable({ id, noun }: ListKind, texts: string[], from: number): Record<string, unknown>[] {
    const singular = noun.slice(0, -1);
    let omitted = 0;
    const items = texts.flatMap((text, at) => {
      const item = JSON.parse(text) as Record<string, unknown>;
      const fault = faultOf(item, id);
      if (fault === null) {
        requireShallow(item, singular);
        return [item];
      }
      omitted += 1;
      if (omitted <= REPORTED_MAX) this.tell(`Left out ${singular} number ${from + at + 1}: it ${fault}.`);
      return [];
    });
    if (omitted > REPORTED_MAX) this.tell(`Left out ${omitted - REPORTED_MAX} more ${noun} for such reasons.`);
    return items;
  }
}

function requireEnd(noun: string, cursors: Set<string>, nextCursor: string | undefined): void {
  if (nextCursor === undefined) return;
  if (cursors.has(nextCursor)) {
    throw new UpstreamError(
      `The MCP server lists its ${noun} in a circle: the cursor ${quoted(nextCursor)} came twice. ` +
        'Leave out nextCursor on the last page.',
    );
  }
  cursors.add(nextCursor);
  if (cursors.size >= PAGES_MAX) {
    throw new UpstreamError(`The MCP server lists its ${noun} in more than ${PAGES_MAX} pages: make them larger.`);
  }
}

/** Reason why an item is unusable, as the end of a sentence; null if it is usable. */
function faultOf(item: unknown, id: string): string | null {
  if (!isObject(item)) return 'is not an object';
  for (const member of ['name', id]) {
    const value = item[member];
    if (typeof value !== 'string' || value === '') return `has no ${member}`;
  }
  return null;
}

/** Throws for an item too deep to store: omitting it would hide a usable item. Real schemas stay below 60 levels. */
function requireShallow(item: unknown, singular: string): void {
  if (isWithinDepth(item, DEPTH_MAX)) return;
  throw new UpstreamError(`The MCP server lists a ${singular} that is nested deeper than ${DEPTH_MAX} levels.`);
}
