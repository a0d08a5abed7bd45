/**
 * The documentation: Swagger UI at `/docs`, the document at `/openapi.json` and `/openapi.yaml`, the guides under
 * `/docs/` and at `/README.md`, and `/`, which returns JSON to programs and redirects browsers of signed-in users. None
 * of it needs a key; all of it is limited for each address.
 *
 * A guide is a framed page for `Accept: text/html`, otherwise its Markdown. `/docs/{file}`, the address of a guide or
 * picture before 0.2.0, redirects to the file in its directory. Swagger UI keeps the key for the tab, in
 * `sessionStorage`.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { Express, Request, Response } from 'express';
import type { Env } from './config/env.js';
import type { RequestLimits } from './modules/auth/request-limits.service.js';
import { startPage } from './modules/people/people-pages.js';
import type { SessionsService } from './modules/people/sessions.service.js';
import { MODULE_API } from './platform/external-modules/load-external-modules.js';
import { createOpenApi } from './platform/http/openapi-document.js';
import { sentNotModified } from './platform/http/not-modified.js';
import { clientContextOf } from './platform/pages/client-context.js';
import { FramedPage, renderFramed } from './platform/pages/frame.js';
import { renderGuide, type Guide } from './platform/pages/guide.js';
import { html } from './platform/pages/html.js';
import { isOwnHost } from './platform/pages/own-host.js';
import { redirectTo, sendPage, wantsPage } from './platform/pages/page.js';

/** The page runs only its own scripts and cannot be framed. Swagger UI writes styles into its elements. */
const DOCS_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  // Other versions of Slipway have other pages at the same paths.
  'cache-control': 'no-cache',
};

const DOCS_CSS = readFileSync(join(import.meta.dirname, 'platform/pages/files/swagger.css'), 'utf8');

const DOCUMENTS: Record<string, string> = {
  '/openapi.json': 'application/json; charset=utf-8',
  '/openapi.yaml': 'text/yaml; charset=utf-8',
  '/docs/swagger-ui-init.js': 'application/javascript; charset=utf-8',
};

/** The documents as the build wrote them; `npm run dev` writes none. */
const BUILT_FOLDER = join(import.meta.dirname, '../openapi');

/** The package that modules outside the tree compile with, as the build wrote it. */
const MODULE_PACKAGE = `module-${MODULE_API}.tgz`;

/** The pages of the documentation, at the same path in the repository and in the image. */
const PACKAGE_FOLDER = dirname(createRequire(import.meta.url).resolve('slipway/package.json'));
const GUIDES_FOLDER = join(PACKAGE_FOLDER, 'docs');

/** A documentation file: its path in the package and its path in the service. */
interface DocumentationFile {
  path: string;
  isGuide: boolean;
}

