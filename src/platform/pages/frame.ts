/**
 * The frame of the pages behind the sign-in: a head with the ways on, who is signed in and a button to sign out; the page; and a
 * closed line with the request that shows the same over REST. Works without scripts, from 320 px on, light and dark.
 *
 * Its style and its script are two files of this service, {@link frameFiles}, whose addresses change with their content. Every
 * address in a page is relative ({@link rootFrom}), so that a proxy may put the service below a path. The pages of sign-in,
 * consent and setup have no frame, and the first part of the same style in themselves: they have no way on, and an error page must
 * be whole without a second request.
 *
 * A new page has its link in {@link LINKS} from the day on which it is there.
 */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Env } from '../../config/env.js';
import type { OwnCookie } from './browser-cookie.js';
import { formToken } from './form-token.js';
import { Html, html, type HtmlValue } from './html.js';
import { headersWith, rootFrom, STYLE, type Page } from './page.js';

/** The pages that the head leads to, by path from the root. */
const LINKS = [
  ['ui/', 'Home'],
  ['ui/catalogue', 'Catalogue'],
  ['me', 'Account'],
] as const;

/** The pages of the modules that a service has loaded, as {@link LINKS}. */
export const moduleLinks = new WeakMap<Env, (readonly [path: string, label: string])[]>();

/** The inside of a page. */
export interface Framed {
  /** Heading and title. */
  title: string;
  body: Html;
  /** The sentence of what was done just now. */
  notice?: HtmlValue;
  /** Path of the GET request that shows the same over REST, encoded, such as `/accounts/me`; absent without one. */
  asRequest?: string;
  /** The page has audio in `data:` addresses. */
  hasMedia?: boolean;
}

const FRAME_STYLE = `
body.framed { display: block; place-items: normal; padding: 0; overflow-wrap: anywhere; }
.framed .skip { position: absolute; left: -99rem; }
.framed .skip:focus { left: 1rem; top: .5rem; padding: .5rem; background: var(--paper); }
.framed > header { background: var(--paper); border-bottom: 1px solid var(--line); }
.framed > header > div { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: center; max-width: 68rem; margin: 0 auto;
  padding: .5rem 1.25rem; }
.framed nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0; padding: 0; list-style: none; }
.framed nav a { display: inline-block; padding: .3rem 0; text-decoration: none; }
.framed nav a:hover { text-decoration: underline; }
.framed nav a[aria-current] { color: var(--ink); font-weight: 600; box-shadow: 0 2px 0 var(--button); }
.framed header form { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: center; margin-left: auto; color: var(--soft);
  font-size: .875rem; }
.framed header button { width: auto; padding: .3rem .7rem; font-size: .875rem; }
.framed main { max-width: 68rem; margin: 0 auto; padding: 1.25rem; border: 0; background: none; border-radius: 0; }
.framed .sign-in { margin-left: auto; padding: .3rem 0; }
.framed h1 { font-size: 1.5rem; }
.framed h2 { margin-top: 0; }
.framed section { margin: 0 0 1rem; padding: 1.1rem 1.25rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: .75rem; }
.framed section > :last-child { margin-bottom: 0; }
.framed [role="status"] { padding: .6rem .9rem; background: var(--paper); border-left: 4px solid var(--button); }
.framed main form { max-width: 32rem; }
.framed fieldset { margin: 0 0 1.1rem; padding: .8rem; border: 1px solid var(--line); border-radius: .5rem; }
.framed section img { max-width: 100%; }
.framed a:focus-visible, .framed summary:focus-visible { outline: 3px solid var(--ring); outline-offset: 2px; }
.framed summary { padding: .3rem 0; cursor: pointer; }
.framed pre { margin: .3rem 0 .75rem; padding: .7rem .8rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.framed table { display: block; overflow-x: auto; margin: 0 0 1rem; border-collapse: collapse; overflow-wrap: normal; }
.framed th, .framed td { padding: .4rem .6rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
.framed .guide pre code { display: block; overflow-x: auto; white-space: pre; overflow-wrap: normal; }
.framed .guide h2 { margin-top: 1.75rem; }
.framed .guide img { max-width: 100%; }
.framed .entries { margin: 0 0 1rem; padding: 0; list-style: none; }
.framed .entries > li { padding: .6rem 0; border-top: 1px solid var(--line); }
.framed button[data-copy] { width: auto; padding: .3rem .7rem; font-size: .875rem; }
.framed .rows { margin: 0; padding: 0; list-style: none; }
.framed .rows > li { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 0; border-top: 1px solid var(--line); }
.framed .rows > li > :first-child { flex: 1 1 18rem; min-width: 0; }
.framed .rows form { margin: 0 0 .5rem; }
.framed .button { padding: .4rem .9rem; border-radius: .5rem; background: var(--button); color: var(--on-button); font-weight: 600;
  text-decoration: none; }
.framed .rows button, .framed form[role="search"] button { width: auto; padding: .4rem .9rem; }
.framed .good { color: var(--good); } .framed .bad { color: var(--fault); } .framed .wait { color: var(--wait); }
.framed { --good: #1b6b3a; --wait: #8a5300; }
@media (prefers-color-scheme: dark) { .framed { --good: #7fd39b; --wait: #f0b65f; } }
@media (max-width: 44rem) { .framed main { padding: .9rem; } .framed section { padding: 1rem; }
  .framed header form { margin-left: 0; width: 100%; } }
`;

