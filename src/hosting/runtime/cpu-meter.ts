import type { CpuFigures } from './process-metrics.js';

/**
 * Share of a core that code may use outside of requests, in `waitUntil` and the like, before it counts against its
 * limit.
 */
const BESIDE_SHARE = 0.1;

/** CPU account of one request. */
export interface CpuAccount {
  /** CPU time so far, in ms. */
  used(): number;
}

/**
 * Divides the CPU time of one process among its requests: the time since the last reading is split equally among those
 * in flight. A request without concurrent ones has its exact time, and the sum is always exact.
 */
export class CpuMeter {
  private lastRanMs: number;
  private lastAt: number;
  /** CPU time of a request that had been in flight since the start. */
  private share = 0;
  private inFlight = 0;
  private beside = 0;

  /** @param read returns null when nothing can be read (any more); everything then counts 0 */
  constructor(
    private readonly read: () => Pick<CpuFigures, 'ranMs'> | null,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lastRanMs = read()?.ranMs ?? 0;
    this.lastAt = now();
  }

  /** Opens the account of a request. */
  begin(): CpuAccount {
    this.settle();
    this.inFlight += 1;
    const from = this.share;
    return { used: () => this.share - from };
  }

  /** Closes the account of a request and returns its CPU time. */
  end(account: CpuAccount): number {
    this.settle();
    this.inFlight -= 1;
    return account.used();
  }

  /** Updates the accounts; @returns the share of a core used since the last update */
  settle(): number {
    const ranMs = this.read()?.ranMs ?? this.lastRanMs;
    const at = this.now();
    const delta = Math.max(0, ranMs - this.lastRanMs);
    const elapsed = Math.max(0, at - this.lastAt);
    this.lastRanMs = ranMs;
    this.lastAt = at;
    this.beside = Math.max(0, this.beside - elapsed * BESIDE_SHARE);
    if (this.inFlight > 0) this.share += delta / this.inFlight;
    else this.beside += delta;
    return elapsed === 0 ? 0 : delta / elapsed;
  }

  /** CPU time used outside of requests, in ms, above the free tenth of a core. */
  get besideMs(): number {
    return this.beside;
  }
}
