/**
 * The address to go on to after the sign-in, as the parameter `next` of the page names it. Only pages of ours that need a
 * person: any other value is ignored, so that no link to our sign-in page leads people to a foreign site (open redirect).
 */
import { parseUrl } from '../../config/parse-url.js';

/** Stands for our origin, whatever it is. */
const HERE = 'http://slipway.invalid';

/**
 * Path and query of a page below `/consent/`, `/me`, `/setup/` or `/ui`, or of an invitation, in the form that browsers give it;
 * null for anything else.
 */
export function ownNext(value: unknown): string | null {
  if (typeof value !== 'string' || !/^\/(?:consent\/|invite\?|(?:me|ui)(?:[/?]|$)|setup\/)/.test(value)) {
    return null;
  }
  const url = parseUrl(value, HERE);
  // A backslash, a tab or a dot segment, also in an encoded form, would give it another form.
  return url?.origin === HERE && url.pathname + url.search === value ? value : null;
}
