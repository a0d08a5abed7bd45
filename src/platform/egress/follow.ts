import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { parseUrl } from '../../config/parse-url.js';
import type { Egress, EgressRequestOptions } from './egress.js';

export class RedirectRefusedError extends Error {
  constructor(
    readonly reason: 'too many' | 'without TLS' | 'another origin',
    readonly from: URL,
    readonly to: URL,
  ) {
    super(`${from.host} redirects to ${to.host}: not followed (${reason})`);
  }
}

export interface FollowOptions extends Pick<EgressRequestOptions, 'headers' | 'body'> {
  /** Default `GET`. Use `redirectsMax: 0` with anything else: a body must not be sent to another address. */
  method?: Dispatcher.HttpMethod;
  signal: AbortSignal;
  redirectsMax: number;
  /** True to stay within the origin of the first address. Default false. */
  sameOrigin?: boolean;
}

export interface Followed {
  url: URL;
  answer: Dispatcher.ResponseData;
}

/**
 * Follows redirects. Each address is checked by {@link Egress.check} again, and no redirect leaves TLS. A redirect without a target is a
 * response like any other.
 *
 * @throws RedirectRefusedError, EgressRefusedError, and errors of {@link Egress.request}
 */
export async function follow(egress: Egress, start: URL, options: FollowOptions): Promise<Followed> {
  const { method = 'GET', redirectsMax, sameOrigin = false, ...request } = options;
  let url = egress.check(start);
  for (let followed = 0; ; followed += 1) {
    const answer = await egress.request(url, { ...request, method });
    const { location } = answer.headers;
    const isRedirect = answer.statusCode >= 300 && answer.statusCode < 400 && typeof location === 'string';
    const target = isRedirect ? parseUrl(location, url) : null;
    if (target === null) return { url, answer };
    discard(answer.body);
    if (url.protocol === 'https:' && target.protocol === 'http:') {
      throw new RedirectRefusedError('without TLS', url, target);
    }
    if (sameOrigin && target.origin !== start.origin) throw new RedirectRefusedError('another origin', url, target);
    if (followed >= redirectsMax) throw new RedirectRefusedError('too many', url, target);
    url = egress.check(target);
  }
}

/** Reads a complete body; null when it is larger than `bytesMax`, after which reading stops. */
export async function readWithin(body: Readable, bytesMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the body and its socket.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Discards a body that nobody reads. */
export function discard(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => undefined).destroy();
}
