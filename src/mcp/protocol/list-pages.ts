import type { Channel, McpReply, ListenFilter } from './channel.js';
import { deadlineIn } from './deadline.js';
import { elements, members, slice, type Span } from './json-text.js';
import { UpstreamError } from './mcp-errors.js';
import { rpcCode } from './protocol.js';
import { completeOrRefuse, parseMessage } from './messages.js';
import { memberText, withMember } from './json-edit.js';
import { isObject, isWithinDepth } from '../../platform/text/json.js';

const LIST_BYTES_MAX = 16 * 1024 * 1024;

export type ListFlag = Exclude<keyof ListenFilter, 'resourceSubscriptions'>;

export const listChanges: ReadonlyMap<string, ListFlag> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
]);

/** Returns the list changes in a filter; changes of tools are always included. */
export function changesOf(filter: ListenFilter): string[] {
  const subscribed = [...listChanges].filter(([, flag]) => filter[flag] === true || flag === 'toolsListChanged');
  return subscribed.map(([method]) => JSON.stringify({ jsonrpc: '2.0', method }));
}

export function listFilter(isWanted: (flag: ListFlag) => boolean): ListenFilter {
  return Object.fromEntries([...listChanges.values()].filter(isWanted).map((flag) => [flag, true]));
}

export const RESOURCE_UPDATED = 'notifications/resources/updated';

/** Ids and tokens differ at the far end of a session. */
const ABOUT_REQUESTS: ReadonlySet<string> = new Set([
  'notifications/progress',
  'notifications/cancelled',
  'notifications/tasks/status',
]);

export function isOfSession(method: string): boolean {
  return !isChange(method) && !ABOUT_REQUESTS.has(method);
}

export function isChange(method: string): boolean {
  return listChanges.has(method) || method === RESOURCE_UPDATED;
}

/** A paginated list. */
export interface ListKind {
  method: string;
  member: string;
  noun: string;
  capability: string;
  id: 'name' | 'uri' | 'uriTemplate';
}

/** The four lists of MCP, by the names of their items in a server card. */
export const mcpLists = {
  tools: { method: 'tools/list', member: 'tools', noun: 'tools', capability: 'tools', id: 'name' },
  resources: { method: 'resources/list', member: 'resources', noun: 'resources', capability: 'resources', id: 'uri' },
  resourceTemplates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    noun: 'resource templates',
    capability: 'resources',
    id: 'uriTemplate',
  },
  prompts: { method: 'prompts/list', member: 'prompts', noun: 'prompts', capability: 'prompts', id: 'name' },
} as const satisfies Record<string, ListKind>;

/** The list of the skills extension (SEP-2640), which servers declare among their `extensions`. */
export const skillList: ListKind = {
  method: 'skills/list',
  member: 'skills',
  noun: 'skills',
  capability: 'extensions',
  id: 'uri',
};

const lists = new Map<string, ListKind>([...Object.values(mcpLists), skillList].map((kind) => [kind.method, kind]));

export function listOf(method: string): ListKind | undefined {
  return lists.get(method);
}

export function isList(method: string): boolean {
  return method !== skillList.method && lists.has(method);
}

/** Returns true for `{}`, and false for null and false, which occur although the protocol does not define them. */
export function isDeclared(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}

export interface ListItem {
  name: string;
  /** The item as JSON text, including unknown fields. */
  text: string;
}

export interface LeftOutItem {
  name: string | null;
  reason: string;
}

/** `_meta` name of the items left out of a page of a list. */
export const LEFT_OUT = 'slipway/left-out';

/** Nesting limits: of a list response that is read, and of an item that is kept. */
export const LIST_DEPTH_MAX = 1_000;
const ITEM_DEPTH_MAX = 95;

/** Removes items that are nested too deeply, and names them in `_meta`. A response without a list is unchanged. */
export function withoutDeepItems(text: string, { member, id }: Pick<ListKind, 'member' | 'id'>): string {
  const result = parseMessage(text) && memberText(text, 'result');
  const list = result?.startsWith('{') ? memberText(result, member) : undefined;
  if (!result || !list?.startsWith('[')) return text;
  const leftOut: LeftOutItem[] = [];
  const items = elements(list).flatMap((span) => {
    const item = slice(list, span);
    const value: unknown = JSON.parse(item);
    if (isWithinDepth(value, ITEM_DEPTH_MAX)) return [item];
    const name = isObject(value) && typeof value[id] === 'string' ? value[id] : null;
    leftOut.push({ name, reason: `it is nested deeper than ${ITEM_DEPTH_MAX} levels` });
    return [];
  });
  return withItems(text, member, items, leftOut);
}

/** Replaces the items of a result, and names the omitted items in `_meta`. */
export function withItems(text: string, member: string, items: string[], leftOut: LeftOutItem[]): string {
  const result = withMember(memberText(text, 'result') ?? '{}', member, `[${items.join(',')}]`);
  if (leftOut.length === 0) return withMember(text, 'result', result);
  const meta = memberText(result, '_meta');
  const noted = withMember(meta?.startsWith('{') ? meta : '{}', LEFT_OUT, JSON.stringify(leftOut));
  return withMember(text, 'result', withMember(result, '_meta', noted));
}

export interface ListPage {
  items: string[];
  nextCursor?: string;
  /** Set on the last page if the server repeated an earlier cursor. */
  repeatedCursor?: string;
  /** Cache lifetime of the page in milliseconds; absent if unspecified. */
  ttlMs?: number;
  /** The server failed to send the next page. */
  failure?: string;
  leftOut?: LeftOutItem[];
  /** The server does not know the list (-32601); the only page is then empty. */
  isUnknown: boolean;
}

