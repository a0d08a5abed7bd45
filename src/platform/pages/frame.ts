/**
 * The frame of the pages behind the sign-in. It works without scripts, from 320 px on, light and dark.
 *
 * Style, script and mark are {@link frameFiles}, whose addresses change with their content. Every address in a page is
 * relative ({@link rootFrom}), so that a proxy can serve Slipway under a path. The pages of sign-in, consent and setup
 * have no frame, and the same style inline.
 *
 * A new page needs a link in {@link LINKS}.
 */
import type { Request, Response } from 'express';
import type { Env } from '../../config/env.js';
import { askedUrl } from '../http/adapter.js';
import { sendOwnCookie, type OwnCookie } from './browser-cookie.js';
import {
  breadcrumb,
  card,
  details,
  head,
  icon,
  mark,
  notice as noticeAs,
  search,
  snippet,
  tile,
} from './components.js';
import type { Crumbs, Head, IconName } from './components.js';
import { formToken } from './form-token.js';
import { type Html, html, type HtmlValue } from './html.js';
import { frameFiles } from './page-files.js';
import { headersWith, rootFrom, type Page } from './page.js';
import type { ShownOnce } from './shown-once.js';
import { timesIn } from './times.js';

/** Paths are relative to the root; some pages are for operators only. */
const LINKS: readonly (readonly [path: string, label: string, icon: IconName, readers?: 'operators'])[] = [
  ['ui/', 'Home', 'home'],
  ['ui/catalogue', 'Catalogue', 'catalogue'],
  ['ui/calls', 'Calls', 'calls'],
  ['ui/publish', 'Publish', 'add'],
  ['ui/people', 'People', 'people', 'operators'],
  ['me', 'Account', 'account'],
];

export interface SignedIn {
  accountName: string;
  isOperator: boolean;
  organizations: readonly string[];
  /** Null for UTC. */
  timeZone: string | null;
}

export const signedInAt = new WeakMap<Env, (request: Request) => Promise<SignedIn | null>>();

/** Has the links of the modules that a service has loaded, as {@link LINKS}. */
export const moduleLinks = new WeakMap<Env, (readonly [path: string, label: string])[]>();

/** Occurs twice in the body of a page that grows: where its parts come, and where its rest comes. */
export const GROWING = html`<!--growing-->`;

/** The content of a page. */
export interface Framed {
  title: string;
  body: Html;
  /** The pages above this one. The navigation marks the first. */
  crumbs?: Crumbs;
  head?: Head;
  tabs?: Html;
  /** The message about what was just done. */
  notice?: HtmlValue;
  /** Path of the GET request that shows the same over REST, encoded, such as `/accounts/me`; absent without one. */
  asRequest?: string;
  cookies?: OwnCookie[];
  /** The page has audio in `data:` addresses. */
  hasMedia?: boolean;
  /**
   * The page shows changing data: it is reloaded every 2 s, or with scripts at each event of the stream at this
   * address. Only for a page without text input.
   */
  isLive?: boolean | string;
  /**
   * Writes parts as they become available, at the first {@link GROWING}, and returns the rest of a page that is sent
   * before its end is known.
   */
  grow?: (write: (part: Html) => void) => Promise<Html>;
}

const POLICY = "style-src 'self'; script-src 'self'";
const HEADERS = headersWith(POLICY);
const MEDIA_HEADERS = headersWith(`${POLICY}; media-src data:`);
const LIVE_HEADERS = headersWith(`${POLICY}; connect-src 'self'`);

/** Returns the message for the word with which the address of a page names a finished action; null for any other value. */
export function noticeOf(word: unknown, sentences: Record<string, string>): string | null {
  return typeof word === 'string' && Object.hasOwn(sentences, word) ? sentences[word] : null;
}

export class FramedPage {
  /**
   * @param content the content, created with the hidden input that each of its forms needs, and the relative path to
   * the root
   */
  constructor(
    readonly content: (token: Html, root: string) => Framed,
    public status = 200,
  ) {}
}

/** The page of an address that does not exist, or not for this user. */
export class NothingHere extends FramedPage {
  constructor(status = 404) {
    super((_, root) => {
      const text = html`<span role="alert">There is nothing at this address, or your account has no access to it. Check the address with whoever
gave it to you, or look in the <a href="${root}ui/catalogue">catalogue</a>.</span>`;
      const find = search('Find a server', '', { action: `${root}ui/` });
      return { title: 'Nothing here', body: card('find', 'Find what you can use', html`<p>${text}</p>${find}`) };
    }, status);
  }
}

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
  /**
   * @param path relative to the root of this service, without a leading slash
   * @param once what the page at the path shows once, as `once` of its {@link PageRequest}: a reload does not show it again
   */
  constructor(
    readonly path: string,
    readonly cookies: OwnCookie[] = [],
    readonly once?: ShownOnce,
  ) {}

  /** Returns the header `Location` of the redirect for a request to this path. */
  locationFrom(requestPath: string): string {
    return rootFrom(requestPath) + this.path;
  }
}

