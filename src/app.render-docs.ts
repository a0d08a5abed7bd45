/**
 * Renders what the build writes into `dist/openapi`: the API documents and the page of Swagger UI. The process or thread runs
 * with `--conditions=api-docs` (see `silent-api-docs.ts`), and the service itself does not import this file.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { createOpenApi } from './platform/http/openapi-document.js';

const DOCS_CSS = readFileSync(join(import.meta.dirname, 'platform/pages/files/swagger.css'), 'utf8');

const RENDERED = ['/openapi.json', '/openapi.yaml', '/docs/swagger-ui-init.js', '/docs/index.html'];

/** Renders the documents of an app, which may be a preview, by their paths. */
export async function renderDocuments(app: INestApplication): Promise<Record<string, Buffer>> {
  const documents: Record<string, Buffer> = {};
  const handlers = new Map<string, (request: object, response: object) => unknown>();
  const recorder = {
    get: (path: string, handler: never) => handlers.set(path, handler),
    getType: () => 'express',
    getRequestUrl: () => '/docs',
  };
  const target = { getHttpAdapter: () => recorder, useStaticAssets: () => undefined } as unknown as INestApplication;
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('docs', target, () => (document ??= createOpenApi(app)), {
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
  for (const path of RENDERED) {
    const send = (text: string) => (documents[path] = Buffer.from(text));
    await handlers.get(path)?.({}, { type: () => undefined, send });
  }
  return documents;
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
