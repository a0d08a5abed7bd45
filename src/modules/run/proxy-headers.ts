import type { IncomingHttpHeaders } from 'node:http';

/** What is about this hop, what says who the caller is to us, and what a proxy before us says of it. */
const NOT_PASSED =
  /^(?:authorization|cookie|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|forwarded|x-forwarded-.*|x-real-ip)$/;

/** The headers of a request as hosted code may see them: never our key, never our cookies. */
export function requestHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const passed = Object.entries(headers).filter(([name, value]) => value !== undefined && !NOT_PASSED.test(name));
  return Object.fromEntries(passed) as Record<string, string | string[]>;
}

/** What hosted code may say in headers of an answer; `x-…` of its own too, but for those that browsers or we heed. */
const PASSED =
  /^(?:content-(?:type|length|encoding|language|disposition|range)|cache-control|etag|expires|last-modified|location|retry-after|vary|link|accept-ranges|allow|date|x-(?!slipway-|request-id$|accel-|frame-options$|content-type-options$|xss-|permitted-|dns-|should-retry$).*)$/;

/**
 * Hosted code answers on the origin of this service, where people's setup pages and the API's own page are. So it sets no
 * cookies and no policies there, and a page of its own is a stranger to them: `sandbox` gives it an origin that is
 * nobody's, without scripts and forms, and nothing is taken for a script that is not said to be one.
 */
const WALLS = {
  'content-security-policy': 'sandbox',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-site',
  'referrer-policy': 'no-referrer',
};

/**
 * The headers of an answer of hosted code as they leave the service.
 *
 * @param prefix where its root is: an absolute path it redirects to is below that
 */
export function responseHeaders(headers: IncomingHttpHeaders, prefix: string): Record<string, string | string[]> {
  const passed = Object.entries(headers).filter(([name, value]) => value !== undefined && PASSED.test(name));
  const { location } = headers;
  return {
    ...(Object.fromEntries(passed) as Record<string, string | string[]>),
    ...(location?.startsWith('/') && !location.startsWith('//') ? { location: `${prefix}${location}` } : {}),
    ...WALLS,
  };
}
