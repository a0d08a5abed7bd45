import { Injectable } from '@nestjs/common';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { Counts } from '../../../platform/telemetry/figures.js';
import { NoTunnelError, TooManyTunnelsError, UplinkTakenError } from './uplink.errors.js';

/** Tunnels one process holds: each takes some 10 KB while idle (`bench/uplinks.mjs`). One account may have a quarter. */
export const TUNNELS_MAX = 20_000;
export const TUNNELS_EACH_MAX = TUNNELS_MAX / 4;

/** The places for tunnels in this process. */
@Injectable()
export class TunnelLimits {
  private readonly taken = new KeyedLimiter(TUNNELS_EACH_MAX, TUNNELS_MAX);
  /** Tunnels that were refused, by reason. */
  readonly refused = new Counts('reason', ['account_share', 'process_full', 'paired', 'other']);

  /** @returns to be called when the tunnel is over @throws TooManyTunnelsError, NoTunnelError */
  enter(accountId: string): () => void {
    const leave = this.taken.enter(accountId);
    if (leave) return leave;
    if (this.taken.size < TUNNELS_MAX) throw new TooManyTunnelsError(TUNNELS_EACH_MAX);
    throw new NoTunnelError(`This process holds ${TUNNELS_MAX} tunnels already: try again in a few seconds`);
  }

  /** Counts why a tunnel was refused. */
  refuse(error: unknown): void {
    if (error instanceof TooManyTunnelsError) this.refused.add('account_share');
    else if (error instanceof UplinkTakenError) this.refused.add('paired');
    else this.refused.add(this.taken.size < TUNNELS_MAX ? 'other' : 'process_full');
  }
}
