import type { Cancellation } from './cancellation.js';
import { CallerLeftError, UpstreamTimeoutError } from './mcp-errors.js';

/**
 * Applies to a session's own requests before a call, such as setting a log level; they are not part of the call's time.
 */
export const ERRAND_MS = 2_000;

/** Returns a function that returns the remaining part of `timeoutMs`, at least 1. */
export function deadlineIn(timeoutMs: number): () => number {
  const until = performance.now() + timeoutMs;
  return () => Math.max(1, until - performance.now());
}

/** Works like {@link deadlineIn}, but starts at the first call of the function. */
export function deadlineFromFirstUse(timeoutMs: number): () => number {
  let timeLeft: (() => number) | undefined;
  return () => (timeLeft ??= deadlineIn(timeoutMs))();
}

/**
 * Waits for shared work, which continues for other callers after `timeoutMs` or a cancellation.
 *
 * @param late message of the UpstreamTimeoutError, or another error
 */
export function withinDeadline<T>(
  work: Promise<T>,
  timeoutMs: number,
  late: string | Error,
  cancellation?: Cancellation,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = () => settle(() => reject(new CallerLeftError()));
    const expire = () => settle(() => reject(typeof late === 'string' ? new UpstreamTimeoutError(late, false) : late));
    const timer = setTimeout(expire, timeoutMs);
    const settle = (outcome: () => void) => {
      clearTimeout(timer);
      cancellation?.forget(cancel);
      outcome();
    };
    cancellation?.notify(cancel);
    work.then(
      (value) => settle(() => resolve(value)),
      (error: Error) => settle(() => reject(error)),
    );
  });
}
