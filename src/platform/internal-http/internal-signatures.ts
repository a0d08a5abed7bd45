import { createHmac, hash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { growingLru } from '../limits/growing-lru.js';
import { Env } from '../../config/env.js';
import { isSameSignature, keysFor } from '../http/secrets.js';

export const INTERNAL_HEADER = 'x-slipway-internal';

export interface SignedHead {
  head: object;
  /** Null without a body. `sha256`: null for a body that streams, since its digest is not known at the start. */
  body: { sha256: string | null } | null;
}

/** Maximum age of a signature. Seen signatures are remembered for longer, so that each is accepted only once. */
export const AGE_MS_MAX = 30_000;
const REMEMBERED_MAX = 100_000;

/**
 * The secret is the keys of the vault, which the processes of one service share. A signature covers the receiver's
 * address, path and head, is valid for 30 s and only once, so that an eavesdropper cannot repeat a request.
 */
@Injectable()
export class InternalSignatures {
  private readonly secrets: Buffer[];
  private readonly usedClaims = growingLru<true>(REMEMBERED_MAX, { ttl: 2 * AGE_MS_MAX });

  constructor(private readonly env: Env) {
    this.secrets = keysFor(env, 'slipway internal calls');
  }

  /** @param url address of the receiver, as it registered it */
  sign(url: string, path: string, head: string): string {
    const [secret] = this.secrets;
    if (!secret) throw new Error('Calls between processes need ENCRYPTION_KEYS');
    const claim = `${Date.now()}.${randomBytes(12).toString('base64url')}.${digestOf(head)}`;
    return `${claim}.${signatureOf(secret, url + path, claim)}`;
  }

  /**
   * Runs before anything of the request's body is read.
   *
   * @returns a check that a head is the signed one; null for a header that is not Slipway's, is for another process, is
   * too old, or was seen before
   */
  verify(path: string, header: string | string[] | undefined): ((head: string) => boolean) | null {
    if (typeof header !== 'string') return null;
    const end = header.lastIndexOf('.');
    const [claim, signature] = [header.slice(0, end), header.slice(end + 1)];
    const target = `${this.env.internalUrl}${path}`;
    if (!this.secrets.some((secret) => isSameSignature(signature, signatureOf(secret, target, claim)))) return null;
    const [at, , digest = ''] = claim.split('.');
    if (Math.abs(Date.now() - Number(at)) > AGE_MS_MAX || this.usedClaims.has(claim)) return null;
    this.usedClaims.set(claim, true);
    return (head) => isSameSignature(digest, digestOf(head));
  }
}

function digestOf(head: string): string {
  return hash('sha256', head, 'base64url');
}

function signatureOf(secret: Buffer, target: string, claim: string): string {
  return createHmac('sha256', secret).update(`${target}\n${claim}`).digest('base64url');
}