/** A {@link Redirect} to an unchanged address that Slipway trusts. */
export class RedirectAway extends Redirect {
  override locationFrom(): string {
    return this.path;
  }
}

/** @param signedIn null without an account: the head then has a link to the sign-in */
export function renderFramed(
  env: Env,
  request: Request,
  response: Response,
  signedIn: SignedIn | null,
  { content }: FramedPage,
): Page {
  const accountName = signedIn?.accountName ?? null;
  const root = rootFrom(askedUrl(request));
  const token = accountName === null ? html`` : formToken(env, request, response);
  const {
    title,
    body,
    notice,
    asRequest,
    hasMedia,
    isLive,
    grow,
    crumbs,
    head: beside,
    tabs,
    cookies = [],
  } = content(token, root);
  for (const cookie of cookies) sendOwnCookie(env, response, cookie);
  const isAt = (path: string) => request.path.replace(/\/$/, '') === `/${path}`.replace(/\/$/, '');
  const address = (name: keyof typeof frameFiles) => `${root}ui/${name}?v=${frameFiles[name].version}`;
  const modules: (readonly [path: string, label: string, icon: IconName, look: 'extra'])[] = [
    ...(signedIn?.isOperator ? [['ui/service', 'Service', 'servers', 'extra'] as const] : []),
    ...(moduleLinks.get(env) ?? []).map(([path, label]) => [path, label, 'module', 'extra'] as const),
  ];
  const shownLinks = LINKS.filter(([, , , readers]) => readers === undefined || signedIn?.isOperator);
  const organizations = (signedIn?.organizations ?? []).map(
    (name) => [`ui/o/${encodeURIComponent(name)}`, name, 'people', 'extra'] as const,
  );
  const pages = [...shownLinks, ...organizations, ...modules];
  const isListed = pages.some(([path]) => isAt(path));
  const links = pages.map(([path, label, name, look]) => {
    const current = isAt(path) ? 'page' : !isListed && crumbs?.[0]?.[1] === path && 'true';
    return html`<li${look === 'extra' && html` class="extra"`}><a href="${root}${path}"${current && html` aria-current="${current}"`}>${icon(name)}${label}</a></li>`;
  });
  const { q } = request.query;
  const account = accountName !== null && [
    html`<form class="find" role="search" aria-label="Everything" action="${root}ui/"><label class="hidden" for="q">Search</label>${icon('search')}<input id="q" name="q" type="search" maxlength="255" placeholder="Search" value="${isAt('ui/') && typeof q === 'string' && q}"></form>
<details class="menu"><summary><span class="hidden">Account menu of ${accountName}</span>${tile(accountName, { look: 'round' })}<span class="name" aria-hidden="true">${accountName}</span>${icon('down')}</summary>
<div><p class="soft">Signed in as <strong>${accountName}</strong></p><hr>
<ul><li><a href="${root}me">Account and API keys</a></li>${modules.map(([path, label]) => html`<li class="narrow"><a href="${root}${path}">${label}</a></li>`)}<li><a href="${root}docs">Help and API reference</a></li></ul><hr>
<form method="post" action="${root}logout">${token}<button type="submit">Sign out</button></form></div></details>`,
  ];
  const curl = `curl '${env.baseUrl}${asRequest?.replaceAll("'", '%27')}' -H "Authorization: Bearer $SLIPWAY_KEY"`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${env.appName}</title>
${
  isLive &&
  html`<noscript><meta http-equiv="refresh" content="2"></noscript>
`
}<link rel="icon" href="${address('mark.svg')}">
<link rel="stylesheet" href="${address('style.css')}">
<script src="${address('script.js')}" defer></script>
</head>
<body>
<a class="skip hidden" href="#main">Skip to content</a>
<header class="top">
<a class="brand" href="${root}${accountName !== null && 'ui/'}">${mark}<span>${env.appName}</span></a>
${account || html`<a class="button" href="${root}login">Sign in</a>`}
</header>
${accountName !== null && html`<nav class="side" aria-label="Pages"><div><ul>${links}</ul></div></nav>`}
<main id="main" tabindex="-1"${isLive && html` data-live${typeof isLive === 'string' && html`="${isLive}"`}`}>
<div>${crumbs && breadcrumb(root, crumbs)}
${head(title, beside)}</div>
${tabs}
${notice && noticeAs(notice)}
${body}
${asRequest !== undefined && details('View as API request', snippet('as-request', 'curl', curl))}
</main>
</body>
</html>
`;
  const send = (part: Html) => timesIn(signedIn?.timeZone ?? 'UTC', String(part));
  return {
    headers: hasMedia ? MEDIA_HEADERS : isLive ? LIVE_HEADERS : HEADERS,
    html: send(page),
    grow: grow && ((write) => grow((part) => write(send(part))).then(send)),
  };
}
