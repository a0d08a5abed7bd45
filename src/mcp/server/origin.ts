import { parseUrl } from '../../config/parse-url.js';

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Where we are reached. */
export interface OwnSite {
  /** The base of our own URLs. */
  readonly baseUrl: string;
  /** True while nobody but this machine can reach us. */
  readonly isLocalOnly: boolean;
}

/**
 * Whether a browser page of this origin may use MCP endpoints: our own, and local pages while we are local ourselves.
 * Programs send no Origin. The Host header proves nothing here: a rebinding page controls it.
 */
export function isTrustedOrigin(origin: string | undefined, { baseUrl, isLocalOnly }: OwnSite): boolean {
  if (origin === undefined) return true;
  const given = parseUrl(origin);
  if (!given) return false;
  return given.origin === new URL(baseUrl).origin || (isLocalOnly && LOOPBACK_HOST.test(given.hostname));
}
