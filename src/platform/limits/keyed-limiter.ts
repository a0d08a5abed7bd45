/**
 * Limits concurrent work, for each key and in total. `acquire` immediately rejects work above a limit; `run` lets it
 * wait for its turn, up to a time. Work with several keys, such as a host and an account, is counted for each.
 *
 * Limits of work that does not wait restrict what users hold, so the processes of `WORKERS` share them. Those of
 * waiting work restrict what one process does concurrently.
 *
 * Waiting work starts in order, except while its keys are at their limit: one slow host or busy account does not delay
 * the others.
 */
import { shareOf } from '../../config/workers.js';
import { UnavailableError } from '../errors/domain-error.js';

/** Thrown when work could not start in time because too much other work was running. */
export class NoSlotError extends UnavailableError {
  constructor() {
    super('Too many requests of this kind are at work: try again in a few seconds', 5);
  }
}

export class KeyedLimiter {
  private readonly counts = new Map<string, number>();
  private readonly waiting = new Set<() => boolean>();
  private total = 0;

  /**
   * @param maxEach limit of one key
   * @param maxAll limit of all keys
   * @param waitMs how long {@link run} waits
   */
  constructor(
    private readonly maxEach: number,
    private readonly maxAll: number,
    private readonly waitMs = 0,
  ) {}

  static fair(max: number, waitMs: number): KeyedLimiter {
    return new KeyedLimiter(Math.max(1, Math.floor(max / 2)), max, waitMs);
  }

  /** True while no key has a free slot. */
  get isFull(): boolean {
    return this.total >= this.shareOf(this.maxAll);
  }

  /** Number of running tasks of all keys. */
  get size(): number {
    return this.total;
  }

  /**
   * Starts work of a key, or of several.
   *
   * @param maxEach limit of these keys if keys have their own limits
   * @returns a function to call when it has finished; null above a limit
   */
  acquire(key: string | readonly string[], maxEach = this.maxEach): (() => void) | null {
    const keys = typeof key === 'string' ? [key] : key;
    const share = this.shareOf(maxEach);
    if (this.isFull || keys.some((name) => (this.counts.get(name) ?? 0) >= share)) return null;
    this.count(keys, 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.count(keys, -1);
      for (const start of this.waiting) if (start()) this.waiting.delete(start);
    };
  }

  /**
   * Runs work when a slot is free.
   *
   * @param slotMs time after which it releases its slot although it continues
   * @throws NoSlotError when the work could not start in time; errors of the work
   */
  async run<T>(key: string | readonly string[], work: () => Promise<T>, slotMs?: number): Promise<T> {
    const leave = this.acquire(key) ?? (await this.turn(key));
    const timer = slotMs === undefined ? undefined : setTimeout(leave, slotMs);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  private turn(key: string | readonly string[]): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        const leave = this.acquire(key);
        if (!leave) return false;
        clearTimeout(timer);
        resolve(leave);
        return true;
      };
      const timer = setTimeout(() => {
        this.waiting.delete(start);
        reject(new NoSlotError());
      }, this.waitMs);
      this.waiting.add(start);
    });
  }

  private shareOf(max: number): number {
    return this.waitMs === 0 ? shareOf(max) : max;
  }

  private count(keys: readonly string[], by: 1 | -1): void {
    this.total += by;
    for (const key of keys) {
      const count = (this.counts.get(key) ?? 0) + by;
      if (count === 0) this.counts.delete(key);
      else this.counts.set(key, count);
    }
  }
}
