/** Invocations one request may bring; more are refused or left out, as the form of the request wants. */
export const INGEST_MAX = 1_000;

/** Console lines, and exceptions, of one invocation in one request: as many as are kept. */
export { LINES_MAX as SENT_LINES_MAX } from '../store/invocation-row.js';

/** A URL without what may hold a caller's secrets: query, fragment and credentials. */
export function bareUrl(url: string): string {
  const [bare = ''] = url.split(/[?#]/, 1);
  return bare.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1');
}

/** Records are kept by the day; of days that are gone, or far ahead, none is taken. */
const AGE_MS_MAX = 24 * 3_600_000;
const AHEAD_MS_MAX = 5 * 60_000;

/** Says why records of this moment are not taken, as the end of a sentence; null when they are. */
export function timeFault(at: Date, now: Date): string | null {
  const ageMs = now.getTime() - at.getTime();
  if (ageMs > AGE_MS_MAX) return 'must not be older than 24 hours';
  return ageMs < -AHEAD_MS_MAX ? 'must not be ahead of the time here' : null;
}
