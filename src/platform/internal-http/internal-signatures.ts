import { createHash, createHmac, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Env } from '../../config/env.js';
import { isSameSignature, keysFor } from '../http/secrets.js';

/** The header that a request between processes carries. */
export const INTERNAL_HEADER = 'x-slipway-internal';

/** How far the clocks of two processes may be apart, and how long a request is remembered so that it counts once. */
const AGE_MS_MAX = 30_000;
const REMEMBERED_MAX = 100_000;

/**
 * Signs what processes of one service say to each other, with a secret they share already: the keys of the vault. A
 * signature covers path and body, holds for 30 s and counts once, so that whoever reads the network cannot repeat a call.
 */
@Injectable()
export class InternalSignatures {
  private readonly secrets: Buffer[];
  private readonly seen = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: 2 * AGE_MS_MAX });

  constructor(env: Env) {
    this.secrets = keysFor(env, 'slipway internal calls');
  }

  /** The header's value for one request. */
  sign(path: string, body: string): string {
    const [secret] = this.secrets;
    if (!secret) throw new Error('Calls between processes need ENCRYPTION_KEYS');
    const claim = `${Date.now()}.${randomBytes(12).toString('base64url')}.${digestOf(body)}`;
    return `${claim}.${signatureOf(secret, path, claim)}`;
  }

  /**
   * Whether a process of this service sent the request, judged before its body is read.
   *
   * @returns whether a body is the one that was signed; null when the header is not ours, too old, or was seen before
   */
  verify(path: string, header: string | string[] | undefined): ((body: string) => boolean) | null {
    if (typeof header !== 'string') return null;
    const end = header.lastIndexOf('.');
    const [claim, signature] = [header.slice(0, end), header.slice(end + 1)];
    if (!this.secrets.some((secret) => isSameSignature(signature, signatureOf(secret, path, claim)))) return null;
    const [at, , digest = ''] = claim.split('.');
    if (Math.abs(Date.now() - Number(at)) > AGE_MS_MAX || this.seen.has(claim)) return null;
    this.seen.set(claim, true);
    return (body) => isSameSignature(digest, digestOf(body));
  }
}

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('base64url');
}

function signatureOf(secret: Buffer, path: string, claim: string): string {
  return createHmac('sha256', secret).update(`${path}\n${claim}`).digest('base64url');
}