export function serveDocs(
  app: INestApplication & NestExpressApplication,
  env: Env,
  limits: RequestLimits,
  sessions: SessionsService,
): void {
  app.use((request: Request, response: Response, next: () => void) => {
    const isPage = /^\/docs(?:\/|$)/.test(request.path);
    const { path } = request;
    if (isPage || path === '/' || path.endsWith('.md') || path in DOCUMENTS || path === `/${MODULE_PACKAGE}`)
      limits.admitStranger(request, response);
    if (isPage) response.set(DOCS_HEADERS);
    if (/^\/docs\/?$/.test(path)) addWithoutScripts(response);
    next();
  });
  const express = app.getHttpAdapter().getInstance() as Express;
  let documents: Promise<Documents> | undefined;
  for (const [path, type] of Object.entries(DOCUMENTS)) {
    // Swagger also serves the script at a second path.
    const paths = path.endsWith('.js') ? [path, `/docs${path}`] : path;
    let served: ReturnType<typeof servedAs> | undefined;
    express.get(paths, async (request, response) => {
      documents ??= documentsOf(app, env);
      // Rendering can fail for a passing reason, such as a limit of processes: the next request tries it again.
      documents.catch(() => (documents = undefined));
      const { [path]: bytes } = await documents;
      served ??= servedAs(env.pathPrefix === '' ? bytes : belowPrefix(String(bytes), env));
      const headers = { 'cache-control': 'no-cache', etag: served.etag };
      if (!sentNotModified(request, response, headers))
        response.set({ ...headers, 'content-type': type }).send(served.body);
    });
  }
  const files = documentationFiles();
  const guides = files.filter(({ isGuide }) => isGuide).map(({ path }) => ({ path, title: titleOf(path) }));
  // The page is shown even if the session cannot be read: at another host name, or while the database is unavailable.
  const personOf = async (request: Request) =>
    isOwnHost(request, env) ? sessions.current(clientContextOf(request, env)).catch(() => null) : null;
  const isServed = (path: string) => path in DOCUMENTS || files.some((file) => path === `/${file.path}`);
  for (const { path, isGuide } of files) {
    const [, ...below] = path.split('/');
    if (below.length > 0) {
      express.get(`/docs/${basename(path)}`, (_request, response) => response.redirect(301, `./${below.join('/')}`));
    }
    let rendered: Guide | undefined;
    express.get(`/${path}`, async (request, response) => {
      const file = join(PACKAGE_FOLDER, path);
      if (path.endsWith('.png')) return response.sendFile(file);
      response.vary('Accept');
      if (!wantsPage(request)) {
        const text = await readFile(file, 'utf8');
        const headers = { 'cache-control': 'no-cache', etag: etagOf(text) };
        if (!sentNotModified(request, response, headers)) response.set(headers).type('text/plain').send(text);
        return;
      }
      const { title, body } = (rendered ??= renderGuide(readFileSync(file, 'utf8'), `/${path}`, isServed));
      const root = isGuide ? '../../' : './';
      const at = guides.findIndex((guide) => guide.path === path);
      const beside = isGuide ? [guides[at - 1], guides[at + 1]] : [];
      const links = beside.map(
        (guide, i) =>
          guide && html`<a href="${root}${guide.path}" rel="${i === 0 ? 'prev' : 'next'}">${guide.title}</a> `,
      );
      const person = await personOf(request);
      // `/` redirects a user who is signed in.
      const list = person ? `${root}README.md#documentation` : root;
      const nav = html`<nav aria-label="Guides"><p><a href="${list}">All guides</a> ${links}</p></nav>`;
      const content = { title, body: html`<div class="guide">${body}</div>${nav}` };
      sendPage(response, renderFramed(env, request, response, person, new FramedPage(() => content)));
    });
  }
  express.get(`/${MODULE_PACKAGE}`, (_request, response) =>
    response.sendFile(join(import.meta.dirname, '..', MODULE_PACKAGE), { maxAge: '1h' }),
  );
  serveSwagger(app, app);
  app.use(async (request: Request, response: Response, next: () => void) => {
    if (request.path !== '/' || !['GET', 'HEAD'].includes(request.method)) return next();
    response.vary('Accept');
    if (request.accepts(['json', 'html']) === 'html') {
      return (await personOf(request)) ? redirectTo(response, './ui/') : sendPage(response, startPage(env, guides));
    }
    const paths = guides.map(({ path }) => `/${path}`);
    response.set('cache-control', 'no-cache');
    response.json({ name: 'Slipway', docs: '/docs', guides: paths, openapi: '/openapi.json', health: '/health' });
  });
}

/** Adds to the page of Swagger UI what browsers without scripts show. */
function addWithoutScripts(response: Response): void {
  const send = response.send.bind(response);
  const hint = html`<noscript
    ><p>
      This page needs scripts. <a href="openapi.json">openapi.json</a> describes the same API; <a href="README.md">the guides</a> and
      <a href="ui/">the console</a> work without scripts.
    </p></noscript
  >`;
  response.send = (page) => send(typeof page === 'string' ? page.replace(/(?<=.body>)/, String(hint)) : page);
}

function servedAs(body: Buffer | string): { body: Buffer | string; etag: string } {
  return { body, etag: etagOf(body) };
}

