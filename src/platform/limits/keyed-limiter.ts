/** Limits concurrent work, for each key and in all. Keys without work take no memory. */
export class KeyedLimiter {
  private readonly counts = new Map<string, number>();
  private total = 0;

  /** @param maxEach limit of one key @param maxAll limit of all keys */
  constructor(
    private readonly maxEach: number,
    private readonly maxAll: number,
  ) {}

  /** Work in progress of all keys. */
  get size(): number {
    return this.total;
  }

  /**
   * Starts work of a key.
   *
   * @param maxEach limit of this key where keys have limits of their own
   * @returns a function to call at its end; null above a limit
   */
  enter(whom: string, maxEach = this.maxEach): (() => void) | null {
    const count = this.counts.get(whom) ?? 0;
    if (count >= maxEach || this.total >= this.maxAll) return null;
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
