import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Env } from '../../config/env.js';

/** Returns 256 random bits for a link, a state, a cookie. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns true for strings in the form of {@link newSecret}. */
export function isSecret(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** Hashes a secret without a salt: 256 random bits cannot be guessed. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/**
 * Returns keys derived from those of the vault, which all processes of a service share: a value made with one reveals nothing
 * about sealed values. The first key signs, all of them verify; empty if the service has no keys.
 *
 * @param purpose `slipway …`, different from all others
 */
export function keysFor({ encryptionKeys }: Pick<Env, 'encryptionKeys'>, purpose: string): Buffer[] {
  return (encryptionKeys ?? []).map(({ secret }) => createHmac('sha256', secret).update(purpose).digest());
}

/** Returns true if two signatures are equal, compared in constant time. */
export function isSameSignature(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}
