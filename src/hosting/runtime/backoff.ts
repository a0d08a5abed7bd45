const REMEMBER_MS = 600_000;

const FIRST_REST_MS = 1_000;

const REST_MS_MAX = 60_000;

/**
 * Back-off after crashes. The first crash has none: one bad request must not block all others. From the second one in a row on, it is 1 s,
 * doubled up to 60 s. A response resets the back-off.
 */
export class Backoff {
  crashes = 0;
  private restsUntil = 0;
  private crashedAt = -Infinity;

  crashed(now: number): void {
    this.crashes += 1;
    this.crashedAt = now;
    const doublings = this.crashes - 2;
    this.restsUntil = doublings < 0 ? now : now + Math.min(REST_MS_MAX, FIRST_REST_MS * 2 ** doublings);
  }

  reset(): void {
    this.crashes = 0;
  }

  isOver(now: number): boolean {
    return now - this.crashedAt > REMEMBER_MS;
  }

  /** Returns the remaining milliseconds; 0 when the version can be started. */
  restMs(now: number): number {
    return this.crashes === 0 ? 0 : Math.max(0, this.restsUntil - now);
  }
}
