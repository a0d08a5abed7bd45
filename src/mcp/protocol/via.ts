import type { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';

/** Header with the marks of the Slipway services that a request has passed, newest first. */
export const VIA_HEADER = 'x-slipway-via';

/** Returns the mark, the same in all processes: a hash that does not reveal the encryption keys. */
export function viaMark(env: Pick<Env, 'encryptionKeys'>): string {
  const [mark] = keysFor(env, 'slipway via');
  return mark?.toString('base64url').slice(0, 16) ?? 'keyless';
}

/** Returns the error message for a request that has already passed this service; null otherwise. */
export function loopIn(via: string | undefined, mark: string): string | null {
  if (!via?.split(',').some((entry) => entry.trim() === mark)) return null;
  return 'This request has come through this service before: the connection leads back to it. Connect the MCP server itself.';
}
