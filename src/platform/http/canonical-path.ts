/**
 * The only place that normalizes the spellings of a path, before routing and access checks. Examples:
 *
 * - `/servers/ns/server/…`, `/servers/@ns%2Fserver/…`, `/servers/ns%2F` become `/servers/ns%2Fserver/…`, `/servers/ns`.
 * - `/{ns}…` becomes `/connect/{ns}…` when `{ns}` is a possible, unreserved namespace name: the short form that
 *   published clients use.
 * - `/connect/{ns}…/`, `/run/{slug}/` and `/run/{slug}/mcp/` lose their trailing slashes; deeper paths of a run
 *   endpoint belong to its server.
 * - An absolute target or a fragment is cut down to path and query.
 *
 * Percent-encoding is undone once, never twice, so `%252F` stays part of a (then invalid) name. An unknown path is
 * returned unchanged, for the router to reject.
 */
import { isNamespaceName, SERVER_SUBRESOURCES } from './resource-names.js';

/** Decodes one path segment once; null when its percent-encoding is broken. */
function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

/** Removes one leading `@` and one trailing slash; a second one remains and makes the name invalid. */
function cleanName(name: string): string {
  return name.replace(/^@(?!@)/, '').replace(/(?<!\/)\/$/, '');
}

/** Returns the path `/servers/{name%2Fserver}…` for a slash that is encoded or not, a leading `@` and a trailing encoded slash. */
function canonicalServerPath(segments: string[]): string | null {
  const [first = '', second, ...rest] = segments;
  const decoded = decodeSegment(first);
  if (decoded === null) return null;
  const name = cleanName(decoded);
  const tail = (parts: string[]) => parts.map((part) => `/${part}`).join('');
  if (second === undefined) return `/servers/${encodeURIComponent(name)}`;
  if (name.includes('/') || second === '') return `/servers/${encodeURIComponent(name)}${tail([second, ...rest])}`;
  const next = decodeSegment(second);
  if (next === null) return null;
  if (SERVER_SUBRESOURCES.has(next)) return `/servers/${encodeURIComponent(name)}${tail([second, ...rest])}`;
  return `/servers/${encodeURIComponent(cleanName(`${name}/${next}`))}${tail(rest)}`;
}

const RUN_ENDPOINT = /^\/run\/[^/]+(?:\/mcp)?\/+$/;

/** Removes trailing slashes, which Express' router ignores; the fast path before it compares segment by segment. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** @param url path and query as in the request line */
export function canonicalPath(url: string): string {
  // The target as Express reads it: without fragment, and without the origin that proxies send.
  const hash = url.indexOf('#');
  const bare = hash < 0 ? url : url.slice(0, hash);
  const target = bare.startsWith('/') ? bare : bare.replace(/^https?:\/\/[^/?]*\/?/i, '/');
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? '' : target.slice(mark);
  if (path.startsWith('/connect/') || RUN_ENDPOINT.test(path)) return withoutTrailingSlashes(path) + query;
  const [root, first = '', ...segments] = path.split('/');
  if (root !== '') return target;
  if (first === 'servers') {
    if (segments.length === 0 || segments[0] === '') return target;
    return (canonicalServerPath(segments) ?? path) + query;
  }
  const namespace = decodeSegment(first);
  if (namespace === null || !isNamespaceName(namespace)) return target;
  return withoutTrailingSlashes(`/connect/${namespace}${segments.map((part) => `/${part}`).join('')}`) + query;
}
