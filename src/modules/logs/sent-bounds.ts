import { toStorableText } from '../../platform/database/storable.js';

/** Invocations one request may bring; more are refused or left out, as the form of the request wants. */
export const SENT_MAX = 1_000;

/** Console lines and exceptions of one invocation in one request. */
export const SENT_LINES_MAX = 1_000;

/** What is kept of texts that servers elsewhere wrote, in characters. */
export const charsMax = { message: 16_384, name: 200, level: 20, method: 20, url: 2_000 } as const;

/** The text as it is kept: cut to its bound, without what Postgres cannot hold. */
export function boundedText(text: string, kind: keyof typeof charsMax): string {
  return toStorableText(text.slice(0, charsMax[kind]));
}

/** A URL without what may hold a caller's secrets: query, fragment and credentials. */
export function boundedUrl(url: string): string {
  const [bare = ''] = url.split(/[?#]/, 1);
  return boundedText(bare.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1'), 'url');
}

/** Records of invocations are kept by the day; of days that are gone, or far ahead, none is kept. */
const AGE_MS_MAX = 24 * 3_600_000;
const AHEAD_MS_MAX = 5 * 60_000;

/** Says why records of this moment are not taken, as the end of a sentence; null when they are. */
export function timeFault(at: Date, now: Date): string | null {
  const ageMs = now.getTime() - at.getTime();
  if (ageMs > AGE_MS_MAX) return 'must not be older than 24 hours';
  return ageMs < -AHEAD_MS_MAX ? 'must not be ahead of the time here' : null;
}
