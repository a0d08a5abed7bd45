import type { FetchLike } from '@modelcontextprotocol/client';
import { DomainError } from '../../platform/errors/domain-error.js';
import { decodeBody, uncoded, UnknownCodingError } from '../../platform/egress/content-coding.js';
import type { Egress } from '../../platform/egress/egress.js';
import { follow, readWithin, RedirectRefusedError } from '../../platform/egress/follow.js';
import { boundExceeded } from '../../platform/text/json-bounds.js';
import { OAuthFetchError } from './oauth-errors.js';

/** Maximum size of a document; real documents have a few kilobytes. */
export const DOCUMENT_BYTES_MAX = 1024 * 1024;

/** Timeout of a request, including redirects and the body. */
export const FETCH_MS_MAX = 10_000;

const REDIRECTS_MAX = 3;

/**
 * Returns a `fetch` that applies the egress policy. GET follows at most three redirects, each checked by the policy and never from https to http.
 * POST carries credentials and follows none.
 *
 * @param signal limits all requests together, in addition to 10 s for each
 * @throws OAuthFetchError; an HTTP status is not a failure
 */
export function createOAuthFetch(egress: Egress, signal?: AbortSignal): FetchLike {
  return async (input, init = {}) => {
    const deadline = AbortSignal.timeout(FETCH_MS_MAX);
    const signals = AbortSignal.any([deadline, ...(signal ? [signal] : []), ...(init.signal ? [init.signal] : [])]);
    const start = new URL(input);
    try {
      const { url, answer } = await follow(egress, start, {
        method: isGet(init) ? 'GET' : 'POST',
        headers: { ...uncoded, ...Object.fromEntries(new Headers(init.headers)) },
        body: init.body === undefined || init.body === null ? undefined : textOf(init.body),
        signal: signals,
        redirectsMax: isGet(init) ? REDIRECTS_MAX : 0,
      });
      const { statusCode: status, headers, body } = answer;
      const bytes = await readWithin(decodeBody(body, headers['content-encoding']), DOCUMENT_BYTES_MAX);
      if (bytes === null) throw new OAuthFetchError(`${url.host} answered ${placeOf(url)} with more than 1 MB.`);
      const exceeded = boundExceeded(bytes);
      if (exceeded !== null) throw new OAuthFetchError(`${url.host} answered ${placeOf(url)} with ${exceeded}.`);
      const responseHeaders = new Headers();
      for (const [name, value] of Object.entries(headers)) {
        for (const header of ([] as string[]).concat(value ?? [])) responseHeaders.append(name, header);
      }
      const isEmpty = status === 204 || status === 205 || status === 304;
      return new Response(isEmpty ? null : bytes, { status, headers: responseHeaders });
    } catch (error) {
      throw asFetchError(error, start);
    }
  };
}

function isGet(init: RequestInit): boolean {
  return (init.method ?? 'GET').toUpperCase() === 'GET';
}

function textOf(body: NonNullable<RequestInit['body']>): string {
  if (typeof body === 'string') return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError('Only text and forms are sent');
}

/** Returns the URL without its query, which can be secret. */
function placeOf(url: URL): string {
  return `${url.origin}${url.pathname}`.slice(0, 200);
}

function asFetchError(error: unknown, url: URL): OAuthFetchError {
  if (error instanceof OAuthFetchError) return error;
  if (error instanceof UnknownCodingError) return new OAuthFetchError(`${url.host} sent a response ${error.message}.`);
  if (error instanceof DomainError) return new OAuthFetchError(error.message);
  if (error instanceof RedirectRefusedError) {
    const { from, to } = error;
    return new OAuthFetchError(`${from.host} redirects ${placeOf(from)} to ${placeOf(to)}: not followed.`);
  }
  const { name = '', code = '' } = error as { name?: string; code?: string };
  if (name === 'TimeoutError' || name === 'AbortError')
    return new OAuthFetchError(`${url.host} did not answer in time.`);
  if (code.startsWith('Z_')) return new OAuthFetchError(`${url.host} sent a response that cannot be decoded.`);
  return new OAuthFetchError(`${url.host} cannot be reached${code === '' ? '' : ` (${code})`}.`);
}
