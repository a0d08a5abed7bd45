import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Response, Request } from 'express';
import { Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { DomainError, type ErrorKind } from '../errors/domain-error.js';
import { Html, html } from './html.js';

/** An error that a person reads on a page. Its message is whole sentences: the event, and what to do. */
export abstract class PageError extends DomainError {
  /** Address at which the person may try the same again. */
  tryAgainUrl?: string;

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
}

/** The style of every page. Pages outside of the frame have it in themselves. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b6470; --line: #d6dae0; --paper: #ffffff; --ground: #f3f5f7;
  --button: #1f5fbf; --on-button: #ffffff; --ring: #1f5fbf;
  --edge: #7a828e; --fault: #a3262a; }
@media (prefers-color-scheme: dark) { :root { --ink: #eceef1; --soft: #a3acb8; --line: #363d47; --paper: #1b1f25;
  --ground: #101317; --button: #7db0ff; --on-button: #0b1a30; --ring: #a9cbff; --edge: #7a8492; --fault: #ffa3a0; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.25rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { width: 100%; max-width: 32rem; padding: 1.75rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: .75rem; }
h2 { margin: 1.75rem 0 .5rem; font-size: 1.0625rem; line-height: 1.25; }
h1 { margin: 0 0 .75rem; font-size: 1.375rem; line-height: 1.25; overflow-wrap: anywhere; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
dl { margin: 0 0 1.25rem; border-top: 1px solid var(--line); }
dl > div { padding: .6rem 0; border-bottom: 1px solid var(--line); }
dt { color: var(--soft); font-size: .875rem; }
dd { margin: 0; overflow-wrap: anywhere; }
dd ul { margin: 0; padding-left: 1.1rem; }
code { font: .9375em ui-monospace, Menlo, Consolas, monospace; }
form > p { margin: 0 0 1.1rem; }
label { display: block; font-weight: 600; overflow-wrap: anywhere; }
.hint { display: block; color: var(--soft); font-size: .875rem; overflow-wrap: anywhere; }
.fault { display: block; color: var(--fault); font-size: .875rem; }
input, select, textarea { width: 100%; margin-top: .3rem; padding: .6rem .7rem; border: 1px solid var(--edge); border-radius: .5rem;
  background: var(--ground); color: var(--ink); font: inherit; }
input:focus-visible, select:focus-visible, textarea:focus-visible { outline: 3px solid var(--ring); outline-offset: 1px; }
button { width: 100%; padding: .75rem 1rem; border: 0; border-radius: .5rem; background: var(--button);
  color: var(--on-button); font: inherit; font-weight: 600; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--ring); outline-offset: 3px; }
.server { color: var(--soft); display: flow-root; }
.server img { float: left; width: 3rem; height: 3rem; margin-right: .75rem; border-radius: .5rem; object-fit: contain; }
dd form { margin-top: .6rem; }
button.plain { border: 1px solid var(--edge); background: none; color: var(--ink); }
button.link { width: auto; padding: 0; background: none; color: var(--button); font-weight: 400; text-decoration: underline; }
input[type="checkbox"] { width: auto; margin: 0 .5rem 0 0; }
a { color: var(--button); }
.soft { margin: 1rem 0 0; color: var(--soft); font-size: .875rem; }
`;

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
  if (method !== 'GET' || name === undefined) return next();
  redirectTo(response, `../${name}${search ?? ''}`);
}

/** A page with one sentence or more, in the role of an alert. For the last parameter see {@link PageError}. */
export function messagePage(
  env: PageEnv,
  title: string,
  text: string,
  { note, tryAgainUrl }: Pick<PageError, 'note' | 'tryAgainUrl'> = {},
): Page {
  const again = tryAgainUrl !== undefined && html`\n<p><a href="${tryAgainUrl}">Try again</a></p>`;
  return page(env, title, html`<p role="alert">${text}</p>${again}${noteLine(note)}`);
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
<body>
<main>
<h1>${title}</h1>
${body}
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
