/**
 * Ids of the tokens of a login. A refresh token has one successor, and the successor and its access token follow from it (HMAC):
 * a refresh that is repeated, because its answer was lost or in another process, makes the same tokens again and stores the same
 * rows. A refresh token also proves of which grant it is, so that one whose row went long ago is known as a replay, and a made-up
 * one costs no query.
 *
 * On the wire: a refresh token is the base64url of grant id (16 bytes), secret (32) and MAC (16). Those issued before 2026-11-27
 * are 43 random characters.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { hashSecret } from '../../platform/http/secrets.js';

const GRANT_BYTES = 16;
const SECRET_BYTES = 32;
const MAC_BYTES = 16;

/** Makes and recognises refresh tokens. */
export class RefreshTokens {
  /** @param keys the first one makes tokens, all of them recognise one */
  constructor(private readonly keys: readonly Buffer[]) {}

  /** The refresh token that follows `used` in a grant; null for the first one of the grant. */
  next(grantId: string, used: string | null): string {
    return this.made(this.keys[0], grantId, used);
  }

  /** The secret part of the access token that a refresh with `used` makes. */
  accessSecret(used: string): string {
    return hmac(this.keys[0], 'access', used).toString('base64url');
  }

  /** The hashes that the row of the successor of `used` may have: one for each key. */
  nextHashes(grantId: string, used: string): Buffer[] {
    return this.keys.map((key) => hashSecret(this.made(key, grantId, used)));
  }

  /** The grant of a refresh token of this service; null for anything else. */
  grantOf(token: string): string | null {
    const bytes = Buffer.from(token, 'base64url');
    if (bytes.length !== GRANT_BYTES + SECRET_BYTES + MAC_BYTES || bytes.toString('base64url') !== token) return null;
    const body = bytes.subarray(0, GRANT_BYTES + SECRET_BYTES);
    const mac = bytes.subarray(body.length);
    if (!this.keys.some((key) => timingSafeEqual(macOf(key, body), mac))) return null;
    return body.toString('hex', 0, GRANT_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  private made(key: Buffer | undefined, grantId: string, used: string | null): string {
    const secret = used === null ? randomBytes(SECRET_BYTES) : hmac(key, 'refresh', used);
    const body = Buffer.concat([Buffer.from(grantId.replaceAll('-', ''), 'hex'), secret]);
    return Buffer.concat([body, macOf(key, body)]).toString('base64url');
  }
}

function hmac(key: Buffer | undefined, purpose: string, text: string): Buffer {
  if (!key) throw new Error('The service has no keys to make tokens with');
  return createHmac('sha256', key).update(`${purpose} `).update(text).digest();
}

function macOf(key: Buffer | undefined, body: Buffer): Buffer {
  return hmac(key, 'grant', body.toString('base64url')).subarray(0, MAC_BYTES);
}
