import type { IncomingMessage, ServerResponse } from 'node:http';
import { LOOPBACK_HOST, type Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';

/** Pages that scripts of other origins must not read. */
const PAGE = /^\/(?:docs|setup|oauth|login|logout|invite|me|ui|consent|authorize)(?:[/?]|$)/;

const METHODS = 'DELETE, GET, HEAD, PATCH, POST, PUT';

/** Lifetime of a preflight in seconds, the maximum of Chromium. */
const PREFLIGHT_SECONDS = '7200';

/**
 * Returns true for pages of this service, those of `CORS_ORIGINS`, and local pages while the service is reachable locally only. The
 * `Host` header is not trusted: a DNS rebinding page controls it.
 */
export function isTrustedOrigin(origin: string, { baseUrl, corsOrigins, isLocalOnly }: Env): boolean {
  const url = parseUrl(origin);
  if (corsOrigins?.some((entry) => entry === '*' || entry === url?.origin)) return true;
  if (!url) return false;
  return url.origin === new URL(baseUrl).origin || (isLocalOnly && LOOPBACK_HOST.test(url.hostname));
}

/**
 * Sends CORS headers, and handles preflights. Browser credentials are never allowed: scripts send an API key.
 *
 * @param request with its canonical URL
 * @returns true for a preflight, which then has its response
 */
export function answerCors(request: IncomingMessage, response: ServerResponse, env: Env): boolean {
  const { method, url = '', headers } = request;
  if (PAGE.test(url)) return false;
  response.setHeader('vary', 'Origin');
  const { origin } = headers;
  if (origin === undefined || !isTrustedOrigin(origin, env)) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', '*');
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return false;
  response.setHeader('access-control-allow-methods', METHODS);
  // Not `*`, which does not include `Authorization`.
  response.setHeader('access-control-allow-headers', headers['access-control-request-headers'] ?? '');
  response.setHeader('access-control-max-age', PREFLIGHT_SECONDS);
  response.writeHead(204).end();
  return true;
}
