/** The second crash in a row costs this long; each further one twice as long. */
const FIRST_REST_MS = 1_000;
const REST_MS_MAX = 60_000;

/**
 * How long a version that keeps crashing rests before it is started again. The first crash costs nothing: one bad request
 * must not shut out all others. From the second in a row it is 1 s, doubling to 60 s. An answer ends the row.
 */
export class Backoff {
  private crashesInRow = 0;
  private restsUntil = 0;
  private words = '';

  /** @param lastWords what the program said last */
  crashed(now: number, lastWords: string): void {
    this.crashesInRow += 1;
    this.words = lastWords;
    const doublings = this.crashesInRow - 2;
    this.restsUntil = doublings < 0 ? now : now + Math.min(REST_MS_MAX, FIRST_REST_MS * 2 ** doublings);
  }

  /** The program gave a whole answer. */
  answered(): void {
    this.crashesInRow = 0;
  }

  get crashes(): number {
    return this.crashesInRow;
  }

  get lastWords(): string {
    return this.words;
  }

  /** How long it still rests; 0 when it may be started. */
  restMs(now: number): number {
    return this.crashesInRow === 0 ? 0 : Math.max(0, this.restsUntil - now);
  }
}
