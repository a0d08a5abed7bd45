import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Response, Request } from 'express';
import { Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { DomainError, type ErrorKind } from '../errors/domain-error.js';
import { facts, mark, notice } from './components.js';
import { Html, html } from './html.js';
import { frameFiles } from './page-files.js';

/** An error shown on a page. Its message is whole sentences: what happened, and what to do. */
export abstract class PageError extends DomainError {
  /** Address at which the user can try again. */
  tryAgainUrl?: string;
  /** The user's text in a form that was rejected, by field. */
  typed?: (readonly [field: string, text: string])[];

  constructor(
    /** The heading of the page. */
    readonly title: string,
    message: string,
    detail?: unknown,
    /** A technical detail for support, such as an error code; a small line at the end of the page. */
    readonly note?: string,
  ) {
    super(message, detail);
  }
}

export class PlainPageError extends PageError {
  constructor(
    readonly kind: ErrorKind,
    readonly code: string,
    title: string,
    message: string,
    override readonly retryAfterSeconds?: number,
  ) {
    super(title, message);
  }
}

export type PageEnv = Pick<Env, 'appName'>;

export interface Page {
  html: string;
  headers: Record<string, string>;
  grow?: (write: (part: string) => void) => Promise<string>;
}

/**
 * Returns headers that allow no scripts, no external content, icons of this service only, no frames, and no Referer with the link for other
 * origins; for Slipway's own, since browsers then send the origin of a form over http. `form-action` is omitted:
 * Chromium also applies it to the redirect after the form, which can lead to any authorization server.
 *
 * @param sources further directives of the policy
 */
export const headersWith = (sources: string): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; ${sources}; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
  'x-robots-tag': 'noindex',
});

/** A page without the frame needs no second request: an error might have no address to load the style from. */
const STYLE = frameFiles['style.css'].text.replace(/\s+/g, ' ').replace(/ ?([{};]) ?/g, '$1');
const HEADERS = headersWith(`style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`);

/**
 * Returns the relative path from a page to the root of this service, `./` or repeated `../`. @param url its path, with or
 * without query
 */
export function rootFrom(url: string): string {
  const [path = ''] = url.split('?', 1);
  return '../'.repeat(path.split('/').length - 2) || './';
}

/** Returns true for a request of a browser that opens an address: its `Accept` names HTML. */
export function wantsPage({ method, headers: { accept } }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && accept !== undefined && /\btext\/html\b/.test(accept);
}

export function sendPage(response: Response, { html, headers }: Page, status = 200): void {
  response.status(status).set(headers).send(html);
}

/** A redirect is not stored, and the next page does not learn the previous address. */
export const REDIRECT_HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };

export function redirectTo(response: Response, url: string): void {
  response.set(REDIRECT_HEADERS).redirect(303, url);
}

export function withoutLastSlash({ method, originalUrl }: Request, response: Response, next: () => void): void {
  const [, name, search] = /^[^?]*\/([^/?]+)\/(\?.*)?$/.exec(originalUrl) ?? [];
  if ((method !== 'GET' && method !== 'HEAD') || name === undefined) return next();
  redirectTo(response, `../${name}${search ?? ''}`);
}

/** Shows one message or more, in the role of an alert. {@link PageError} describes the last parameter. */
export function messagePage(
  env: PageEnv,
  title: string,
  text: string,
  { note, tryAgainUrl, typed = [] }: Pick<PageError, 'note' | 'tryAgainUrl' | 'typed'> = {},
): Page {
  const again = tryAgainUrl !== undefined && html`\n<p><a href="${tryAgainUrl}">Try again</a></p>`;
  const kept = typed.length > 0 && html`\n<h2>What you typed</h2>\n${facts(typed)}`;
  return page(env, title, html`${notice(text, 'wait')}${again}${kept}${noteLine(note)}`);
}

/** Returns the small line with a technical detail at the end of a page; nothing without one. */
export function noteLine(note: string | undefined): Html | null {
  return note === undefined ? null : html`\n<p class="soft">Technical detail: ${note}</p>`;
}

/** The style as in the hash of the policy: unescaped. */
const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

/** Renders a page, whose title ends with the name of the application. */
export function page({ appName }: PageEnv, title: string, body: Html): Page {
  return {
    headers: HEADERS,
    html: String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${appName}</title>
<link rel="icon" href="data:,">
${STYLE_ELEMENT}
</head>
<body class="alone">
<main>
<p class="brand">${mark}${appName}</p>
<div class="card"><h1>${title}</h1>
${body}</div>
</main>
</body>
</html>
`),
  };
}

/**
 * Rejects forms of other origins, including a neighboring host, in addition to the SameSite cookie. Browsers send
 * `Sec-Fetch-Site` over https and to loopback; elsewhere `Origin` decides. Programs send neither.
 *
 * @throws the error that `refusal` creates
 */
export function requireOwnPage({ headers }: IncomingMessage, { baseUrl }: Env, refusal: () => Error): void {
  const { 'sec-fetch-site': site, origin, host } = headers;
  const isOwn =
    site === undefined
      ? origin === undefined || origin === new URL(baseUrl).origin || parseUrl(origin)?.host === host
      : site === 'same-origin';
  if (!isOwn) throw refusal();
}
