import { hash, randomBytes } from 'node:crypto';
import { TOKEN_PREFIX } from './mcp-endpoint.access.js';

/** Prefix by which people and secret scanners recognise a leaked key. */
const PREFIX = 'slipway_';
const KEY = /^slipway_[A-Za-z0-9_-]{43}$/;

export function generateApiKey(): string {
  return PREFIX + randomBytes(32).toString('base64url');
}

/** Returns true for a key, complete or damaged; false for an OAuth token, ours or another service's. */
export function hasKeyPrefix(bearer: string): boolean {
  return bearer.startsWith(PREFIX) && !bearer.startsWith(TOKEN_PREFIX);
}

export function isApiKey(text: string): boolean {
  return KEY.test(text);
}

/** Returns a plain SHA-256: a key has 256 random bits, so a slow hash would not add security. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

export function prefixOf(key: string): string {
  return key.slice(0, PREFIX.length + 4);
}
