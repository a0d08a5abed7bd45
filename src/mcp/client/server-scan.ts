import { DEPTH_MAX } from '../../platform/database/storable.js';
import { isWithinDepth } from '../../platform/text/json.js';
import { quoted } from '../../platform/text/quoted.js';
import type { Channel } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { listPages, mcpLists, type ListKind } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** A server that offers more is refused, not cut: what was not scanned would still be served to clients. */
const ITEMS_MAX = 1_000;

/** Pages may be small or empty, but not without end. */
const PAGES_MAX = 1_000;

/** Of what is left out, this many are told one by one. */
const TOLD_MAX = 20;

/** What a server tells of itself. Each list is null when the server does not declare to have it. */
export interface ServerScan extends UpstreamIdentity {
  /** Items as the server wrote them, unknown members included; each has a name, resources and templates their URI too. */
  tools: Record<string, unknown>[] | null;
  resources: Record<string, unknown>[] | null;
  resourceTemplates: Record<string, unknown>[] | null;
  prompts: Record<string, unknown>[] | null;
}

export interface ScanOptions {
  /** For the whole scan. */
  timeoutMs: number;
  /** Hears what happens, in sentences for the publisher. */
  onProgress?(message: string): void;
}

/**
 * Asks a server for everything it offers, without calling any of it. Only lists it declares are asked for; one it then
 * does not know counts as empty. Items nobody could use, because they have no name, are left out and told. The channel
 * stays open.
 *
 * @throws UpstreamFailure when the server cannot be reached, refuses a list, or its lists have no end: a cursor that comes
 * twice, more than 1,000 items or 16 MB
 */
export async function scanServer(channel: Channel, options: ScanOptions): Promise<ServerScan> {
  const scan = new Scan(channel, options);
  return scan.run();
}

/** What an item must have to be usable, besides its name. */
const addressOf: Partial<Record<string, string>> = { resources: 'uri', resourceTemplates: 'uriTemplate' };

class Scan {
  /** Each request is given what is left of the time; when it is over, a millisecond, which ends the scan. */
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
    const hello = await this.channel.open(this.left());
    const { capabilities, serverInfo, protocolVersion, era } = hello;
    this.tell(
      `Connected to ${quoted(serverInfo.name)} ${quoted(serverInfo.version)} with MCP ${protocolVersion} (${era}).`,
    );
    const list = (kind: ListKind, capability: string) =>
      isDeclared(capabilities[capability]) ? this.list(kind) : Promise.resolve(null);
    return {
      ...hello,
      tools: await list(mcpLists.tools, 'tools'),
      resources: await list(mcpLists.resources, 'resources'),
      resourceTemplates: await list(mcpLists.resourceTemplates, 'resources'),
      prompts: await list(mcpLists.prompts, 'prompts'),
    };
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

  private usable({ member, noun }: ListKind, texts: string[], from: number): Record<string, unknown>[] {
    const one = noun.slice(0, -1);
    const address = addressOf[member];
    let left = 0;
    const items = texts.flatMap((text, at) => {
      const item = JSON.parse(text) as Record<string, unknown>;
      const fault = faultOf(item, address);
      if (fault === null) {
        requireShallow(item, one);
        return [item];
      }
      left += 1;
      if (left <= TOLD_MAX) this.tell(`Left out ${one} number ${from + at + 1}: it ${fault}.`);
      return [];
    });
    if (left > TOLD_MAX) this.tell(`Left out ${left - TOLD_MAX} more ${noun} for such reasons.`);
    return items;
  }
}

/** `{}` declares; null and false do not, whatever the protocol says of them: servers write them. */
function isDeclared(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
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

/** Why an item is of no use, as the end of a sentence; null when it is of use. */
function faultOf(item: unknown, address: string | undefined): string | null {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return 'is no object';
  for (const member of address === undefined ? ['name'] : ['name', address]) {
    const value = (item as Record<string, unknown>)[member];
    if (typeof value !== 'string' || value === '') return `has no ${member}`;
  }
  return null;
}

/** An item that cannot be stored must not pass unseen: clients could still use it. Real schemas stay below 60 levels. */
function requireShallow(item: unknown, one: string): void {
  if (isWithinDepth(item, DEPTH_MAX)) return;
  throw new UpstreamError(`The MCP server lists a ${one} that is nested deeper than ${DEPTH_MAX} levels.`);
}
