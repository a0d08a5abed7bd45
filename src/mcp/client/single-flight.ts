/**
 * A value that costs a dial (a session, an identity, an adapter), opened once for all callers that want it at the same
 * time.
 *
 * Opening does not stop when the caller that started it disconnects: each caller waits for its own timeout. Callers
 * within a second after a failure get the same error, so that an unreachable upstream costs one dial. After `close`
 * nothing is opened, and a value that arrives late is closed.
 */
import type { Cancellation } from '../protocol/cancellation.js';
import { withinDeadline } from '../protocol/deadline.js';
import { StartingError, tooLate, UpstreamError } from '../protocol/mcp-errors.js';

const FAILURE_MS = 1_000;

export class SingleFlight<T> {
  value: T | null = null;
  private opening: Promise<T> | null = null;
  private failure: { error: Error; until: number } | null = null;
  private isClosed = false;

  /** @param upstream named in timeout errors; for a program, a timeout means that it is still starting */
  constructor(
    private readonly open: () => Promise<T>,
    private readonly upstream: { host: string; isProgram?: boolean },
  ) {}

  /** Returns the shared value. Opening continues for the other callers after `timeoutMs` or a cancellation. */
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
    const late = this.upstream.isProgram ? new StartingError() : tooLate(this.upstream, { timeoutMs });
    return withinDeadline(this.opening, timeoutMs, late, cancellation);
  }

  /** Does nothing if another value has replaced it. */
  discard(value: T): void {
    if (this.value === value) this.value = null;
  }

  /** Closes the value; one that is still being opened is closed as soon as it is open. */
  async close(end: (value: T) => Promise<void>): Promise<void> {
    this.isClosed = true;
    const { value, opening } = this;
    this.value = null;
    if (value !== null) return end(value);
    void opening?.then((opened) => end(opened)).catch(() => undefined);
  }
}
