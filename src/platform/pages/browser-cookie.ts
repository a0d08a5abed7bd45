import type { Response } from 'express';
import type { Env } from '../../config/env.js';

/** Lifetime of the cookie, longer than that of a link and the time for its response together. */
const COOKIE_SECONDS = 25 * 60 * 60;

export const SESSION_COOKIE = 'session';

export interface OwnCookie {
  /** The part of the cookie's name after `slipway-`. */
  name: string;
  value: string;
  /** Lifetime of the cookie; null: until the browser closes. */
  seconds: number | null;
}

/**
 * Returns the name of a cookie. The `__Host-` prefix prevents other hosts of the domain from setting the cookie. Browsers accept it only over https
 * and without a path: `__Secure-` if the service shares its host.
 */
function nameOf(env: Env, name: string): string {
  const prefix = env.pathPrefix === '' ? '__Host-' : '__Secure-';
  return `${isSecure(env) ? prefix : ''}slipway-${name}`;
}

function isSecure(env: Env): boolean {
  return env.baseUrl.startsWith('https:');
}

/** Returns a cookie of this service, by the part of its name after `slipway-`; undefined if the browser has none. */
export function readOwnCookie(env: Env, header: string | undefined, name: string): string | undefined {
  const start = `${nameOf(env, name)}=`;
  const pair = header?.split(';').find((part) => part.trim().startsWith(start));
  return pair?.trim().slice(start.length);
}

/**
 * Scripts cannot read the cookie. SameSite=Lax: sent when another site links to a Slipway page, not with a form of
 * another site.
 */
export function sendOwnCookie(env: Env, response: Response, { name, value, seconds }: OwnCookie): void {
  response.cookie(nameOf(env, name), value, {
    path: env.pathPrefix || '/',
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(env),
    ...(seconds !== null && { maxAge: seconds * 1_000 }),
  });
}

/** Returns the value of the cookie of one setup link; undefined if this browser has none. */
export function readSetupCookie(env: Env, header: string | undefined, linkId: string): string | undefined {
  return readOwnCookie(env, header, `setup-${linkId}`);
}

/** Returns a cookie that is also sent with the redirect from the authorization server. */
export function setupCookie(linkId: string, value: string): OwnCookie {
  return { name: `setup-${linkId}`, value, seconds: COOKIE_SECONDS };
}
