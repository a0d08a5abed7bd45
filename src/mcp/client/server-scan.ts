import { DEPTH_MAX } from '../../platform/database/storable.js';
import { isObject, isWithinDepth } from '../../platform/text/json.js';
import { quote } from '../../platform/text/quoted.js';
import type { Channel } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { isDeclared, listPages, mcpLists, PAGES_MAX, type ListKind } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';
import { ITEMS_MAX } from './server-card.js';

/** Lists of a server. A list is null when the server does not declare its capability. */
export interface ServerScan extends UpstreamIdentity {
  /** Items as the server sent them, with unknown members; each has a name, resources and templates also their URI. */
  tools: Record<string, unknown>[] | null;
  resources: Record<string, unknown>[] | null;
  resourceTemplates: Record<string, unknown>[] | null;
  prompts: Record<string, unknown>[] | null;
}

export interface ScanOptions {
  timeoutMs: number;
  onProgress?(message: string): void;
}

/**
 * Reads all lists of a server without calling its tools. Requests only declared lists. A list that the server does not
 * know is treated as empty, as is any list other than the tools that it rejects or sends malformed. Omits and reports
 * items without a name, and those nested beyond 100 levels.
 *
 * The first of items with equal names is used. Reading stops, with a warning, at a repeated cursor or after 64 pages,
 * 1,000 items or 16 MB.
 *
 * @throws UpstreamFailure when the server is unreachable, or rejects the request for its tools
 */
export async function scanServer(channel: Channel, options: ScanOptions): Promise<ServerScan> {
  return new Scan(channel, options).run();
}

class Scan {
  private readonly timeLeft: () => number;
  private readonly tell: (message: string) => void;

  constructor(
    private readonly channel: Channel,
    options: ScanOptions,
  ) {
    this.timeLeft = deadlineIn(options.timeoutMs);
    this.tell = (message) => options.onProgress?.(message);
  }

  async run(): Promise<ServerScan> {
    const identity = await this.channel.open(this.timeLeft());
    const { capabilities, serverInfo, protocolVersion, era } = identity;
    this.tell(
      `Connected to ${quote(serverInfo.name)} ${quote(serverInfo.version)} with MCP ${protocolVersion} (${era}).`,
    );
    const list = (kind: ListKind) =>
      isDeclared(capabilities[kind.capability]) ? this.list(kind) : Promise.resolve(null);
    const optional = (kind: ListKind) =>
      list(kind).catch((error: unknown) => {
        if (!(error instanceof UpstreamError) || error.failure !== 'broken list') throw error;
        this.tell(`Warning: the list of ${kind.noun} counts as empty. ${error.message}`);
        return [];
      });
    return {
      ...identity,
      tools: await list(mcpLists.tools),
      resources: await optional(mcpLists.resources),
      resourceTemplates: await optional(mcpLists.resourceTemplates),
      prompts: await optional(mcpLists.prompts),
    };
  }

  private async list(kind: ListKind): Promise<Record<string, unknown>[]> {
    const { noun, method } = kind;
    const items: Record<string, unknown>[] = [];
    const names = new Set<string>();
    let [pages, read] = [0, 0];
    for await (const page of listPages(this.channel, kind, this.timeLeft())) {
      if (page.isUnknown) {
        this.tell(`The server declares ${noun} but does not know ${method}: it counts as having none.`);
        return [];
      }
      read += page.items.length;
      items.push(...this.usable(kind, page.items, read - page.items.length, names));
      for (const { name, reason } of page.leftOut ?? []) {
        this.tell(`Left out the ${noun.slice(0, -1)} ${name === null ? 'without a name' : quote(name)}: ${reason}.`);
      }
      if (items.length > ITEMS_MAX) {
        items.length = ITEMS_MAX;
        this.tell(
          `Warning: the server lists more than ${ITEMS_MAX} ${noun}. The list ends there: a release has no more.`,
        );
        break;
      }
      if (page.repeatedCursor !== undefined) {
        this.tell(
          `Warning: the server lists its ${noun} in a circle: the cursor ${quote(page.repeatedCursor)} came twice. The list ` +
            'ends there. Leave out nextCursor on the last page.',
        );
      }
      if (page.failure !== undefined) this.tell(`Warning: the list of ${noun} is incomplete: ${page.failure}`);
      pages += 1;
      if (pages >= PAGES_MAX && page.nextCursor !== undefined) {
        this.tell(
          `Warning: the server lists its ${noun} in more than ${PAGES_MAX} pages. The list ends there: make the pages larger.`,
        );
        break;
      }
    }
    this.tell(`Found ${items.length} ${items.length === 1 ? noun.slice(0, -1) : noun}.`);
    return items;
  }

  private usable({ id, noun }: ListKind, items: string[], from: number, names: Set<string>): Record<string, unknown>[] {
    const singular = noun.slice(0, -1);
    return items.flatMap((text, at) => {
      const item = JSON.parse(text) as Record<string, unknown>;
      const lacking = isObject(item)
        ? ['name', id].find((member) => typeof item[member] !== 'string' || item[member] === '')
        : null;
      const name = lacking === undefined ? (item[id] as string) : '';
      const isDeep = lacking === undefined && !isWithinDepth(item, DEPTH_MAX);
      if (lacking === undefined && !isDeep && !names.has(name)) {
        names.add(name);
        return [item];
      }
      const problem =
        lacking === null
          ? 'is not an object'
          : isDeep
            ? `is nested deeper than ${DEPTH_MAX} levels (${quote(name)})`
            : lacking === undefined
              ? `has the ${id} ${quote(name)} of an earlier one`
              : `has no ${lacking}`;
      this.tell(`Left out ${singular} number ${from + at + 1}: it ${problem}.`);
      return [];
    });
  }
}
