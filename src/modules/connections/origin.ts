import type { Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Whether a browser page of this origin may use MCP endpoints: our own, and local pages while we are local ourselves.
 * Programs send no Origin. The Host header proves nothing here: a rebinding page controls it.
 */
export function isTrustedOrigin(origin: string | undefined, env: Env): boolean {
  if (origin === undefined) return true;
  const given = parseUrl(origin);
  if (!given) return false;
  return given.origin === new URL(env.baseUrl).origin || (env.isLocalOnly && LOOPBACK_HOST.test(given.hostname));
}
