import type { Cancellation } from '../protocol/cancellation.js';
import { withinDeadline } from '../protocol/deadline.js';
import { tooSlow, UpstreamError } from '../protocol/mcp-errors.js';

/** A failure is remembered this long, so that a dead upstream costs one dial however many callers wait. */
const FAILURE_MS = 1_000;

/** Something that is opened by the first who wants it, once however many wait, and again after it was lost. */
export class SingleFlight<T> {
  value: T | null = null;
  private opening: Promise<T> | null = null;
  private failure: { error: Error; until: number } | null = null;
  private isClosed = false;

  /** @param url who is waited for */
  constructor(
    private readonly open: () => Promise<T>,
    private readonly url: URL,
  ) {}

  /** Waits no longer than `timeoutMs`, and no longer than the caller stays; the work goes on for the others. */
  get(timeoutMs: number, cancellation?: Cancellation): Promise<T> {
    if (this.value !== null) return Promise.resolve(this.value);
    if (this.isClosed) return Promise.reject(new UpstreamError('The connection was changed or deleted meanwhile.'));
    if (this.failure && Date.now() < this.failure.until) return Promise.reject(this.failure.error);
    this.failure = null;
    this.opening ??= this.open()
      .then((value) => (this.value = value))
      .catch((error: Error) => {
        this.failure = { error, until: Date.now() + FAILURE_MS };
        throw error;
      })
      .finally(() => (this.opening = null));
    return withinDeadline(this.opening, timeoutMs, tooSlow(this.url, timeoutMs), cancellation);
  }

  /** Forgets this value, unless another one has taken its place. */
  lose(value: T): void {
    if (this.value === value) this.value = null;
  }

  /** Nothing is opened any more. What is being opened is not waited for: it ends when it is there. */
  async close(end: (value: T) => Promise<void>): Promise<void> {
    this.isClosed = true;
    const { value, opening } = this;
    this.value = null;
    if (value !== null) return end(value);
    void opening?.then((opened) => end(opened)).catch(() => undefined);
  }
}
