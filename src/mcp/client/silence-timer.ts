export const CALL_MS_MAX = 60 * 60_000;

/** Timeout of the silence in a call, restarted by messages, and of the call as a whole: an hour. */
export class SilenceTimer {
  private timer: NodeJS.Timeout;

  /** @param startedAt epoch milliseconds */
  constructor(
    private readonly timeoutMs: number,
    private readonly onExpired: () => void,
    private readonly startedAt = Date.now(),
  ) {
    this.timer = setTimeout(onExpired, Math.min(timeoutMs, this.leftMs));
  }

  /** True once the timeout has expired and cannot be restarted. */
  get isOver(): boolean {
    return this.leftMs <= 1;
  }

  /** Restarts the timeout, even one that has just expired. Do not call it after {@link stop}. */
  restart(): void {
    const { leftMs } = this;
    if (leftMs >= this.timeoutMs) return void this.timer.refresh();
    clearTimeout(this.timer);
    this.timer = setTimeout(this.onExpired, leftMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private get leftMs(): number {
    return Math.max(1, CALL_MS_MAX - (Date.now() - this.startedAt));
  }
}
