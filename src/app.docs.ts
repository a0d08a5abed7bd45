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
import { NotFoundException, type INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Express, Request, Response } from 'express';
import type { Env } from './config/env.js';
import type { RequestLimits } from './modules/auth/request-limits.service.js';
import { startPage } from './modules/people/people-pages.js';
import type { SessionsService } from './modules/people/sessions.service.js';
import { MODULE_API } from './platform/external-modules/load-external-modules.js';
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

const DOCUMENTS: Record<string, string> = {
  '/openapi.json': 'application/json; charset=utf-8',
  '/openapi.yaml': 'text/yaml; charset=utf-8',
  '/docs/swagger-ui-init.js': 'application/javascript; charset=utf-8',
};

/** The documents as the build wrote them; `npm run dev` writes none. */
const BUILT_FOLDER = join(import.meta.dirname, '../openapi');

/** The page of Swagger UI. It is the same with modules from outside the tree. */
const PAGE = '/docs/index.html';

/** The package that modules outside the tree compile with, as the build wrote it. */
const MODULE_PACKAGE = `module-${MODULE_API}.tgz`;

/** The pages of the documentation, at the same path in the repository and in the image. */
const PACKAGE_FOLDER = dirname(createRequire(import.meta.url).resolve('slipway/package.json'));
const SWAGGER_UI_FOLDER = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
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
    next();
  });
  const express = app.getHttpAdapter().getInstance() as Express;
  let documents: Promise<Documents> | undefined;
  const rendered = () => {
    documents ??= documentsOf(app, env);
    // Rendering can fail for a passing reason, such as a limit of processes: the next request tries it again.
    documents.catch(() => (documents = undefined));
    return documents;
  };
  for (const [path, type] of Object.entries(DOCUMENTS)) {
    // Swagger also serves the script at a second path.
    const paths = path.endsWith('.js') ? [path, `/docs${path}`] : path;
    let served: ReturnType<typeof servedAs> | undefined;
    express.get(paths, async (request, response) => {
      const { [path]: bytes } = await rendered();
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
  let page: string | undefined;
  express.get(['/docs', PAGE], async (request, response) => {
    page ??= String(
      existsSync(BUILT_FOLDER) ? await readFile(join(BUILT_FOLDER, basename(PAGE))) : (await rendered())[PAGE],
    );
    const located = request.originalUrl.endsWith('/') ? page.replaceAll('./docs/', './') : page;
    const isPage = /^\/docs\/?$/.test(request.path);
    response.type('text/html').send(isPage ? withHint(located) : located);
  });
  express.get('/docs/LICENSE', () => {
    throw new NotFoundException();
  });
  app.useStaticAssets(SWAGGER_UI_FOLDER, { prefix: '/docs' });
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

/** Adds to the page of Swagger UI a hint for browsers without scripts. */
function withHint(page: string): string {
  const hint = html`<noscript
    ><p>
      This page needs scripts. <a href="openapi.json">openapi.json</a> describes the same API; <a href="README.md">the guides</a> and
      <a href="ui/">the console</a> work without scripts.
    </p></noscript
  >`;
  return page.replace(/(?<=<body>)/, String(hint));
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
  if (!import.meta.filename.endsWith('.js')) {
    const { renderDocuments } = await import('./app.render-docs.js');
    return renderDocuments(app);
  }
  const execArgv = ['--conditions=api-docs'];
  const thread = new Worker(new URL('./cli/openapi.js', import.meta.url), { workerData: env.modules, execArgv });
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
