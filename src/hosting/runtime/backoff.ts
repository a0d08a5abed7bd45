/** Time for which crashes are remembered. */
const REMEMBER_MS = 600_000;

/** Back-off after the second crash in a row, doubled after each further one. */
const FIRST_REST_MS = 1_000;

const REST_MS_MAX = 60_000;

/**
 * Back-off of a version that keeps crashing. The first crash has none: one bad request must not block all others. From
 * the second in a row it is 1 s, doubling to 60 s. A response resets it.
 */
export class Backoff {
  /** Crashes in a row. */
  crashes = 0;
  private restsUntil = 0;
  private crashedAt = -Infinity;

  crashed(now: number): void {
    this.crashes += 1;
    this.crashedAt = now;
    const doublings = this.crashes - 2;
    this.restsUntil = doublings < 0 ? now : now + Math.min(REST_MS_MAX, FIRST_REST_MS * 2 ** doublings);
  }

  /** Resets the back-off after a complete response. */
  reset(): void {
    this.crashes = 0;
  }

  isOver(now: number): boolean {
    return now - this.crashedAt > REMEMBER_MS;
  }

  /** Remaining back-off in ms; 0 when the version may be started. */
  restMs(now: number): number {
    return this.crashes === 0 ? 0 : Math.max(0, this.restsUntil - now);
  }
}