function etagOf(content: Buffer | string): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`;
}

type Documents = Record<string, Buffer>;

/**
 * Returns the documents that the build wrote. With modules from outside the tree they are rendered, in a thread, because
 * that takes half a second.
 */
async function documentsOf(app: NestExpressApplication, env: Env): Promise<Documents> {
  const hasModules = (env.modules ?? []).length > 0;
  if (!hasModules && existsSync(BUILT_FOLDER)) {
    const read = async (path: string) => [path, await readFile(join(BUILT_FOLDER, basename(path)))] as const;
    return Object.fromEntries(await Promise.all(Object.keys(DOCUMENTS).map(read)));
  }
  // Tests run the sources, which a thread cannot.
  if (!import.meta.filename.endsWith('.js')) return renderDocuments(app);
  const thread = new Worker(new URL('./cli/openapi.js', import.meta.url), {
    workerData: env.modules,
    execArgv: ['--conditions=api-docs'],
  });
  const [documents] = (await once(thread, 'message')) as [Record<string, Uint8Array>];
  return Object.fromEntries(Object.entries(documents).map(([path, bytes]) => [path, Buffer.from(bytes)]));
}

/** Returns a document of a service whose proxy removes a path prefix: its server and the links of its descriptions. */
function belowPrefix(document: string, { baseUrl, pathPrefix }: Env): string {
  return document
    .replace(/"servers":\s*\[\]/, `"servers": [{ "url": "${baseUrl}" }]`)
    .replace(/^servers: \[\]/m, `servers: [{ url: '${baseUrl}' }]`)
    .replaceAll(/\]\(\/(?=docs\/|ui\/|openapi\.json)/g, `](${pathPrefix}/`);
}

/** Renders the documents of an app, which may be a preview. */
export async function renderDocuments(app: NestExpressApplication): Promise<Documents> {
  const documents: Documents = {};
  const handlers = new Map<string, (request: object, response: object) => Promise<void>>();
  const recorder = { get: (path: string, handler: never) => handlers.set(path, handler), getType: () => 'express' };
  serveSwagger(app, { getHttpAdapter: () => recorder, useStaticAssets: () => undefined });
  for (const path of Object.keys(DOCUMENTS)) {
    const send = (text: string) => (documents[path] = Buffer.from(text));
    await handlers.get(path)?.({}, { type: () => undefined, send });
  }
  return documents;
}

/** Registers Swagger UI and the documents of `app` in `target`. */
function serveSwagger(app: INestApplication, target: object): void {
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('docs', target as INestApplication, () => (document ??= createOpenApi(app)), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    customSiteTitle: 'Slipway API',
    customCss: DOCS_CSS,
    swaggerOptions: {
      displayRequestDuration: true,
      tryItOutEnabled: true,
      operationsSorter: null,
      defaultModelsExpandDepth: 0,
      docExpansion: 'none',
      filter: true,
      onComplete: preparePage,
    },
  });
}

/** Returns the guides in reading order, which is that of the list in the README; then the pages that they link to. */
function documentationFiles(): DocumentationFile[] {
  const inFolder = existsSync(GUIDES_FOLDER)
    ? readdirSync(GUIDES_FOLDER, { recursive: true, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/'))
    : [];
  const beside = ['README.md', 'SECURITY.md', 'CHANGELOG.md', 'CONTRIBUTING.md'].filter((file) =>
    existsSync(join(PACKAGE_FOLDER, file)),
  );
  const readme = beside.includes('README.md') ? readFileSync(join(PACKAGE_FOLDER, 'README.md'), 'utf8') : '';
  const list = readme.slice(readme.indexOf('## Documentation'));
  const guides = inFolder
    .filter((file) => file.endsWith('.md'))
    .map((file) => ({ path: `docs/${file}`, at: list.indexOf(`(docs/${file})`) >>> 0 }))
    .sort((a, b) => a.at - b.at || (a.path < b.path ? -1 : 1));
  const pictures = inFolder.filter((file) => file.endsWith('.png')).map((file) => `docs/${file}`);
  return [
    ...guides.map(({ path }) => ({ path, isGuide: true })),
    ...[...beside, ...pictures].map((path) => ({ path, isGuide: false })),
  ];
}

function titleOf(path: string): string {
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(PACKAGE_FOLDER, path), 'utf8')) ?? [];
  return title;
}

interface PageElement {
  querySelectorAll: (selector: string) => Iterable<PageElement>;
  getAttribute: (name: string) => string | null;
  setAttribute: (name: string, value: string) => void;
  removeAttribute: (name: string) => void;
}

interface SwaggerUi {
  getStore: () => { subscribe: (listener: () => void) => void };
  authSelectors: { authorized: () => { toJS: () => object } };
  authActions: { authorize: (authorized: object) => void };
  specSelectors: { tags: () => { toJS: () => { name: string }[] } };
  layoutActions: { show: (path: string[], isShown: boolean) => void };
}

/**
 * Unfolds the groups of the contract, applies the colours of the system, adds roles and labels for assistive technology, and
 * keeps the key that a person enters for as long as the tab is open: Swagger UI's own `persistAuthorization` keeps it in the
 * browser forever. Runs in the browser: the source of the function is sent.
 */
function preparePage(): void {
  const page = globalThis as unknown as {
    ui: SwaggerUi;
    sessionStorage: { getItem: (name: string) => string | null; setItem: (name: string, value: string) => void };
    matchMedia: (query: string) => { matches: boolean };
    document: PageElement & { documentElement: { classList: { toggle: (name: string, isOn: boolean) => void } } };
    MutationObserver: new (callback: () => void) => { observe: (target: object, options: object) => void };
    location: { hash: string; pathname: string };
    history: { replaceState: (state: null, title: string, url: string) => void };
  };
  const { ui, sessionStorage } = page;
  page.document.documentElement.classList.toggle('dark-mode', page.matchMedia('(prefers-color-scheme: dark)').matches);
  const repairs: [selector: string, attribute: string, value: string][] = [
    ['.information-container', 'role', 'region'],
    ['.information-container', 'aria-label', 'About'],
    ['.filter-container', 'role', 'search'],
    ['.dialog-ux', 'role', 'dialog'],
    ['.dialog-ux', 'aria-label', 'Authorize'],
    ['h3', 'aria-level', '2'],
    ['h4', 'aria-level', '3'],
    ['h5', 'aria-level', '4'],
    ['.close-modal', 'aria-label', 'Close'],
    ['.auth-btn-wrapper .authorize', 'aria-label', 'Authorize: apply credentials'],
    ['.examples-select-element', 'aria-label', 'Example'],
    ['textarea.body-param__text', 'aria-label', 'Request body'],
    ['pre.microlight', 'tabindex', '0'],
    ['.responses-table', 'role', 'table'],
  ];
  const { document } = page;
  const repair = () => {
    for (const [selector, attribute, value] of repairs) {
      for (const element of document.querySelectorAll(selector)) element.setAttribute(attribute, value);
    }
    // A button contains nothing that takes the focus.
    for (const link of document.querySelectorAll('.opblock-summary-control a')) link.removeAttribute('href');
    for (const row of document.querySelectorAll('[data-property-name], [data-param-name]')) {
      const name = row.getAttribute('data-property-name') ?? row.getAttribute('data-param-name');
      for (const field of row.querySelectorAll('textarea, select, input:not([type="checkbox"])')) {
        field.setAttribute('aria-label', String(name));
      }
    }
  };
  repair();
  new page.MutationObserver(repair).observe(document, { childList: true, subtree: true });
  // A link to one operation has already opened that operation.
  if (page.location.hash === '') {
    for (const { name } of ui.specSelectors.tags().toJS()) {
      if (name.startsWith('Core ')) ui.layoutActions.show(['operations-tag', name], true);
    }
    page.history.replaceState(null, '', page.location.pathname);
  }
  const storedAuth = sessionStorage.getItem('slipway-authorized');
  if (storedAuth !== null) ui.authActions.authorize(JSON.parse(storedAuth) as object);
  ui.getStore().subscribe(() => {
    sessionStorage.setItem('slipway-authorized', JSON.stringify(ui.authSelectors.authorized().toJS()));
  });
}
