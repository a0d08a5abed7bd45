import type { Request, Response } from 'express';
import type { Env } from '../../config/env.js';
import { isSecret, newSecret } from '../http/secrets.js';

/** Longer than the lifetime of a link and the time for its answer together. */
const COOKIE_SECONDS = 25 * 60 * 60;

/** The `__Host-` prefix keeps other hosts of the domain from setting the cookie. Browsers accept it over https only. */
function nameOf(env: Env, linkId: string): string {
  return `${isSecure(env) ? '__Host-' : ''}slipway-setup-${linkId}`;
}

function isSecure(env: Env): boolean {
  return env.baseUrl.startsWith('https:');
}

/** The cookie of one link; undefined if this browser has none. */
export function readCookie(env: Env, header: string | undefined, linkId: string): string | undefined {
  const start = `${nameOf(env, linkId)}=`;
  const found = header?.split(';').find((part) => part.trim().startsWith(start));
  return found?.trim().slice(start.length);
}

/** SameSite=Lax: sent with the redirect from the authorization server, not with a form of another site. */
export function sendCookie(env: Env, response: Response, linkId: string, value: string): void {
  response.cookie(nameOf(env, linkId), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(env),
    maxAge: COOKIE_SECONDS * 1_000,
  });
}

/** Binds a browser to a link, by the cookie that it has or a new one. */
export function bindBrowser(env: Env, request: Request, response: Response, linkId: string): void {
  const known = readCookie(env, request.headers.cookie, linkId);
  sendCookie(env, response, linkId, isSecret(known) ? known : newSecret());
}
