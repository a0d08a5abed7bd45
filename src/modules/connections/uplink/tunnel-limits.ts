import { Injectable } from '@nestjs/common';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { Metrics, type LabeledCounter } from '../../../platform/telemetry/metrics.js';
import { NoTunnelError, TooManyTunnelsError, UplinkTakenError } from './uplink.errors.js';

/** Tunnels of one process: each takes some 10 KB while idle (`bench/uplinks.mjs`). One account may have a quarter. */
export const TUNNELS_MAX = 20_000;
export const TUNNELS_EACH_MAX = TUNNELS_MAX / 4;

/** Limits of the tunnels in this process: in all, and for each account. */
@Injectable()
export class TunnelLimits {
  private readonly limiter = new KeyedLimiter(TUNNELS_EACH_MAX, TUNNELS_MAX);
  private readonly refused: LabeledCounter<'reason'>;

  constructor(metrics: Metrics) {
    this.refused = metrics.labeledCounter('slipway_uplink_refused_total', 'Tunnels that were refused, by reason.', {
      reason: ['account_share', 'process_full', 'paired', 'other'],
    });
  }

  /** Counts a tunnel. @returns a function to call when the tunnel has ended @throws TooManyTunnelsError, NoTunnelError */
  enter(accountId: string): () => void {
    const leave = this.limiter.enter(accountId);
    if (leave) return leave;
    if (this.limiter.size < TUNNELS_MAX) throw new TooManyTunnelsError(TUNNELS_EACH_MAX);
    throw new NoTunnelError(`This process holds ${TUNNELS_MAX} tunnels already: try again in a few seconds`);
  }

  /** Counts a refused tunnel by its reason. */
  refuse(error: unknown): void {
    this.refused.inc({ reason: this.reasonOf(error) });
  }

  private reasonOf(error: unknown): string {
    if (error instanceof TooManyTunnelsError) return 'account_share';
    if (error instanceof UplinkTakenError) return 'paired';
    return this.limiter.size < TUNNELS_MAX ? 'other' : 'process_full';
  }
}
