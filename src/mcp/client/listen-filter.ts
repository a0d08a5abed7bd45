import type { ListenFilter } from '../protocol/channel.js';
import { listChanges } from '../protocol/list-pages.js';
import { parseMessage } from '../protocol/messages.js';

/** Limit of resources for one listener, and for all listeners of a channel together. */
const RESOURCES_MAX = 1_000;

/** The filter with its resources deduplicated and limited to 1,000. */
export function bounded({ resourceSubscriptions, ...lists }: ListenFilter): ListenFilter {
  const uris = [...new Set(resourceSubscriptions)].slice(0, RESOURCES_MAX);
  return uris.length === 0 ? lists : { ...lists, resourceSubscriptions: uris };
}

/** Union of several filters. */
export function union(filters: Iterable<ListenFilter>): ListenFilter {
  const all: ListenFilter = {};
  const uris: string[] = [];
  for (const filter of filters) {
    for (const key of listChanges.values()) if (filter[key]) all[key] = true;
    uris.push(...(filter.resourceSubscriptions ?? []));
  }
  return bounded({ ...all, resourceSubscriptions: uris });
}

/** Intersection of two filters. */
export function common(wanted: ListenFilter, given: ListenFilter): ListenFilter {
  const both: ListenFilter = {};
  for (const key of listChanges.values()) if (wanted[key] && given[key]) both[key] = true;
  const known = new Set(given.resourceSubscriptions);
  const uris = wanted.resourceSubscriptions?.filter((uri) => known.has(uri)) ?? [];
  return uris.length === 0 ? both : { ...both, resourceSubscriptions: uris };
}

/** True if the filter matches anything at all. */
export function hasAny(filter: ListenFilter): boolean {
  return Object.keys(filter).length > 0;
}

/** True if both filters match the same notifications. */
export function isSame(a: ListenFilter, b: ListenFilter): boolean {
  const uris = new Set(a.resourceSubscriptions);
  const others = b.resourceSubscriptions ?? [];
  return (
    [...listChanges.values()].every((key) => a[key] === b[key]) &&
    uris.size === others.length &&
    others.every((uri) => uris.has(uri))
  );
}

/**
 * True if the filter matches a notification of this method. @param uri resource URI of
 * `notifications/resources/updated`, if it has one
 */
export function wants(filter: ListenFilter, method: string, uri: unknown): boolean {
  const list = listChanges.get(method);
  if (list) return filter[list] === true;
  return typeof uri === 'string' && (filter.resourceSubscriptions?.includes(uri) ?? false);
}

/** Resource URI of a `notifications/resources/updated` message. */
export function uriIn(text: string): unknown {
  return (parseMessage(text)?.params as { uri?: unknown } | undefined)?.uri;
}
