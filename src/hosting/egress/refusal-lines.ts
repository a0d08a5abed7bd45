/** A line for the program's log. */
export interface RefusalLine {
  at: number;
  level: 'warn';
  message: string;
}

/**
 * Tells a program's author what was refused, at most so many lines a minute: code that tries in a loop must not drown its
 * own log. What was left out is counted in the next line.
 */
export class RefusalLines {
  private told = 0;
  private leftOut = 0;
  private minuteEnds = 0;

  constructor(
    private readonly perMinute: number,
    private readonly tell: (line: RefusalLine) => void,
  ) {}

  add(message: string): void {
    const now = Date.now();
    if (now >= this.minuteEnds) {
      this.minuteEnds = now + 60_000;
      this.told = 0;
    }
    if (this.told >= this.perMinute) {
      this.leftOut++;
      return;
    }
    this.told++;
    const more = this.leftOut === 0 ? '' : ` (${this.leftOut} refusals before this one were not written down)`;
    this.leftOut = 0;
    this.tell({ at: now, level: 'warn', message: `Outbound request refused: ${message}${more}` });
  }
}
