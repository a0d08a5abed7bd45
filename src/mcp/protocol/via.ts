import type { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';

/** Names the services like this one that a request came through, the newest first. */
export const VIA_HEADER = 'x-slipway-via';

/** A request may pass so many services like this one. */
const SERVICES_MAX = 4;

/** What this service, in whichever process, puts into {@link VIA_HEADER}. It says nothing of the keys it is made of. */
export function viaMark(env: Pick<Env, 'encryptionKeys'>): string {
  const [mark] = keysFor(env, 'slipway via');
  return mark?.toString('base64url').slice(0, 16) ?? 'keyless';
}

/** Why a request that came this way goes no further, in a sentence; null when it may. */
export function loopIn(via: string | undefined, mark: string): string | null {
  if (via === undefined) return null;
  const passed = via.split(',').map((one) => one.trim());
  if (passed.includes(mark)) {
    return 'This request has come through this service before: the connection leads back to it. Connect the MCP server itself.';
  }
  if (passed.length < SERVICES_MAX) return null;
  return `This request has come through ${SERVICES_MAX} services like this one. Connect the MCP server itself.`;
}
