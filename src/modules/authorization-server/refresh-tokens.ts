/**
 * Derives the tokens of a client authorization. A refresh token has one successor, and the successor and its access token are derived from
 * it (HMAC, with the key of the predecessor): a refresh that is repeated, because its response was lost or in another process, returns the
 * same tokens. A refresh token also proves which authorization it belongs to, so one whose row was deleted is still recognised as a replay.
 *
 * Format: base64url of authorization id (16 bytes), secret (32) and MAC (16). Tokens issued before 2026-11-27 are 43 random characters.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const GRANT_BYTES = 16;
const SECRET_BYTES = 32;
const MAC_BYTES = 16;

export class RefreshTokens {
  /** @param keys the first key signs new tokens, and every key recognises tokens */
  constructor(private readonly keys: readonly Buffer[]) {}

  /** @param used null for the first token of the authorization */
  next(grantId: string, used: string | null): string {
    const key = this.keyOf(used);
    const secret = used === null ? randomBytes(SECRET_BYTES) : hmac(key, 'refresh', used);
    const body = Buffer.concat([Buffer.from(grantId.replaceAll('-', ''), 'hex'), secret]);
    return Buffer.concat([body, macOf(key, body)]).toString('base64url');
  }

  accessSecret(used: string): string {
    return hmac(this.keyOf(used), 'access', used).toString('base64url');
  }

  /** @returns null for anything other than one of our refresh tokens */
  grantOf(token: string): string | null {
    const bytes = Buffer.from(token, 'base64url');
    if (!this.keys.some((key) => isMadeWith(key, bytes)) || bytes.toString('base64url') !== token) return null;
    return bytes.toString('hex', 0, GRANT_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /** Returns the key that signed a token; the newest key for null and for a token of an earlier version. */
  private keyOf(token: string | null): Buffer | undefined {
    const bytes = Buffer.from(token ?? '', 'base64url');
    return this.keys.find((key) => isMadeWith(key, bytes)) ?? this.keys[0];
  }
}

function hmac(key: Buffer | undefined, purpose: string, text: string): Buffer {
  if (!key) throw new Error('The service has no keys to issue tokens with');
  return createHmac('sha256', key).update(`${purpose} `).update(text).digest();
}

function macOf(key: Buffer | undefined, body: Buffer): Buffer {
  return hmac(key, 'grant', body.toString('base64url')).subarray(0, MAC_BYTES);
}

function isMadeWith(key: Buffer, token: Buffer): boolean {
  if (token.length !== GRANT_BYTES + SECRET_BYTES + MAC_BYTES) return false;
  const body = token.subarray(0, GRANT_BYTES + SECRET_BYTES);
  return timingSafeEqual(macOf(key, body), token.subarray(body.length));
}
