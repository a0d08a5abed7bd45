/**
 * Only Slipway pages that need a user are accepted as `next`: any other value is ignored, so that no link to our sign-in page redirects to
 * a foreign site (open redirect).
 */
import { parseUrl } from '../../config/parse-url.js';

/** Placeholder for our origin. */
const HERE = 'http://slipway.invalid';

/**
 * Returns the path and query of a page under `/consent/`, `/me`, `/setup/` or `/ui`, or of an invitation, as browsers
 * spell them; null for anything else.
 */
export function ownNext(value: unknown): string | null {
  if (typeof value !== 'string' || !/^\/(?:consent\/|invite\?|(?:me|ui)(?:[/?]|$)|setup\/)/.test(value)) {
    return null;
  }
  const url = parseUrl(value, HERE);
  // A backslash, tab or dot segment, encoded or not, would change the spelling.
  return url?.origin === HERE && url.pathname + url.search === value ? value : null;
}
