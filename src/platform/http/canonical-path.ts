import { isNamespaceName, SERVER_SUBRESOURCES } from './names.js';

/** Decodes one path segment once; null when its percent-encoding is broken or it hides a NUL. */
function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment;
  try {
    const decoded = decodeURIComponent(segment);
    return decoded.includes('\0') ? null : decoded;
  } catch {
    return null;
  }
}

/**
 * Every accepted spelling of a server's path in its one form, `/servers/{name%2Fserver}…`: the slash encoded or not, a
 * leading `@`, a trailing slash after a namespace-only name.
 */
function canonicalServerPath(segments: string[]): string | null {
  const [first = '', second, ...rest] = segments;
  const decoded = decodeSegment(first);
  if (decoded === null) return null;
  const name = decoded.replace(/^@/, '').replace(/\/$/, '');
  const tail = (parts: string[]) => parts.map((part) => `/${part}`).join('');
  if (second === undefined) return `/servers/${encodeURIComponent(name)}`;
  if (name.includes('/') || second === '') return `/servers/${encodeURIComponent(name)}${tail([second, ...rest])}`;
  const next = decodeSegment(second);
  if (next === null) return null;
  if (SERVER_SUBRESOURCES.has(next)) return `/servers/${encodeURIComponent(name)}${tail([second, ...rest])}`;
  return `/servers/${encodeURIComponent(`${name}/${next}`)}${tail(rest)}`;
}

/**
 * The one place where spellings of a path meet, before any routing or access check looks at it.
 *
 * - `/servers/ns/server/…`, `/servers/@ns%2Fserver/…`, `/servers/ns%2F` become `/servers/ns%2Fserver/…`, `/servers/ns`.
 * - `/{ns}…` becomes `/connect/{ns}…` when `{ns}` is a possible, unreserved namespace name: the short form that
 *   published clients use.
 *
 * Percent-encoding is undone once, never twice, so `%252F` stays part of a (then invalid) name. A path it does not
 * understand is returned as it came, for the router to refuse.
 *
 * @param url path and query as they stand in the request line
 */
export function canonicalPath(url: string): string {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  if (path.startsWith('/connect/')) return url;
  const query = mark < 0 ? '' : url.slice(mark);
  const [, first = '', ...segments] = path.split('/');
  if (first === 'servers') {
    if (segments.length === 0 || segments[0] === '') return url;
    return (canonicalServerPath(segments) ?? path) + query;
  }
  const namespace = decodeSegment(first);
  if (namespace === null || !isNamespaceName(namespace)) return url;
  return `/connect/${namespace}${segments.map((part) => `/${part}`).join('')}${query}`;
}
