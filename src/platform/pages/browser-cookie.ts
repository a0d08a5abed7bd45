import type { Request, Response } from 'express';
import type { Env } from '../../config/env.js';
import { isSecret, newSecret } from '../http/secrets.js';

/** Longer than a link lives and its answer may take. */
const COOKIE_SECONDS = 25 * 60 * 60;

/** `__Host-` keeps other hosts of the domain from setting it; browsers take it over https only. */
function nameOf(env: Env, linkId: string): string {
  return `${isSecure(env) ? '__Host-' : ''}slipway-setup-${linkId}`;
}

function isSecure(env: Env): boolean {
  return env.baseUrl.startsWith('https:');
}

/** The cookie of one link; undefined when this browser has none. */
export function readCookie(env: Env, header: string | undefined, linkId: string): string | undefined {
  const start = `${nameOf(env, linkId)}=`;
  const found = header?.split(';').find((part) => part.trim().startsWith(start));
  return found?.trim().slice(start.length);
}

/** Lax: it must come along when the authorization server sends the browser back, and not with a form of another site. */
export function sendCookie(env: Env, response: Response, linkId: string, value: string): void {
  response.cookie(nameOf(env, linkId), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(env),
    maxAge: COOKIE_SECONDS * 1_000,
  });
}

/** Lets a browser be known again on the page of a link: by the cookie it has, or a new one. */
export function bindBrowser(env: Env, request: Request, response: Response, linkId: string): void {
  const known = readCookie(env, request.headers.cookie, linkId);
  sendCookie(env, response, linkId, isSecret(known) ? known : newSecret());
}