/** Shows the buttons that copy a text, which need a script, and copies the text of the element that a button names. */
const COPY_SCRIPT = `for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = !navigator.clipboard;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = 'Copied';
  });
}
`;

const file = (type: string, text: string) => ({
  type: `${type}; charset=utf-8`,
  text,
  version: createHash('sha256').update(text).digest('base64url').slice(0, 16),
});

/** The files of framed pages, by name below `/ui/`. */
export const frameFiles = {
  'style.css': file('text/css', STYLE + FRAME_STYLE),
  'copy.js': file('text/javascript', COPY_SCRIPT),
};

const POLICY = "style-src 'self'; script-src 'self'";
const HEADERS = headersWith(POLICY);
const MEDIA_HEADERS = headersWith(`${POLICY}; media-src data:`);

/** The sentence for the word with which the address of a page names what was done; null for any other value. */
export function noticeOf(word: unknown, sentences: Record<string, string>): string | null {
  return typeof word === 'string' && Object.hasOwn(sentences, word) ? sentences[word] : null;
}

/** The response of a page's handler. */
export class FramedPage {
  /** @param content the inside, made with the hidden input that each of its forms needs, and the way to the root */
  constructor(
    readonly content: (token: Html, root: string) => Framed,
    public status = 200,
  ) {}
}

/** The response of a handler of a page without the frame. */
export class PlainPage {
  /** @param content is called with a function that creates the hidden input of the page's forms */
  constructor(
    readonly content: (token: () => Html) => Page,
    public status = 200,
    readonly cookies: OwnCookie[] = [],
  ) {}
}

/** The response of a page's handler that redirects the browser with a GET. @stability preview */
export class Redirect {
  /** @param path relative to the root of this service, without a leading slash */
  constructor(
    readonly path: string,
    readonly cookies: OwnCookie[] = [],
  ) {}

  /** The header `Location` in the response to a request for this path. */
  locationFrom(requestPath: string): string {
    return rootFrom(requestPath) + this.path;
  }
}

/** A {@link Redirect} to an address that Slipway trusts, as it is. */
export class RedirectAway extends Redirect {
  override locationFrom(): string {
    return this.path;
  }
}

/**
 * Renders a page with its frame.
 *
 * @param accountName the account that is signed in; null without one: then the head has a link to the sign-in
 */
export function renderFramed(
  env: Env,
  request: Request,
  response: Response,
  accountName: string | null,
  { content }: FramedPage,
): Page {
  const root = rootFrom(request.path);
  const token = accountName === null ? html`` : formToken(env, request, response);
  const { title, body, notice, asRequest, hasMedia } = content(token, root);
  const isHere = (path: string) => request.path.replace(/\/$/, '') === `/${path}`.replace(/\/$/, '');
  const address = (name: keyof typeof frameFiles) => `${root}ui/${name}?v=${frameFiles[name].version}`;
  const signedIn =
    accountName === null
      ? html`<a class="sign-in" href="${root}login">Sign in</a>`
      : html`<form method="post" action="${root}logout">${token}<span>Signed in as <strong>${accountName}</strong></span>
<button type="submit" class="plain">Sign out</button></form>`;
  const links = [...LINKS, ...(moduleLinks.get(env) ?? [])].map(
    ([path, label]) =>
      html`<li><a href="${root}${path}"${isHere(path) && html` aria-current="page"`}>${label}</a></li>`,
  );
  const curl = `curl '${env.baseUrl}${asRequest?.replaceAll("'", '%27')}' -H "Authorization: Bearer $SLIPWAY_KEY"`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${env.appName}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${address('style.css')}">
<script src="${address('copy.js')}" defer></script>
</head>
<body class="framed">
<a class="skip" href="#main">Skip to the content</a>
<header><div><b>${env.appName}</b>
${accountName !== null && html`<nav aria-label="Pages"><ul>${links}</ul></nav>`}
${signedIn}</div></header>
<main id="main" tabindex="-1">
<h1>${title}</h1>
${notice && html`<p role="status">${notice}</p>`}
${body}
${
  asRequest !== undefined &&
  html`<details><summary>As a request</summary>
<pre id="as-request">${curl}</pre><button type="button" class="plain" data-copy="as-request" hidden>Copy</button></details>`
}
</main>
</body>
</html>
`;
  return { headers: hasMedia ? MEDIA_HEADERS : HEADERS, html: String(page) };
}
