import { createHash } from 'node:crypto';
import { groupBy } from '../../platform/group-by.js';
import type { McpReply } from '../protocol/channel.js';
import { resultTypeOf } from '../protocol/messages.js';
import { memberText, rewriteItems, rewriteList, rewriteMembers, withMember } from '../protocol/json-edit.js';
import { members as membersOf, slice, splice } from '../protocol/json-text.js';
import type { AggregateMember } from './member-requests.js';

/**
 * Separator of listed names: `connectionId__tool`, which model APIs accept, or `connectionId.tool`, which spells both
 * parts as they are.
 */
export const separators = ['__', '.'] as const;
export type Separator = (typeof separators)[number];

/** Length limits of names that model APIs accept, and of the connection's part of one. */
const NAME_CHARS_MAX = 64;
const ID_CHARS_MAX = 40;

const HASH_CHARS = 6;

/** Prefix of resource URIs; followed by the connection id and the server's URI or URI template. */
const URI_SCHEME = 'connection://';

export interface Reading {
  connectionId: string;
  rest: string;
  /** True if `rest` is the server's own name; otherwise another name of the server might be spelled like this. */
  isExact: boolean;
}

/**
 * Names of items in an aggregate. With `__` a name matches `^[a-zA-Z0-9_-]{1,64}$`: other characters are written `_`,
 * and a name that is too long or means another item ends in a hash. With `.` an item whose name means another item is
 * shadowed: lists omit and report it.
 *
 * **The longest existing id wins**: `a.b.c` is the tool `c` of `a.b`, and `b.c` of `a` only without a connection `a.b`.
 */
export class MemberNames {
  private readonly forms = new Map<string, string>();
  private readonly ids = new Map<string, string>();
  /**
   * Separators after this index are not searched: names are untrusted input and might contain megabytes of separators.
   */
  private readonly longestId: number;
  private readonly namesByItems = new WeakMap<readonly { name: string }[], ReadonlyMap<string, string>>();

  constructor(
    members: AggregateMember[],
    private readonly separator: Separator,
  ) {
    const ids = members.map(({ connectionId }) => connectionId);
    const alike = collisions(ids);
    for (const id of ids) {
      const form = sanitized(id);
      this.forms.set(id, form.length > ID_CHARS_MAX || alike.has(id) ? shorten(form, ID_CHARS_MAX, id) : form);
      this.ids.set(id, id);
    }
    for (const [id, form] of this.forms) if (!this.ids.has(form)) this.ids.set(form, id);
    this.longestId = Math.max(0, ...[...this.ids.keys()].map(({ length }) => length));
  }

  /** Returns the aggregate names of own names, without shadowed items. */
  namesOf(connectionId: string, items: readonly { name: string }[]): ReadonlyMap<string, string> {
    const cached = this.namesByItems.get(items);
    if (cached) return cached;
    const ownNames = new Set(items.map(({ name }) => name));
    const alike = this.separator === '.' ? null : collisions(ownNames);
    const names = new Map<string, string>();
    for (const name of ownNames) {
      if (!alike) {
        const dotted = `${connectionId}.${name}`;
        const [read] = this.readings(dotted, '.');
        if (read?.connectionId === connectionId && read.rest === name) names.set(name, dotted);
        continue;
      }
      const qualified = `${this.forms.get(connectionId)}__${sanitized(name)}`;
      const isOther = this.readings(qualified, '__')[0]?.connectionId !== connectionId;
      const isPlain = qualified.length <= NAME_CHARS_MAX && !alike.has(name) && !isOther;
      names.set(name, isPlain ? qualified : shorten(qualified, NAME_CHARS_MAX, `${connectionId} ${name}`));
    }
    this.namesByItems.set(items, names);
    return names;
  }

  /** Returns possible readings of a name, longest id first. A name with dots has at most one; none if no id matches. */
  read(name: string): Reading[] {
    const [dotted] = this.readings(name, '.');
    return dotted ? [dotted] : this.readings(name, '__');
  }

  pick(name: string, { connectionId, rest }: Reading, items: readonly { name: string }[]): string | undefined {
    if (items.some((item) => item.name === rest)) return rest;
    for (const [ownName, qualified] of this.namesOf(connectionId, items)) if (qualified === name) return ownName;
    return undefined;
  }

