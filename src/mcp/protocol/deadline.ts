import type { Cancellation } from './cancellation.js';
import { CallerLeftError, UpstreamTimeoutError } from './mcp-errors.js';

/** How many milliseconds are left of `timeoutMs` from now, whenever it is asked; at least 1. */
export function deadlineIn(timeoutMs: number): () => number {
  const until = performance.now() + timeoutMs;
  return () => Math.max(1, until - performance.now());
}

/**
 * Waits for work that is shared with others, no longer than `timeoutMs` and no longer than the caller stays. The work goes
 * on for the others.
 *
 * @param late what an UpstreamTimeoutError says then
 */
export function withinDeadline<T>(
  work: Promise<T>,
  timeoutMs: number,
  late: string,
  cancellation?: Cancellation,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => settle(() => reject(new CallerLeftError()));
    const expire = () => settle(() => reject(new UpstreamTimeoutError(late, false)));
    const timer = setTimeout(expire, timeoutMs);
    const settle = (outcome: () => void) => {
      clearTimeout(timer);
      cancellation?.forget(leave);
      outcome();
    };
    cancellation?.notify(leave);
    work.then(
      (value) => settle(() => resolve(value)),
      (error: Error) => settle(() => reject(error)),
    );
  });
}
