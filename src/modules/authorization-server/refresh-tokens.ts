/**
 * Ids of the tokens of a login. A refresh token has one successor, and the successor and its access token follow from it (HMAC):
 * a refresh that is repeated, because its response was lost or in another process, makes the same tokens again and stores the same
 * rows. A refresh token also proves of which grant it is, so that one whose row went long ago is known as a replay.
 *
 * The successor is made with the key that made the token, so it is the same after a rotation of `ENCRYPTION_KEYS`.
 *
 * On the wire: a refresh token is the base64url of grant id (16 bytes), secret (32) and MAC (16). Those issued before 2026-11-27
 * are 43 random characters.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const GRANT_BYTES = 16;
const SECRET_BYTES = 32;
const MAC_BYTES = 16;

/** Makes and recognises refresh tokens. */
export class RefreshTokens {
  /** @param keys the first one makes tokens, all of them recognise one */
  constructor(private readonly keys: readonly Buffer[]) {}

  /** The refresh token that follows `used` in a grant; null for the first one of the grant. */
  next(grantId: string, used: string | null): string {
    const key = this.keyOf(used);
    const secret = used === null ? randomBytes(SECRET_BYTES) : hmac(key, 'refresh', used);
    const body = Buffer.concat([Buffer.from(grantId.replaceAll('-', ''), 'hex'), secret]);
    return Buffer.concat([body, macOf(key, body)]).toString('base64url');
  }

  /** The secret part of the access token that a refresh with `used` makes. */
  accessSecret(used: string): string {
    return hmac(this.keyOf(used), 'access', used).toString('base64url');
  }

  /** The grant of a refresh token of this service; null for anything else. */
  grantOf(token: string): string | null {
    const bytes = Buffer.from(token, 'base64url');
    if (!this.keys.some((key) => isMadeWith(key, bytes)) || bytes.toString('base64url') !== token) return null;
    return bytes.toString('hex', 0, GRANT_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /** The key that made a token; the newest for none and for a token of a version before. */
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
