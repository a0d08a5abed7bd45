import { Logger, type OnApplicationShutdown } from '@nestjs/common';

/** Delay before values are written: bookkeeping can be a second old. */
const FLUSH_INTERVAL_MS = 1_000;

/** Limit of waiting rows, of some hundred bytes each. */
const WAITING_MAX = 50_000;

/** Limits of a buffer, above which new values are dropped and counted, and how values are combined. */
export interface BufferOptions<Value> {
  /** Maximum number of waiting rows; 50,000 by default. */
  rowsMax?: number;
  /** Weight of a value. For values of a few hundred bytes the limit of rows is enough. */
  of?: (value: Value) => number;
  /** Largest weight of all waiting values and those being written. */
  max?: number;
  /** Combines two values of one key. By default the newer one is used. */
  merge?: (newer: Value, older: Value) => Value;
}

/** Numbers of waiting values of all buffers of one name, and of dropped values since the process started. */
export interface BufferStats {
  name: string;
  waiting: number;
  dropped: number;
}

/** The buffers of one name: one for each service in this process, and only tests run several. */
interface Group {
  live: Set<{ size: number }>;
  dropped: number;
}

const groups = new Map<string, Group>();

/** Returns all buffers of this process, by their names. */
export function bufferStats(): BufferStats[] {
  return [...groups].map(([name, { live, dropped }]) => ({
    name,
    waiting: [...live].reduce((sum, { size }) => sum + size, 0),
    dropped,
  }));
}

/**
 * Buffer for bookkeeping, which must not cost a call a database round trip: the latest value per key, or all of them
 * merged, is written in one statement a second later. While the database cannot be reached the values wait, up to a limit.
 */
export class WriteBehind<Key, Value> implements OnApplicationShutdown {
  private waiting = new Map<Key, Value>();
  private writing = new Map<Key, Value>();
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> = Promise.resolve();
  private weight = 0;
  private unreported = 0;
  private readonly logger: Logger;
  private readonly group: Group;
  private readonly options: Required<BufferOptions<Value>>;

  constructor(
    name: string,
    private readonly write: (batch: Map<Key, Value>) => Promise<void>,
    options: BufferOptions<Value> = {},
  ) {
    this.options = { rowsMax: WAITING_MAX, of: () => 0, max: Infinity, merge: (newer) => newer, ...options };
    this.logger = new Logger(name);
    this.group = groups.get(name) ?? { live: new Set(), dropped: 0 };
    this.group.live.add(this);
    groups.set(name, this.group);
  }

  /** Number of dropped values of all buffers of this name, since the process started. */
  get dropped(): number {
    return this.group.dropped;
  }

  get size(): number {
    return this.waiting.size;
  }

  /** Adds a value to the next flush, in place of an earlier one with the same key or merged with it. */
  set(key: Key, value: Value): void {
    const older = this.waiting.get(key);
    this.put(key, older === undefined ? value : this.options.merge(value, older));
  }

  get(key: Key): Value | undefined {
    return this.waiting.get(key);
  }

  /** Returns true while a value of this key waits or is being written. */
  has(key: Key): boolean {
    return this.waiting.has(key) || this.writing.has(key);
  }

  /** Removes the value of a key whose row is deleted or written otherwise. A failed write does not restore it. */
  delete(key: Key): void {
    for (const batch of [this.waiting, this.writing]) {
      this.weight -= this.weightOf(key, batch);
      batch.delete(key);
    }
  }

  /**
   * Writes the waiting values. Never rejects: the values of a failed batch are written with the next one, unless newer
   * ones replace them, and dropped on exit.
   */
  flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.flushing = this.flushing.then(() => this.writeBatch());
    return this.flushing;
  }

  async onApplicationShutdown(): Promise<void> {
    this.group.live.delete(this);
    await this.flush();
  }

  private put(key: Key, value: Value): void {
    const { of, max, rowsMax } = this.options;
    const more = of(value) - this.weightOf(key);
    const isSurplus = this.waiting.size >= rowsMax && !this.waiting.has(key);
    if (isSurplus || (more > 0 && this.weight + more > max)) {
      this.unreported += 1;
      this.group.dropped += 1;
      return;
    }
    this.weight += more;
    this.waiting.set(key, value);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  private weightOf(key: Key, batch = this.waiting): number {
    const value = batch.get(key);
    return value === undefined ? 0 : this.options.of(value);
  }

  private async writeBatch(): Promise<void> {
    if (this.waiting.size === 0) return;
    const batch = this.waiting;
    this.writing = batch;
    this.waiting = new Map();
    try {
      await this.write(batch);
      for (const value of batch.values()) this.weight -= this.options.of(value);
    } catch (error) {
      if (this.group.live.has(this)) {
        this.logger.warn({ msg: `${batch.size} updates wait for the database`, err: error as Error });
        for (const [key, value] of batch) {
          this.weight -= this.options.of(value);
          const newer = this.waiting.get(key);
          this.put(key, newer === undefined ? value : this.options.merge(newer, value));
        }
      } else {
        this.group.dropped += batch.size;
        this.logger.warn({ msg: `${batch.size} updates are lost: the process is stopping`, err: error as Error });
      }
    }
    this.writing = new Map();
    if (this.unreported > 0) {
      this.logger.warn(`${this.unreported} updates were dropped: too many were waiting`);
      this.unreported = 0;
    }
  }
}
