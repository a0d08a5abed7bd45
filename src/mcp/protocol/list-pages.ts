import type { Channel, McpReply, ListenFilter } from './channel.js';
import { deadlineIn } from './deadline.js';
import { elements, members, slice, type Span } from './json-text.js';
import { UpstreamError } from './mcp-errors.js';
import { rpcCode } from './protocol.js';
import { completeOrRefuse } from './messages.js';

/** What is read of one list in all; a single answer may be as large. */
const LIST_BYTES_MAX = 16 * 1024 * 1024;

/** The part of a filter that one list is. */
type ListFlag = Exclude<keyof ListenFilter, 'resourceSubscriptions'>;

/** The lists whose changes are told, by the notification that tells, in the words of `subscriptions/listen`. */
export const listChanges: ReadonlyMap<string, ListFlag> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
]);

/** Tells that a resource changed, to those who subscribed to it. */
export const RESOURCE_UPDATED = 'notifications/resources/updated';

/** A list that servers give in pages. */
export interface ListKind {
  method: string;
  /** The member of the result that holds the items. */
  member: string;
  /** What the list holds, for sentences. */
  noun: string;
}

/** The four lists of MCP, by the names their items have in a server card. */
export const mcpLists = {
  tools: { method: 'tools/list', member: 'tools', noun: 'tools' },
  resources: { method: 'resources/list', member: 'resources', noun: 'resources' },
  resourceTemplates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    noun: 'resource templates',
  },
  prompts: { method: 'prompts/list', member: 'prompts', noun: 'prompts' },
} as const satisfies Record<string, ListKind>;

/** One page of a list. */
export interface ListPage {
  /** Each item as the server wrote it, as JSON text of any kind. */
  items: string[];
  /** Asks for the next page; absent on the last one. */
  nextCursor?: string;
  /** How long the server says that the page stays good, in milliseconds; absent when it does not say. */
  ttlMs?: number;
  /** The server does not know the list (-32601); then there are no items, and this is the only page. */
  isUnknown: boolean;
}

/**
 * The pages of a list, asked for one by one. It ends where the server ends it; how many pages and items are too many,
 * and what a cursor means that came before, is the caller's to say.
 *
 * @param timeoutMs for all pages together
 * @throws UpstreamFailure when a page does not come, is no list, or the list grows beyond 16 MB
 */
export async function* listPages(
  channel: Pick<Channel, 'request'>,
  kind: ListKind,
  timeoutMs: number,
): AsyncGenerator<ListPage, void> {
  const left = deadlineIn(timeoutMs);
  let bytes = 0;
  let cursor: string | undefined;
  do {
    const reply = await channel.request({
      method: kind.method,
      params: cursor === undefined ? undefined : JSON.stringify({ cursor }),
      timeoutMs: left(),
    });
    bytes += Buffer.byteLength(reply.text);
    if (bytes > LIST_BYTES_MAX) throw new UpstreamError(`The MCP server lists more than 16 MB of ${kind.noun}.`);
    if (reply.error?.code === rpcCode.methodNotFound) {
      yield { items: [], isUnknown: true };
      return;
    }
    const page = readPage(completeOrRefuse(reply), kind);
    yield page;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** @throws UpstreamError when the answer is no page of this list */
function readPage({ text, result, error }: McpReply, { member, noun }: ListKind): ListPage {
  if (error) {
    throw new UpstreamError(`The MCP server refused to list its ${noun}: ${error.message.slice(0, 300)}`, {
      code: error.code,
    });
  }
  const parts = result && text[result[0]] === '{' ? members(text, result[0]) : new Map<string, Span>();
  const list = parts.get(member);
  if (!list || text[list[0]] !== '[') {
    throw new UpstreamError(`The MCP server listed its ${noun} in a form that is not MCP.`);
  }
  const items = elements(text, list[0]).map((span) => slice(text, span));
  const next = parts.get('nextCursor');
  const nextCursor: unknown = next && JSON.parse(slice(text, next));
  const ttl = parts.get('ttlMs');
  const ttlMs: unknown = ttl && JSON.parse(slice(text, ttl));
  return {
    items,
    isUnknown: false,
    ...(typeof nextCursor === 'string' ? { nextCursor } : {}),
    ...(typeof ttlMs === 'number' ? { ttlMs: Math.max(0, ttlMs) } : {}),
  };
}
