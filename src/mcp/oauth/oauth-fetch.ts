import type { FetchLike } from '@modelcontextprotocol/client';
import { parseUrl } from '../../config/parse-url.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import type { Egress } from '../../platform/egress/egress.js';
import { OAuthFetchError } from './oauth-errors.js';

/** The largest document that is taken: real ones have a few kilobytes. */
export const DOCUMENT_BYTES_MAX = 1024 * 1024;

/** How long one request may take, with its redirects and its whole answer. */
export const FETCH_MS_MAX = 10_000;

const REDIRECTS_MAX = 3;

/**
 * `fetch` for everything OAuth asks of other hosts, through the one door out. Only GET follows redirects, at most three, each
 * one judged anew and never from https to http; a POST carries credentials and goes nowhere but where it was sent.
 *
 * @param signal bounds everything that is fetched with it, besides the 10 s of each request
 * @throws OAuthFetchError with a sentence; a status is not a failure here
 */
export function createOAuthFetch(egress: Egress, signal?: AbortSignal): FetchLike {
  return async (input, init = {}) => {
    const deadline = AbortSignal.timeout(FETCH_MS_MAX);
    const signals = AbortSignal.any([deadline, ...(signal ? [signal] : []), ...(init.signal ? [init.signal] : [])]);
    let url = new URL(input);
    try {
      for (let followed = 0; ; followed += 1) {
        const response = await send(egress, url, init, signals);
        const target = redirectTarget(response, url);
        if (target === null) return response;
        if (isGet(init) && followed < REDIRECTS_MAX && !(url.protocol === 'https:' && target.protocol === 'http:')) {
          url = target;
        } else {
          throw new OAuthFetchError(`${url.host} redirects ${placeOf(url)} to ${placeOf(target)}: not followed.`);
        }
      }
    } catch (error) {
      throw asFetchError(error, url);
    }
  };
}

async function send(egress: Egress, target: URL, init: RequestInit, signal: AbortSignal): Promise<Response> {
  const url = egress.check(target);
  const { statusCode, headers, body } = await egress.request(url, {
    method: isGet(init) ? 'GET' : 'POST',
    headers: Object.fromEntries(new Headers(init.headers)),
    body: init.body === undefined || init.body === null ? undefined : textOf(init.body),
    signal,
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > DOCUMENT_BYTES_MAX) {
      throw new OAuthFetchError(`${url.host} answered ${placeOf(url)} with more than 1 MB.`);
    }
    chunks.push(chunk);
  }
  const answer = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of ([] as string[]).concat(value ?? [])) answer.append(name, one);
  }
  const isEmpty = statusCode === 204 || statusCode === 205 || statusCode === 304;
  return new Response(isEmpty ? null : Buffer.concat(chunks), { status: statusCode, headers: answer });
}

function isGet(init: RequestInit): boolean {
  return (init.method ?? 'GET').toUpperCase() === 'GET';
}

/** What the SDK sends: JSON, or a form. */
function textOf(body: NonNullable<RequestInit['body']>): string {
  if (typeof body === 'string') return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError('Only text and forms are sent');
}

function redirectTarget(response: Response, base: URL): URL | null {
  if (response.status < 300 || response.status >= 400) return null;
  const location = response.headers.get('location');
  return location === null ? null : parseUrl(location, base);
}

/** Without the query, which may hold something secret. */
function placeOf(url: URL): string {
  return `${url.origin}${url.pathname}`.slice(0, 200);
}

function asFetchError(error: unknown, url: URL): OAuthFetchError {
  if (error instanceof OAuthFetchError) return error;
  if (error instanceof DomainError) return new OAuthFetchError(error.message);
  const { name = '', code = '' } = error as { name?: string; code?: string };
  if (name === 'TimeoutError' || name === 'AbortError')
    return new OAuthFetchError(`${url.host} did not answer in time.`);
  return new OAuthFetchError(`${url.host} cannot be reached${code === '' ? '' : ` (${code})`}.`);
}
