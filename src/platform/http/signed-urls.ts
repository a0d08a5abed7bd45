import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { ForbiddenError } from '../errors/domain-error.js';
import { isSameSignature, keysFor } from './secrets.js';

/**
 * Programs fetch icons and bundles without a key. A signature covers path and expiry, so it opens nothing else. Links
 * remain the same within a `lifetime / 2` window, so that caches can use them.
 */
@Injectable()
export class SignedUrls {
  private readonly secrets: Buffer[];

  constructor(private readonly env: Env) {
    this.secrets = keysFor(env, 'slipway signed links');
  }

  /** Returns an absolute URL, valid for between half and all of `lifetimeSeconds`. */
  sign(path: string, lifetimeSeconds: number): string {
    const half = lifetimeSeconds / 2;
    const expires = Math.ceil(Date.now() / 1000 / half) * half + half;
    return `${this.env.baseUrl}${path}?expires=${expires}&signature=${this.signature(path, expires, this.secrets[0])}`;
  }

  /**
   * Returns false without a signature, and for an expired one.
   *
   * @throws ForbiddenError for an invalid signature
   */
  isSigned(path: string, { expires, signature }: { expires?: unknown; signature?: unknown }): boolean {
    if (expires === undefined && signature === undefined) return false;
    const end = Number(expires);
    const isValid =
      typeof signature === 'string' &&
      Number.isSafeInteger(end) &&
      end > Date.now() / 1000 &&
      this.secrets.some((secret) => isSameSignature(signature, this.signature(path, end, secret)));
    if (!isValid) {
      throw new ForbiddenError('The link is not valid or has expired: read it again from the API.');
    }
    return true;
  }

  private signature(path: string, expires: number, secret: Buffer | undefined): string {
    if (!secret) throw new Error('Signed links need ENCRYPTION_KEYS');
    return createHmac('sha256', secret).update(`${expires} ${path}`).digest('base64url');
  }
}
