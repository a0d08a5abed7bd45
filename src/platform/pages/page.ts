import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Response, Request } from 'express';
import { Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { DomainError, type ErrorKind } from '../errors/domain-error.js';
import { facts, mark, notice } from './components.js';
import { Html, html } from './html.js';
import { frameFiles } from './page-files.js';

/** An error that a person reads on a page. Its message is whole sentences: the event, and what to do. */
export abstract class PageError extends DomainError {
  /** Address at which the person may try the same again. */
  tryAgainUrl?: string;
  /** The text of the person in a form that was not accepted, by field. */
  typed?: (readonly [field: string, text: string])[];

  constructor(
    /** The heading of the page. */
    readonly title: string,
    message: string,
    detail?: unknown,
    /** A technical detail for whoever is asked for help, such as an error code; a small line at the end of the page. */
    readonly note?: string,
  ) {
    super(message, detail);
  }
}

/** A page error that only its words tell from others. */
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

/** The part of the settings that every page shows. */
export type PageEnv = Pick<Env, 'appName'>;

/** A page and the headers that it is sent with. */
export interface Page {
  html: string;
  headers: Record<string, string>;
  /** Writes the parts of a page that grows, and returns the rest. */
  grow?: (write: (part: string) => void) => Promise<string>;
}

/**
 * No scripts, no external content, icons of this service only, no frames, and no Referer with the link for other origins; for
 * our own one, since browsers then name the origin of a form over http. `form-action` is left out: Chromium also applies it to
 * the redirect after the form, which may lead to any authorization server.
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

/** A page without the frame is whole without a second request: an error may have no address to load the style from. */
const STYLE = frameFiles['style.css'].text.replace(/\s+/g, ' ').replace(/ ?([{};]) ?/g, '$1');
const HEADERS = headersWith(`style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`);

/** The way from a page to the root of this service, `./` or `../` as often as needed. @param url its path, with or without query */
export function rootFrom(url: string): string {
  const [path = ''] = url.split('?', 1);
  return '../'.repeat(path.split('/').length - 2) || './';
}

/** True for a request of a browser that opens an address: its `Accept` names HTML. */
export function wantsPage({ method, headers: { accept } }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && accept !== undefined && /\btext\/html\b/.test(accept);
}

/** Answers with a page. */
export function sendPage(response: Response, { html, headers }: Page, status = 200): void {
  response.status(status).set(headers).send(html);
}

/** A redirect is not stored, and the next page is not told where the person came from. */
export const REDIRECT_HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };

/** Leads the browser on with a GET. */
export function redirectTo(response: Response, url: string): void {
  response.set(REDIRECT_HEADERS).redirect(303, url);
}

/** Leads from the address of a page with a slash at its end to the one without. */
export function withoutLastSlash({ method, originalUrl }: Request, response: Response, next: () => void): void {
  const [, name, search] = /^[^?]*\/([^/?]+)\/(\?.*)?$/.exec(originalUrl) ?? [];
  if ((method !== 'GET' && method !== 'HEAD') || name === undefined) return next();
  redirectTo(response, `../${name}${search ?? ''}`);
}

/** A page with one message or more, in the role of an alert. For the last parameter see {@link PageError}. */
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

/** The small line with a technical detail at the end of a page; nothing without one. */
export function noteLine(note: string | undefined): Html | null {
  return note === undefined ? null : html`\n<p class="soft">Technical detail: ${note}</p>`;
}

/** The style as it stands in the hash of the policy: without escapes. */
const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

/** A page with this heading. Its title ends with the name of the application. */
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
 * Refuses forms of other origins, also of a neighboring host, in addition to the SameSite cookie. Browsers send
 * `Sec-Fetch-Site` over https and to loopback; elsewhere `Origin` decides. Programs send neither.
 *
 * @throws the error that `refusal` makes
 */
export function requireOwnPage({ headers }: IncomingMessage, { baseUrl }: Env, refusal: () => Error): void {
  const { 'sec-fetch-site': site, origin, host } = headers;
  const isOwn =
    site === undefined
      ? origin === undefined || origin === new URL(baseUrl).origin || parseUrl(origin)?.host === host
      : site === 'same-origin';
  if (!isOwn) throw refusal();
}
