import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';

/**
 * Derives the names of stateful programs' sessions from the caller, so that every process, also after a restart,
 * continues the same session. A name grants access, so it is an HMAC with the first encryption key of the service; a
 * new first key begins new sessions.
 */
@Injectable()
export class SessionNames {
  private readonly secret: Buffer | undefined;

  constructor(env: Env) {
    [this.secret] = keysFor(env, 'slipway hosted sessions');
  }

  /**
   * Session names with one program, by profile key; null without encryption keys.
   *
   * @param scope everything that separates these sessions from others: program, caller, configuration
   */
  within(...scope: unknown[]): ((profileKey: string) => string) | null {
    const { secret } = this;
    if (!secret) return null;
    // JSON separates the parts unambiguously.
    return (profileKey) =>
      createHmac('sha256', secret)
        .update(JSON.stringify([...scope, profileKey]))
        .digest('base64url');
  }
}
