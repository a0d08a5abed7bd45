import { Logger, type OnApplicationShutdown } from '@nestjs/common';

/** Delay before values are written: bookkeeping may be a second old. */
const FLUSH_INTERVAL_MS = 1_000;

/** Limit of waiting rows, of some hundred bytes each. Above it new rows are dropped and counted. */
const WAITING_MAX = 50_000;

/** Largest weight of all waiting values and those being written. Beyond it, new values are dropped and counted. */
export interface WeightBound<Value> {
  of: (value: Value) => number;
  max: number;
}

/** For values of a few hundred bytes the limit of their number suffices. */
const WEIGHTLESS = { of: () => 0, max: Infinity };

/** Waiting values of all buffers of one name, and dropped values since the process started. */
export interface BufferStats {
  name: string;
  waiting: number;
  dropped: number;
}

/** The buffers of one name: one for each service that runs in this process, which is one outside of tests. */
interface Group {
  live: Set<{ size: number }>;
  dropped: number;
}

const groups = new Map<string, Group>();

/** All buffers of this process, by their names. */
export function bufferStats(): BufferStats[] {
  return [...groups].map(([name, { live, dropped }]) => ({
    name,
    waiting: [...live].reduce((sum, { size }) => sum + size, 0),
    dropped,
  }));
}

/**
 * Buffer for bookkeeping, which must not cost a call a database round trip: the latest value per key is written in one
 * statement a second later. While the database cannot be reached the values wait, up to a limit.
 */
export class WriteBehind<Key, Value> implements OnApplicationShutdown {
  private waiting = new Map<Key, Value>();
  /** The batch being written. */
  private writing = new Map<Key, Value>();
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> = Promise.resolve();
  private weight = 0;
  private dropped = 0;
  private readonly logger: Logger;
  private readonly group: Group;

  constructor(
    name: string,
    private readonly write: (batch: Map<Key, Value>) => Promise<void>,
    private readonly bound: WeightBound<Value> = WEIGHTLESS,
  ) {
    this.logger = new Logger(name);
    this.group = groups.get(name) ?? { live: new Set(), dropped: 0 };
    this.group.live.add(this);
    groups.set(name, this.group);
  }

  /** Rows that wait. */
  get size(): number {
    return this.waiting.size;
  }

  /** Adds a value to the next flush, in place of an earlier one with the same key. */
  set(key: Key, value: Value): void {
    const more = this.bound.of(value) - this.weightOf(key);
    const isSurplus = this.waiting.size >= WAITING_MAX && !this.waiting.has(key);
    if (isSurplus || (more > 0 && this.weight + more > this.bound.max)) return this.lose();
    this.weight += more;
    this.put(key, value);
  }

  /** The value that waits for this key, if any. */
  get(key: Key): Value | undefined {
    return this.waiting.get(key);
  }

  /** Removes the value of a key whose row is deleted or written otherwise. A failed write does not restore it. */
  delete(key: Key): void {
    for (const batch of [this.waiting, this.writing]) {
      this.weight -= this.weightOf(key, batch);
      batch.delete(key);
    }
  }

  /** Writes the waiting values. Never rejects: a failed batch is put back under newer values and tried again. */
  flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.flushing = this.flushing.then(() => this.writeBatch());
    return this.flushing;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.flush();
    this.group.live.delete(this);
  }

  private put(key: Key, value: Value): void {
    this.waiting.set(key, value);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  private weightOf(key: Key, batch = this.waiting): number {
    const value = batch.get(key);
    return value === undefined ? 0 : this.bound.of(value);
  }

  private async writeBatch(): Promise<void> {
    if (this.waiting.size === 0) return;
    const batch = this.waiting;
    this.writing = batch;
    this.waiting = new Map();
    try {
      await this.write(batch);
      for (const value of batch.values()) this.weight -= this.bound.of(value);
    } catch (error) {
      this.logger.warn({ msg: `${batch.size} updates wait for the database`, err: error as Error });
      for (const [key, value] of batch) this.putBack(key, value);
    }
    this.writing = new Map();
    if (this.dropped > 0) {
      this.logger.warn(`${this.dropped} updates were dropped: too many were waiting`);
      this.dropped = 0;
    }
  }

  /** Restores the value of a failed write, unless there is a newer one. */
  protected putBack(key: Key, value: Value): void {
    const isReplaced = this.waiting.has(key);
    if (!isReplaced && this.waiting.size < WAITING_MAX) return this.put(key, value);
    this.weight -= this.bound.of(value);
    if (!isReplaced) this.lose();
  }

  private lose(): void {
    this.dropped += 1;
    this.group.dropped += 1;
  }
}

/** Counts per key, added to their rows a second later. A killed process loses that second. */
export class CountBehind<Key> extends WriteBehind<Key, number> {
  /** Counts in memory only. */
  add(key: Key, count = 1): void {
    this.set(key, (this.get(key) ?? 0) + count);
  }

  /** Counts of a failed batch are added to newer ones. */
  protected override putBack(key: Key, count: number): void {
    this.add(key, count);
  }
}
