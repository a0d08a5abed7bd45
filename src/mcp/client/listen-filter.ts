import type { ListenFilter } from '../protocol/channel.js';
import { listChanges } from '../protocol/list-pages.js';
import { parseMessage } from '../protocol/messages.js';

/** Resources one listener, or all of a channel together, may name. */
const RESOURCES_MAX = 1_000;

/** A filter with no more resources than one stream tells of, each once. */
export function bounded({ resourceSubscriptions, ...lists }: ListenFilter): ListenFilter {
  const uris = [...new Set(resourceSubscriptions)].slice(0, RESOURCES_MAX);
  return uris.length === 0 ? lists : { ...lists, resourceSubscriptions: uris };
}

/** What any of several filters wants. */
export function union(filters: Iterable<ListenFilter>): ListenFilter {
  const all: ListenFilter = {};
  const uris: string[] = [];
  for (const filter of filters) {
    for (const key of listChanges.values()) if (filter[key]) all[key] = true;
    uris.push(...(filter.resourceSubscriptions ?? []));
  }
  return bounded({ ...all, resourceSubscriptions: uris });
}

/** What of `wanted` is in `given`. */
export function common(wanted: ListenFilter, given: ListenFilter): ListenFilter {
  const both: ListenFilter = {};
  for (const key of listChanges.values()) if (wanted[key] && given[key]) both[key] = true;
  const known = new Set(given.resourceSubscriptions);
  const uris = wanted.resourceSubscriptions?.filter((uri) => known.has(uri)) ?? [];
  return uris.length === 0 ? both : { ...both, resourceSubscriptions: uris };
}

/** Whether it wants anything at all. */
export function hasAny(filter: ListenFilter): boolean {
  return Object.keys(filter).length > 0;
}

/** Whether two want the same. */
export function isSame(a: ListenFilter, b: ListenFilter): boolean {
  const uris = new Set(a.resourceSubscriptions);
  const others = b.resourceSubscriptions ?? [];
  return (
    [...listChanges.values()].every((key) => a[key] === b[key]) &&
    uris.size === others.length &&
    others.every((uri) => uris.has(uri))
  );
}

/** Whether a notification of this method is wanted. @param uri what it says that was updated, if it says that */
export function wants(filter: ListenFilter, method: string, uri: unknown): boolean {
  const list = listChanges.get(method);
  if (list) return filter[list] === true;
  return typeof uri === 'string' && (filter.resourceSubscriptions?.includes(uri) ?? false);
}

/** What a notification says that was updated. */
export function uriIn(text: string): unknown {
  return (parseMessage(text)?.params as { uri?: unknown } | undefined)?.uri;
}
