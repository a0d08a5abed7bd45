/** A stream that lasted this long does not count as a failure: proxies close silent streams every minute or so. */
export const GOOD_STREAM_MS = 30_000;

const FIRST_MS = 1_000;
const MAX_MS = 5 * 60_000;

/**
 * Milliseconds until a stream of notifications is opened again: 1 s, doubled with each end in a row, at least what the
 * server asks for, at most 5 minutes.
 *
 * @param ends earlier streams in a row that did not open, or ended within {@link GOOD_STREAM_MS}
 * @param retryMs `retry` of the stream that ended; null without one
 * @param retryAfterSeconds `Retry-After` of the refusal to open one
 */
export function reopenMs(ends: number, retryMs: number | null = null, retryAfterSeconds = 0): number {
  return Math.min(Math.max(FIRST_MS * 2 ** ends, retryMs ?? 0, retryAfterSeconds * 1_000), MAX_MS);
}
