/** Counts what runs for each of many, and says when one has enough. Nothing is kept of those for whom nothing runs. */
export class KeyedLimiter {
  private readonly counts = new Map<string, number>();
  private total = 0;

  /** @param maxEach for each; `maxAll` for all together */
  constructor(
    private readonly maxEach: number,
    private readonly maxAll: number,
  ) {}

  /** Running now, for all keys together. */
  get size(): number {
    return this.total;
  }

  /** @returns to be called once when it is over; null when there is no room */
  enter(whom: string): (() => void) | null {
    const count = this.counts.get(whom) ?? 0;
    if (count >= this.maxEach || this.total >= this.maxAll) return null;
    this.counts.set(whom, count + 1);
    this.total += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.total -= 1;
      const left = (this.counts.get(whom) ?? 1) - 1;
      if (left === 0) this.counts.delete(whom);
      else this.counts.set(whom, left);
    };
  }
}
