/**
 * Protection of forms against requests that other sites forge (CSRF), as a double-submit token: the browser has a
 * random secret in a cookie, and each form a value derived from it. A foreign page can send the form, and the browser
 * the cookie with it, but the page cannot read or compute the value.
 *
 * Hidden field: HMAC-SHA256 of the session cookie, which can be absent, by the secret in the form cookie. Nothing is
 * stored, so every process can check every form. A form fails without the cookie, with a value of another browser, and
 * when the user has signed in or out since. Over http another port of the same host can set the cookie; it does not
 * know that of the session.
 *
 * Use both functions in every form that changes something, in addition to `requireOwnPage` and `requireOwnHost`.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import type { Env } from '../../config/env.js';
import { isSameSignature, isSecret, newSecret } from '../http/secrets.js';
import { readOwnCookie, sendOwnCookie, SESSION_COOKIE } from './browser-cookie.js';
import { html, type Html } from './html.js';

const COOKIE = 'form';
export const FORM_TOKEN = 'form-token';

/** Returns the hidden input of a form. Sets the cookie if the browser has none. */
export function formToken(env: Env, request: IncomingMessage, response: Response): Html {
  let secret = readOwnCookie(env, request.headers.cookie, COOKIE);
  if (!isSecret(secret)) {
    secret = newSecret();
    sendOwnCookie(env, response, { name: COOKIE, value: secret, seconds: null });
  }
  return html`<input type="hidden" name="${FORM_TOKEN}" value="${tokenOf(env, request.headers.cookie, secret)}">`;
}

/**
 * Rejects a form that no Slipway page created for this browser.
 *
 * @param cookies the header `Cookie`
 * @throws the error that `refusal` creates
 */
export function requireFormToken(
  env: Env,
  cookies: string | undefined,
  form: URLSearchParams,
  refusal: () => Error,
): void {
  const secret = readOwnCookie(env, cookies, COOKIE);
  if (!isSecret(secret) || !isSameSignature(form.get(FORM_TOKEN) ?? '', tokenOf(env, cookies, secret))) throw refusal();
}

function tokenOf(env: Env, cookies: string | undefined, secret: string): string {
  const session = readOwnCookie(env, cookies, SESSION_COOKIE) ?? '';
  return createHmac('sha256', secret).update(`slipway form ${session}`).digest('base64url');
}
