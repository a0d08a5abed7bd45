/**
 * Protection of pages against DNS rebinding: a foreign name that suddenly leads to this service would make the browser
 * treat Slipway pages as that site's own, which its scripts can read. A certificate prevents that over https. Over http
 * the `Host` header contains the name that the browser used.
 */
import type { IncomingMessage } from 'node:http';
import { LOOPBACK_HOST, type Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { PlainPageError } from './page.js';

/** Returns true if the `Host` header names this service, or its pages are served over https. */
export function isOwnHost({ headers }: IncomingMessage, { baseUrl, isLocalOnly, port }: Env): boolean {
  const base = new URL(baseUrl);
  if (base.protocol === 'https:') return true;
  const requested = parseUrl(`http://${headers.host ?? ''}`);
  if (!requested || /[/@?#\\]/.test(headers.host ?? '')) return false;
  if (requested.host === base.host) return true;
  return isLocalOnly && LOOPBACK_HOST.test(requested.hostname) && Number(requested.port || 80) === port;
}

/** Checks the `Host`. Every page that reads a session or has a form calls this, even for GET. @throws PageError */
export function requireOwnHost(request: IncomingMessage, env: Env): void {
  if (isOwnHost(request, env)) return;
  throw new PlainPageError(
    'forbidden',
    'wrong_host',
    'This is not the address of this service',
    `Open ${env.baseUrl} instead. If you run the service and this is its right address, set PUBLIC_URL to it.`,
  );
}
