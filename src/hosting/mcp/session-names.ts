import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { keysFor } from '../../platform/http/secrets.js';

/**
 * Names the sessions of stateful programs by who asks, so that every process, also after a restart, leads the same caller
 * to the same session. Whoever knows a session's name can enter it, so names are made with the first of the service's keys:
 * another one first begins new sessions.
 */
@Injectable()
export class SessionNames {
  private readonly secret: Buffer | undefined;

  constructor(env: Env) {
    [this.secret] = keysFor(env, 'slipway hosted sessions');
  }

  /**
   * The names of sessions with one program, by profile key; null when the service has no key.
   *
   * @param scope all that tells these sessions from others: whose program, who calls it, with what values
   */
  within(...scope: unknown[]): ((profileKey: string) => string) | null {
    const { secret } = this;
    if (!secret) return null;
    // JSON keeps the parts apart, whatever stands in them.
    return (profileKey) =>
      createHmac('sha256', secret)
        .update(JSON.stringify([...scope, profileKey]))
        .digest('base64url');
  }
}