  private readings(name: string, separator: Separator): Reading[] {
    const readings: Reading[] = [];
    for (let at = name.lastIndexOf(separator, this.longestId); at > 0; at = name.lastIndexOf(separator, at - 1)) {
      const connectionId = this.ids.get(name.slice(0, at));
      const rest = name.slice(at + separator.length);
      if (connectionId === undefined || rest === '') continue;
      readings.push({ connectionId, rest, isExact: separator === '.' || !rest.includes('_') });
    }
    return readings;
  }
}

function sanitized(text: string): string {
  return text.replace(/[^a-zA-Z0-9_-]/g, '_');
}

/** Returns strings that collide after sanitizing, except one that is already sanitized. */
function collisions(strings: Iterable<string>): Set<string> {
  const byForm = groupBy(strings, sanitized);
  return new Set(
    [...byForm].flatMap(([form, alike]) => (alike.length > 1 ? alike.filter((text) => text !== form) : [])),
  );
}

function shorten(form: string, charsMax: number, of: string): string {
  const hash = createHash('sha256').update(of).digest('base64url').slice(0, HASH_CHARS);
  return `${form.slice(0, charsMax - HASH_CHARS - 1)}_${hash}`;
}

export function qualifyUri(connectionId: string, uri: string): string {
  return `${URI_SCHEME}${connectionId}/${uri}`;
}

/** Returns the connection and own URI of an aggregate's resource URI; null for other URIs. */
export function readUri(uri: string): { connectionId: string; rest: string } | null {
  if (!uri.startsWith(URI_SCHEME)) return null;
  const slash = uri.indexOf('/', URI_SCHEME.length);
  if (slash < 0) return null;
  return { connectionId: uri.slice(URI_SCHEME.length, slash), rest: uri.slice(slash + 1) };
}

export function withQualifiedUri(text: string, qualify: (uri: string) => string): string {
  const span = text.startsWith('{') ? membersOf(text).get('uri') : undefined;
  const uri: unknown = span && JSON.parse(slice(text, span));
  return typeof uri === 'string' ? withMember(text, 'uri', JSON.stringify(qualify(uri))) : text;
}

export function withQualifiedLinks(reply: McpReply, method: string, qualify: (uri: string) => string): McpReply {
  const { text, result } = reply;
  if (!result || text[result[0]] !== '{' || !text.includes('"uri"')) return reply;
  const unchanged = slice(text, result);
  const block = (text: string) => {
    if (!text.startsWith('{')) return text;
    const type = memberText(text, 'type');
    if (type === '"resource_link"') return withQualifiedUri(text, qualify);
    if (type !== '"resource"') return text;
    return rewriteMembers(text, (name, value) => (name === 'resource' ? withQualifiedUri(value, qualify) : value));
  };
  const changed = rewriteResult(method, unchanged, block, (content) => withQualifiedUri(content, qualify));
  if (changed === unchanged) return reply;
  return { ...reply, ...replyParts(splice(text, result, changed)) };
}

export function withQualifiedTask(reply: McpReply, method: string, connectionId: string): McpReply {
  const { text, result } = reply;
  const isTask = method === 'tools/call' ? () => resultTypeOf(reply) === 'task' : () => method.startsWith('tasks/');
  if (!result || !text.includes('"taskId"') || !isTask()) return reply;
  const changed = rewriteMembers(slice(text, result), (name, value) =>
    name === 'taskId' ? JSON.stringify(`${connectionId}/${String(JSON.parse(value))}`) : value,
  );
  return { ...reply, ...replyParts(splice(text, result, changed)) };
}

function replyParts(text: string): Pick<McpReply, 'text' | 'id' | 'result'> {
  const parts = membersOf(text);
  return { text, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
}

function rewriteResult(
  method: string,
  result: string,
  block: (text: string) => string,
  content: (text: string) => string,
): string {
  switch (method) {
    case 'resources/read':
      return rewriteItems(result, 'contents', content);
    case 'tools/call':
      return rewriteItems(result, 'content', block);
    case 'skills/get':
      return rewriteMembers(result, (name, value) => (name === 'skill' ? content(value) : value));
    case 'resources/directory/read':
      return rewriteItems(result, 'resources', content);
    case 'prompts/get':
      return rewriteItems(result, 'messages', (message) => {
        if (!message.startsWith('{')) return message;
        const inBlocks = (value: string) => (value.startsWith('[') ? rewriteList(value, block) : block(value));
        return rewriteMembers(message, (name, value) => (name === 'content' ? inBlocks(value) : value));
      });
    default:
      return result;
  }
}
