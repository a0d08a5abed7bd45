/** Back-off after the second crash in a row, doubled by each further one. */
const FIRST_REST_MS = 1_000;
const REST_MS_MAX = 60_000;

/**
 * Back-off of a version that keeps crashing. The first crash has none: one bad request must not lock out all others.
 * From the second in a row it is 1 s, doubling to 60 s. An answer resets it.
 */
export class Backoff {
  private crashesInRow = 0;
  private restsUntil = 0;
  private words = '';

  /** @param lastWords last output of the program */
  crashed(now: number, lastWords: string): void {
    this.crashesInRow += 1;
    this.words = lastWords;
    const doublings = this.crashesInRow - 2;
    this.restsUntil = doublings < 0 ? now : now + Math.min(REST_MS_MAX, FIRST_REST_MS * 2 ** doublings);
  }

  /** Resets the back-off after a complete answer. */
  answered(): void {
    this.crashesInRow = 0;
  }

  get crashes(): number {
    return this.crashesInRow;
  }

  get lastWords(): string {
    return this.words;
  }

  /** Rest of the back-off in milliseconds; 0 when the version may be started. */
  restMs(now: number): number {
    return this.crashesInRow === 0 ? 0 : Math.max(0, this.restsUntil - now);
  }
}
