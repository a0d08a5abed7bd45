import type { McpReply } from '../protocol/channel.js';
import { withMember } from '../protocol/json-edit.js';
import { members as membersOf, slice } from '../protocol/json-text.js';
import { withList } from '../protocol/messages.js';
import type { AggregateMember } from './member-requests.js';

/** Separator of composed names: `connectionId.tool`, or `connectionId__tool` for model APIs that refuse dots. */
export const separators = ['.', '__'] as const;
export type Separator = (typeof separators)[number];

/** Prefix of resource URIs; followed by the connection id and the server's URI or URI template. */
const URI_SCHEME = 'connection://';

/**
 * Names of items in an aggregate. With `__`, dots and slashes of ids and names are written `__` too, for APIs that
 * refuse them everywhere.
 * A name may be ambiguous: `a.b.c` is the tool `b.c` of `a`, or `c` of `a.b`. **The longest existing id wins**; of two
 * ids with the same written form (`a.b` and `a__b` with `__`) the one spelled exactly so. An item whose name is read as
 * another item's is shadowed: lists omit and report it, and it is reachable by its connection's own address.
 */
export class MemberNames {
  /** Ids by written form. */
  private readonly ids = new Map<string, string>();
  /**
   * Length of the longest id. Separators after this index are not searched: names are foreign input and may contain
   * megabytes of separators.
   */
  private readonly longestId: number;
  /** Names of one server by written form, cached for the lifetime of its list. */
  private readonly known = new WeakMap<readonly string[], Map<string, string>>();

  constructor(
    members: AggregateMember[],
    private readonly separator: Separator,
  ) {
    const isExact = (id: string) => this.written(id) === id;
    for (const { connectionId } of members) if (isExact(connectionId)) this.ids.set(connectionId, connectionId);
    for (const { connectionId } of members) {
      const written = this.written(connectionId);
      if (!this.ids.has(written)) this.ids.set(written, connectionId);
    }
    this.longestId = Math.max(0, ...[...this.ids.keys()].map(({ length }) => length));
  }

  /** Aggregate name of an item. */
  qualify(connectionId: string, name: string): string {
    return this.written(connectionId) + this.separator + this.written(name);
  }

  /** Connection of a name, and the rest of the name in written form; null when no id matches. */
  read(qualified: string): { connectionId: string; rest: string } | null {
    const { separator, longestId } = this;
    for (let at = qualified.lastIndexOf(separator, longestId); at > 0; at = qualified.lastIndexOf(separator, at - 1)) {
      const connectionId = this.ids.get(qualified.slice(0, at));
      const rest = qualified.slice(at + separator.length);
      if (connectionId !== undefined && rest !== '') return { connectionId, rest };
    }
    return null;
  }

  /** True if the server's name may differ from its written form, so that it must be looked up. */
  isAltered(rest: string): boolean {
    return this.separator !== '.' && rest.includes(this.separator);
  }

  /** The server's name for `rest`: an exact match, otherwise the first with this written form. */
  pick(names: readonly string[], rest: string): string | undefined {
    let known = this.known.get(names);
    if (!known) {
      known = new Map(names.toReversed().map((name) => [this.written(name), name]));
      for (const name of names) known.set(name, name);
      this.known.set(names, known);
    }
    return known.get(rest);
  }

  /** True if the name of this item resolves to this item. @param names all names of the connection */
  isReachable(connectionId: string, name: string, names: readonly string[]): boolean {
    const read = this.read(this.qualify(connectionId, name));
    if (read?.connectionId !== connectionId) return false;
    return this.separator === '.' ? read.rest === name : this.pick(names, read.rest) === name;
  }

  private written(text: string): string {
    return this.separator === '.' ? text : text.replace(/[./]/g, this.separator);
  }
}

/** Aggregate form of a connection's resource URI or URI template. */
export function qualifyUri(connectionId: string, uri: string): string {
  return `${URI_SCHEME}${connectionId}/${uri}`;
}

/** Connection and own URI of an aggregate's resource URI; null for other URIs. */
export function readUri(uri: string): { connectionId: string; rest: string } | null {
  if (!uri.startsWith(URI_SCHEME)) return null;
  const slash = uri.indexOf('/', URI_SCHEME.length);
  if (slash < 0) return null;
  return { connectionId: uri.slice(URI_SCHEME.length, slash), rest: uri.slice(slash + 1) };
}

/** An object's JSON text with the aggregate's form of its `uri`. */
export function withQualifiedUri(text: string, connectionId: string): string {
  const span = text.startsWith('{') ? membersOf(text).get('uri') : undefined;
  const own: unknown = span && JSON.parse(slice(text, span));
  return typeof own === 'string' ? withMember(text, 'uri', JSON.stringify(qualifyUri(connectionId, own))) : text;
}

/** A `resources/read` result with the aggregate's URIs. */
export function withQualifiedContents(reply: McpReply, connectionId: string): McpReply {
  return withList(reply, 'contents', (items) => items.map((item) => withQualifiedUri(item, connectionId)));
}
