import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';

/** Streams one account may hold open in a process, and all together. */
const STREAMS_EACH_MAX = 128;
const STREAMS_MAX = 10_000;

/** A stream ends after this long in any case: its client opens another one, and shows its key again. */
const STREAM_MS_MAX = 60 * 60_000;

/** The streams that stay open for what may happen: counted, limited in time, and ended when the process ends. */
export class Streams {
  private readonly open = new Set<() => void>();
  private readonly tally = new KeyedLimiter(STREAMS_EACH_MAX, STREAMS_MAX);
  private isClosed = false;

  /** Streams that are open. */
  get size(): number {
    return this.open.size;
  }

  /**
   * @param msLeft how long it may last at most; an hour is the most
   * @param end ends it
   * @returns to be called when it is over; null when there is no room
   */
  enter(account: string, msLeft: number, end: () => void): (() => void) | null {
    const leave = this.isClosed ? null : this.tally.enter(account);
    if (!leave) return null;
    const timer = setTimeout(end, Math.min(msLeft, STREAM_MS_MAX)).unref();
    this.open.add(end);
    return () => {
      clearTimeout(timer);
      this.open.delete(end);
      leave();
    };
  }

  /** Ends them all, and takes no more. */
  close(): void {
    this.isClosed = true;
    for (const end of [...this.open]) end();
  }
}
