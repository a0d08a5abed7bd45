import type { Dispatcher } from 'undici';

/**
 * Controller of a request for its caller, in front of the one of the dispatcher that carries the request now. The raw
 * headers are hidden, since they include hop-by-hop ones.
 */
export abstract class RequestController implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly rawHeaders = null;
  readonly rawTrailers = null;
  protected inner: Dispatcher.DispatchController | null = null;

  /** Ends the request because its caller left. Idempotent. */
  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onAbort(reason);
  }

  pause(): void {
    this.paused = true;
    this.inner?.pause();
  }

  resume(): void {
    this.paused = false;
    this.inner?.resume();
  }

  protected abstract onAbort(reason: Error): void;
}
