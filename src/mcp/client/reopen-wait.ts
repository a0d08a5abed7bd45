/** Time after which a stream that closes is not counted as a failure: proxies close silent streams every minute or so. */
export const GOOD_STREAM_MS = 30_000;

const FIRST_MS = 1_000;
const MAX_MS = 5 * 60_000;

/**
 * Returns the milliseconds until a stream of notifications is opened again: 1 s, doubled with each consecutive close, at least what
 * the server requests, at most 5 minutes.
 *
 * @param ends consecutive earlier streams that did not open, or closed within {@link GOOD_STREAM_MS}
 * @param retryMs `retry` of the stream that closed; null without one
 * @param retryAfterSeconds `Retry-After` of the response that rejected one
 */
export function reopenMs(ends: number, retryMs: number | null = null, retryAfterSeconds = 0): number {
  return Math.min(Math.max(FIRST_MS * 2 ** ends, retryMs ?? 0, retryAfterSeconds * 1_000), MAX_MS);
}
