import type { AggregateMember } from './member-requests.js';

/** How names are put together: `connectionId.tool`, or `connectionId__tool` for model APIs that refuse dots. */
export const separators = ['.', '__'] as const;
export type Separator = (typeof separators)[number];

/** Stands in front of every URI of a connection's resources; the rest is the server's own URI, or URI template. */
const URI_SCHEME = 'connection://';

/**
 * The names of things in a union. With `__` the dots and slashes of ids and names are written `__` too, since whoever
 * refuses dots refuses them everywhere.
 *
 * A name may be read in more than one way: `a.b.c` is the tool `b.c` of `a`, or `c` of `a.b`. **The longest id that
 * exists wins**; of two ids written alike (`a.b` and `a__b` with `__`) the one spelled so. A thing whose name is read as
 * another's is shadowed: it is left out of lists, which say so, and is reached by its connection's own address.
 */
export class MemberNames {
  /** Ids by how they are written. */
  private readonly ids = new Map<string, string>();
  /** No separator behind this index ends an id: names are others' and may be megabytes of separators. */
  private readonly longestId: number;
  /** What the names of one server are, by how they are written; for as long as its list lives. */
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

  /** The name of a thing in the union. */
  qualify(connectionId: string, name: string): string {
    return this.written(connectionId) + this.separator + this.written(name);
  }

  /** Whose thing a name means, and what is left for the name there, as written; null when no id fits. */
  read(qualified: string): { connectionId: string; rest: string } | null {
    const { separator, longestId } = this;
    for (let at = qualified.lastIndexOf(separator, longestId); at > 0; at = qualified.lastIndexOf(separator, at - 1)) {
      const connectionId = this.ids.get(qualified.slice(0, at));
      const rest = qualified.slice(at + separator.length);
      if (connectionId !== undefined && rest !== '') return { connectionId, rest };
    }
    return null;
  }

  /** Whether a name that was read may be written otherwise at its server, so that it must be looked up. */
  isAltered(rest: string): boolean {
    return this.separator !== '.' && rest.includes(this.separator);
  }

  /** Which of a server's names `rest` means: the one spelled so, else the first one written so. */
  pick(names: readonly string[], rest: string): string | undefined {
    let known = this.known.get(names);
    if (!known) {
      known = new Map(names.toReversed().map((name) => [this.written(name), name]));
      for (const name of names) known.set(name, name);
      this.known.set(names, known);
    }
    return known.get(rest);
  }

  /** Whether the name of this thing is read as this thing. @param names all of the connection's */
  isReachable(connectionId: string, name: string, names: readonly string[]): boolean {
    const read = this.read(this.qualify(connectionId, name));
    if (read?.connectionId !== connectionId) return false;
    return this.separator === '.' ? read.rest === name : this.pick(names, read.rest) === name;
  }

  private written(text: string): string {
    return this.separator === '.' ? text : text.replace(/[./]/g, this.separator);
  }
}

/** The URI, or URI template, of a connection's resource in the union. */
export function qualifyUri(connectionId: string, uri: string): string {
  return `${URI_SCHEME}${connectionId}/${uri}`;
}

/** Whose resource a URI means, and its own URI there; null when it is none of a union's. */
export function readUri(uri: string): { connectionId: string; rest: string } | null {
  if (!uri.startsWith(URI_SCHEME)) return null;
  const slash = uri.indexOf('/', URI_SCHEME.length);
  if (slash < 0) return null;
  return { connectionId: uri.slice(URI_SCHEME.length, slash), rest: uri.slice(slash + 1) };
}
