import { createHash, randomBytes } from 'node:crypto';

/** 256 random bits: the token of a link, a state, a cookie. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** True for what {@link newSecret} may have made. */
export function isSecret(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** What is stored of a secret. No salt: there is nothing to guess in 256 random bits. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
