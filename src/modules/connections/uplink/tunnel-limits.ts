import { Injectable } from '@nestjs/common';
import { shareOf } from '../../../config/workers.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { Metrics, type LabeledCounter } from '../../../platform/telemetry/metrics.js';
import { ConflictError, TooManyError, UnavailableError } from '../../../platform/errors/domain-error.js';

/**
 * Tunnels of one process: each takes some 10 KB while idle (`bench/uplinks.mjs`). One account gets at most a quarter.
 */
export const TUNNELS_MAX = 20_000;
export const TUNNELS_EACH_MAX = TUNNELS_MAX / 4;

@Injectable()
export class TunnelLimits {
  private readonly limiter = new KeyedLimiter(TUNNELS_EACH_MAX, TUNNELS_MAX);
  private readonly refused: LabeledCounter<'reason'>;

  constructor(metrics: Metrics) {
    this.refused = metrics.labeledCounter('slipway_uplink_refused_total', 'Tunnels that were refused, by reason.', {
      reason: ['account_share', 'process_full', 'paired', 'other'],
    });
  }

  /**
   * @returns a function to call when the tunnel has closed
   * @throws TooManyError, UnavailableError
   */
  acquire(accountId: string): () => void {
    const leave = this.limiter.acquire(accountId);
    if (leave) return leave;
    if (!this.limiter.isFull) {
      throw new TooManyError(
        `This account holds ${shareOf(TUNNELS_EACH_MAX)} tunnels of this process, as many as one may: end some of them first`,
        60,
      );
    }
    throw new UnavailableError(
      `This process holds ${shareOf(TUNNELS_MAX)} tunnels already: try again in a few seconds`,
      5,
    );
  }

  refuse(error: unknown): void {
    let reason = this.limiter.isFull ? 'process_full' : 'other';
    if (error instanceof TooManyError) reason = 'account_share';
    else if (error instanceof ConflictError) reason = 'paired';
    this.refused.inc({ reason });
  }
}
