import { parseUrl } from '../../../config/parse-url.js';

/** The part of an address that identifies a server of this registry. */
export type RegistryAddress = { name: string } | { slug: string };

/** The hosts of published tools for registry servers; their registry is this one. */
const NAME_HOST = 'server.smithery.ai';
const SLUG_HOST = /^([a-z0-9][a-z0-9-]{0,62})\.run\.tools$/;

/**
 * The server of this registry that an address means, which is then called without the network: our own run addresses, and
 * those that published command line tools write (`https://server.smithery.ai/acme/weather[/mcp]`,
 * `https://acme--weather.run.tools`). Null for any other address.
 */
export function registryAddressOf(address: string, baseUrl: string): RegistryAddress | null {
  const url = parseUrl(address);
  if (!url) return null;
  const segments = segmentsOf(url);
  if (!segments) return null;
  if (url.hostname === NAME_HOST)
    return segments.length === 1 || segments.length === 2 ? { name: nameOf(segments) } : null;
  const slug = SLUG_HOST.exec(url.hostname)?.[1];
  if (slug !== undefined) return segments.length === 0 ? { slug } : null;
  const base = new URL(baseUrl);
  if (url.origin !== base.origin) return null;
  const prefix = `${base.pathname.replace(/\/$/, '')}/run/`;
  const own = url.pathname.startsWith(prefix)
    ? /^([A-Za-z0-9_-]{1,128})(?:\/mcp)?\/?$/.exec(url.pathname.slice(prefix.length))
    : null;
  return own?.[1] === undefined ? null : { slug: own[1] };
}

/** True for an address of this service. */
export function isOwnAddress(address: string, baseUrl: string): boolean {
  return parseUrl(address)?.origin === new URL(baseUrl).origin;
}

/** The decoded path, without the `/mcp` that clients add; null when it cannot be decoded. */
function segmentsOf({ pathname }: URL): string[] | null {
  try {
    const segments = pathname
      .split('/')
      .filter((segment) => segment !== '')
      .map(decodeURIComponent);
    const last = segments.at(-1);
    return last === 'mcp' && segments.length > 1 ? segments.slice(0, -1) : segments;
  } catch {
    return null;
  }
}

function nameOf(segments: string[]): string {
  return segments.join('/').replace(/^@/, '');
}