/** Maximum number of pages, as in the official SDK. */
export const PAGES_MAX = 64;

const INCOMPLETE_MS = 1_000;

/** Limit of items of a list, and of items remembered by a process. */
export const LIST_ITEMS_MAX = 10_000;

/**
 * Reads up to 64 pages and 10,000 items, with the shortest cache lifetime of the pages (null if unspecified). The first
 * of items with equal names is used; items without a name are left out.
 *
 * @param timeoutMs total timeout of all pages
 * @throws UpstreamFailure as {@link listPages}
 */
export async function readList(
  channel: Pick<Channel, 'request'>,
  kind: ListKind,
  timeoutMs: number,
): Promise<{ items: ListItem[]; leftOut: LeftOutItem[]; ttlMs: number | null }> {
  const items = new Map<string, ListItem>();
  const leftOut: LeftOutItem[] = [];
  let [pages, read, ttlMs] = [0, 0, Infinity];
  for await (const page of listPages(channel, kind, timeoutMs)) {
    leftOut.push(...(page.leftOut ?? []));
    for (const text of page.items.slice(0, LIST_ITEMS_MAX - read)) {
      const name = (JSON.parse(text) as Record<string, unknown> | null)?.[kind.id];
      if (typeof name !== 'string') leftOut.push({ name: null, reason: `it has no ${kind.id}` });
      else if (items.has(name)) leftOut.push({ name, reason: `its ${kind.id} was listed before` });
      else items.set(name, { name, text });
    }
    if (page.failure !== undefined) {
      leftOut.push({ name: null, reason: page.failure });
      ttlMs = INCOMPLETE_MS;
    }
    read += page.items.length;
    ttlMs = Math.min(ttlMs, page.ttlMs ?? Infinity);
    pages += 1;
    if (pages === PAGES_MAX || read >= LIST_ITEMS_MAX) break;
  }
  return { items: [...items.values()], leftOut, ttlMs: ttlMs === Infinity ? null : ttlMs };
}

/**
 * Reads the pages of a list one by one, until the server's last: the one without a cursor, with a repeated cursor, or
 * up to 2025-11-25 with an empty one, which SDKs of these revisions treat as none. The caller limits pages and items.
 *
 * @param timeoutMs total timeout of all pages
 * @throws UpstreamFailure when the first page fails or is malformed. If a later page fails or makes the list exceed 16
 * MB, the previous one is the last, with the failure.
 */
export async function* listPages(
  channel: Pick<Channel, 'request'>,
  kind: Pick<ListKind, 'method' | 'member' | 'noun'>,
  timeoutMs: number,
): AsyncGenerator<ListPage, void> {
  const timeLeft = deadlineIn(timeoutMs);
  let bytes = 0;
  let cursor: string | undefined;
  const cursors = new Set<string>();
  do {
    let reply: McpReply;
    let read: ListPage;
    try {
      reply = await channel.request({
        method: kind.method,
        params: cursor === undefined ? undefined : JSON.stringify({ cursor }),
        timeoutMs: timeLeft(),
      });
      if (cursor === undefined && reply.error?.code === rpcCode.methodNotFound) {
        yield { items: [], isUnknown: true };
        return;
      }
      read = readPage(completeOrRefuse(reply), kind);
      bytes += Buffer.byteLength(reply.text);
      if (bytes > LIST_BYTES_MAX) throw new UpstreamError(`The MCP server lists more than 16 MB of ${kind.noun}.`);
    } catch (error) {
      if (cursor === undefined || !(error instanceof UpstreamError)) throw error;
      yield { items: [], isUnknown: false, failure: `a later page of the list failed: ${error.message}` };
      return;
    }
    const { nextCursor: next, ...page } = read;
    cursor = next === '' && reply.era === 'legacy' ? undefined : next;
    if (cursor === undefined) yield page;
    else if (cursors.has(cursor)) {
      yield { ...page, repeatedCursor: cursor };
      return;
    } else yield { ...page, nextCursor: cursor };
    if (cursor !== undefined) cursors.add(cursor);
  } while (cursor !== undefined);
}

/** @throws UpstreamError of the row `broken list` when the response is not a page of this list */
function readPage({ text, result, error }: McpReply, { member, noun }: Pick<ListKind, 'member' | 'noun'>): ListPage {
  if (error) {
    const message = `The MCP server refused to list its ${noun}: ${error.message.slice(0, 300)}`;
    throw new UpstreamError(message, { detail: { code: error.code }, outcomeUnknown: false, failure: 'broken list' });
  }
  const parts = result && text[result[0]] === '{' ? members(text, result[0]) : new Map<string, Span>();
  const list = parts.get(member);
  if (!list || text[list[0]] !== '[') {
    const message = `The MCP server listed its ${noun} in a form that is not MCP.`;
    throw new UpstreamError(message, { outcomeUnknown: false, failure: 'broken list' });
  }
  const items = elements(text, list[0]).map((span) => slice(text, span));
  const next = parts.get('nextCursor');
  const nextCursor: unknown = next && JSON.parse(slice(text, next));
  const meta = text.includes(LEFT_OUT) ? parts.get('_meta') : undefined;
  const leftOut = meta && (JSON.parse(slice(text, meta)) as Record<string, LeftOutItem[]>)[LEFT_OUT];
  const ttl = parts.get('ttlMs');
  const ttlMs: unknown = ttl && JSON.parse(slice(text, ttl));
  return {
    items,
    isUnknown: false,
    ...(Array.isArray(leftOut) ? { leftOut } : {}),
    ...(typeof nextCursor === 'string' ? { nextCursor } : {}),
    ...(typeof ttlMs === 'number' ? { ttlMs: Math.max(0, ttlMs) } : {}),
  };
}
