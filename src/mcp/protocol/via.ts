import type { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';

/** Marks of the services like this one that a request has passed, newest first. */
export const VIA_HEADER = 'x-slipway-via';

/**
 * Mark of this service in {@link VIA_HEADER}, the same in all processes. A hash that does not reveal the encryption
 * keys.
 */
export function viaMark(env: Pick<Env, 'encryptionKeys'>): string {
  const [mark] = keysFor(env, 'slipway via');
  return mark?.toString('base64url').slice(0, 16) ?? 'keyless';
}

/** Error message for a request that has already passed this service; null otherwise. */
export function loopIn(via: string | undefined, mark: string): string | null {
  if (!via?.split(',').some((entry) => entry.trim() === mark)) return null;
  return 'This request has come through this service before: the connection leads back to it. Connect the MCP server itself.';
}
