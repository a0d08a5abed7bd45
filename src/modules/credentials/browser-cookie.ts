import type { Response } from 'express';
import type { Env } from '../../config/env.js';

/** Longer than a link lives and its answer may take. */
const COOKIE_SECONDS = 25 * 60 * 60;

/** `__Host-` keeps other hosts of the domain from setting it; browsers take it over https only. */
function nameOf(env: Env, pendingId: string): string {
  return `${isSecure(env) ? '__Host-' : ''}slipway-setup-${pendingId}`;
}

function isSecure(env: Env): boolean {
  return env.baseUrl.startsWith('https:');
}

/** The cookie of one pending authorization; undefined when this browser has none. */
export function readCookie(env: Env, header: string | undefined, pendingId: string): string | undefined {
  const start = `${nameOf(env, pendingId)}=`;
  const found = header?.split(';').find((part) => part.trim().startsWith(start));
  return found?.trim().slice(start.length);
}

/** Lax: it must come along when the authorization server sends the browser back, and not with a form of another site. */
export function sendCookie(env: Env, response: Response, pendingId: string, value: string): void {
  response.cookie(nameOf(env, pendingId), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(env),
    maxAge: COOKIE_SECONDS * 1_000,
  });
}
