import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Env } from '../../config/env.js';

/** 256 random bits: the token of a link, a state, a cookie. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** True for what {@link newSecret} may have made. */
export function isSecret(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** The stored hash of a secret. It needs no salt: 256 random bits cannot be guessed. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/**
 * Keys for one purpose, made of those of the vault, which all processes of a service share: what is made with one says
 * nothing about what the vault seals. The first one makes, all of them check; none where the service has no keys.
 *
 * @param purpose `slipway …`, unlike any other
 */
export function keysFor({ encryptionKeys }: Pick<Env, 'encryptionKeys'>, purpose: string): Buffer[] {
  return (encryptionKeys ?? []).map(({ secret }) => createHmac('sha256', secret).update(purpose).digest());
}

/** True if two signatures are equal, compared in constant time. */
export function isSameSignature(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}
