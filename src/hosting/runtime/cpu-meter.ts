import type { CpuFigures } from './process-metrics.js';

/** Of a core, what code may use beside requests, in loops of `waitUntil` and the like, before it counts against its limit. */
const BESIDE_SHARE = 0.1;

/** One request's account. */
export interface CpuAccount {
  /** CPU time so far, in ms. */
  used(): number;
}

/**
 * Splits the CPU time of one process over the requests it works on: what was used since the last reading goes to those in
 * flight in equal parts. So a request that was alone all the time has its exact time, and together they have what was used.
 */
export class CpuMeter {
  private lastRanMs: number;
  private lastAt: number;
  /** What a request that was there from the beginning would have by now. */
  private share = 0;
  private inFlight = 0;
  private beside = 0;

  /** @param read null when nothing can be read (any more): then everything counts 0 */
  constructor(
    private readonly read: () => Pick<CpuFigures, 'ranMs'> | null,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lastRanMs = read()?.ranMs ?? 0;
    this.lastAt = now();
  }

  /** A request begins. */
  begin(): CpuAccount {
    this.settle();
    this.inFlight += 1;
    const from = this.share;
    return { used: () => this.share - from };
  }

  /** A request ended: its account holds all it will. */
  end(account: CpuAccount): number {
    this.settle();
    this.inFlight -= 1;
    return account.used();
  }

  /** Brings the accounts up to date; @returns the share of a core that was used since the last time */
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

  /** CPU time used while no request was in flight, in ms, less the tenth of a core that is free. */
  get besideMs(): number {
    return this.beside;
  }
}
