import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { startApp, testAccount, testApp } from '../../support/app.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);

const root = new URL('../../../', import.meta.url);

verifies('docs:guides', 'every page of the documentation is read as text, without a key, and linked', async () => {
  const paths = readdirSync(new URL('docs/', root), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `/docs/${file}`);
  expect(paths.length).toBeGreaterThan(10);
  const start = (await (await fetch(app.url)).json()) as { guides: string[] };
  expect(start.guides.toSorted()).toEqual(paths.toSorted());
  expect(start.guides.slice(0, 4)).toEqual([
    '/docs/start/first-calls.md',
    '/docs/start/first-server.md',
    '/docs/start/first-colleague.md',
    '/docs/guides/connect.md',
  ]);
  const { info } = (await (await fetch(`${app.url}/openapi.json`)).json()) as { info: { description: string } };
  expect([...info.description.matchAll(/\]\((\/docs\/[^)]+)\)/g)].map(([, path]) => path).sort()).toEqual(
    paths.toSorted(),
  );
  for (const path of [...paths, '/README.md']) {
    const answer = await fetch(app.url + path);
    expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, 'text/plain; charset=utf-8']);
    expect(await answer.text()).toMatch(/^# \w/m);
  }
  for (const path of ['/docs/none.md', '/docs/..%2Fpackage.json', '/docs/%2E%2E%2FREADME.md']) {
    expect((await fetch(app.url + path)).status).toBe(404);
  }
});

verifies('docs:guides', 'the API document has the server and the guides under the path of PUBLIC_URL', async () => {
  const prefixed = await startApp({ PUBLIC_URL: 'https://example.com/slipway' });
  const read = async (path: string) => (await fetch(prefixed.url + path)).text();
  const { servers, info } = JSON.parse(await read('/openapi.json')) as {
    servers: object[];
    info: { description: string };
  };
  expect(servers).toEqual([{ url: 'https://example.com/slipway' }]);
  expect(info.description).toContain('](/slipway/docs/guides/connect.md)');
  expect(info.description).not.toContain('](/docs/');
  expect(await read('/openapi.yaml')).toContain("servers: [{ url: 'https://example.com/slipway' }]");
  expect(await read('/docs/swagger-ui-init.js')).toContain('"servers": [{ "url": "https://example.com/slipway" }]');
  await prefixed.close();
});

/** Where the pages and pictures were before 0.2.0, by the directory that has them now. */
const formerNames = {
  guides: [
    ...[
      'clients',
      'connect',
      'console',
      'elicitation',
      'extend',
      'host',
      'kubernetes',
      'log-in-by-url',
      'logs',
      'mocks',
    ],
    ...['networks', 'oidc', 'operate', 'people-and-keys', 'publish', 'teams', 'uplink', 'upgrade'],
  ],
  reference: [
    ...['access', 'errors', 'mcp', 'metrics', 'module-features', 'protocol-versions', 'settings', 'troubleshoot'],
  ],
  explanation: ['concepts', 'scale'],
  contributing: ['compatibility', 'contract'],
  pictures: [
    ...['account', 'catalogue', 'connection', 'home', 'organization', 'publish', 'server'].map(
      (name) => `console-${name}.png`,
    ),
    'setup-page.png',
  ],
};
const moved = Object.entries(formerNames).flatMap(([directory, names]) =>
  names.map((name) => (name.includes('.') ? name : `${name}.md`)).map((file) => [file, `${directory}/${file}`]),
);

describe('a former address of the documentation', () => {
  it.each(moved)('/docs/%s redirects to %s', async (file, now) => {
    const answer = await fetch(`${app.url}/docs/${file}`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([301, `./${now}`]);
    expect((await fetch(`${app.url}/docs/${file}`)).status).toBe(200);
  });
});

const browser = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, redirect: 'manual' } as const;

verifies('docs:guides', 'every guide is a page for browsers whose links and anchors exist', async () => {
  const { guides } = (await (await fetch(app.url)).json()) as { guides: string[] };
  const anchors = new Map<string, string[]>();
  const links: [page: string, url: URL][] = [];
  for (const path of [...guides, '/README.md', '/SECURITY.md', '/CONTRIBUTING.md', '/CHANGELOG.md']) {
    const answer = await fetch(app.url + path, browser);
    expect([path, answer.status, answer.headers.get('vary')]).toEqual([path, 200, expect.stringContaining('Accept')]);
    const page = await answer.text();
    expect([path, page.match(/<h1[ >]/g)?.length, /<!--|```|language-\w+ /.exec(page)]).toEqual([path, 1, null]);
    anchors.set(
      path,
      [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id),
    );
    for (const [, href] of page.matchAll(/<a href="([^"]*)"/g)) links.push([path, new URL(href, app.url + path)]);
  }
  const own = links.filter(([, url]) => url.origin === new URL(app.url).origin);
  expect(own.length).toBeGreaterThan(100);
  const answers = new Map<string, number>();
  const broken: string[] = [];
  for (const [page, { href, pathname, hash }] of own) {
    if (!answers.has(pathname)) answers.set(pathname, (await fetch(app.url + pathname, browser)).status);
    const isThere = hash === '' || anchors.get(pathname)?.includes(decodeURIComponent(hash.slice(1)));
    if (![200, 301].includes(answers.get(pathname) ?? 0) || !isThere) broken.push(`${page}: ${href}`);
  }
  expect(broken).toEqual([]);
});

verifies(
  'docs:caching',
  'what does not change is kept and asked again, what is of the moment is not kept',
  async () => {
    const kept = ['/openapi.json', '/openapi.yaml', '/docs/swagger-ui-init.js', '/ui/style.css', '/ui/mark.svg'];
    const files = ['/docs/swagger-ui.css', '/docs/guides/connect.md'];
    const ask = (path: string, method: string, known: string) => {
      const request = method === 'HEAD' ? supertest(app.url).head(path) : supertest(app.url).get(path);
      // `fetch` adds `Cache-Control: no-cache`, which files heed.
      return request.set({ 'if-none-match': known, ...(kept.includes(path) && { 'cache-control': 'no-cache' }) });
    };
    for (const path of [...kept, ...files]) {
      for (const method of ['GET', 'HEAD']) {
        const changed = await ask(path, method, '"other"');
        const { etag = '' } = changed.headers;
        expect([path, method, changed.status, Number(changed.headers['content-length']) > 0]).toEqual([
          path,
          method,
          200,
          true,
        ]);
        for (const known of [etag, `"other", ${etag}`, '*']) {
          const { status, headers, text } = await ask(path, method, known);
          const shown = [status, headers.etag, headers['cache-control'], text ?? ''];
          expect([path, method, known, ...shown]).toEqual([path, method, known, 304, etag, 'no-cache', '']);
        }
      }
    }
    for (const path of ['/health', '/ready', '/login', '/ui/']) {
      const { headers } = await fetch(app.url + path, browser);
      expect([path, headers.get('cache-control')]).toEqual([path, 'no-store']);
    }
  },
);

describe('addresses that a browser opens', () => {
  const addresses = [
    ['/connect/guides-ns/made/mcp', '/ui/c/guides-ns/made'],
    ['/connect/guides-ns/missing/mcp', '/ui/c/guides-ns/missing'],
    ['/guides-ns/missing/mcp?profile=a', '/ui/c/guides-ns/missing'],
    ['/connect/guides-ns/.mcp', '/ui/n/guides-ns'],
    ['/run/some-slug', '/ui/s/some-slug'],
    ['/run/Some-Slug/mcp/', '/ui/s/some-slug'],
  ];

  verifies('console:addresses', 'an MCP address leads to its page by its path alone', async () => {
    await app.as(owner).put('/namespaces/guides-ns').expect(201);
    await app.as(owner).put('/connect/guides-ns/made').send({ mcpUrl: 'http://127.0.0.1:9/mcp' }).expect(201);
    for (const [address, page] of addresses) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await fetch(app.url + address, { ...browser, method });
        const location = new URL(answer.headers.get('location') ?? '', app.url + address).pathname;
        expect([address, answer.status, location]).toEqual([address, 303, page]);
      }
    }
  });

  verifies('console:addresses', 'programs are never led to a page', async () => {
    const { accept } = browser.headers;
    const programs: [string, RequestInit][] = [
      ['GET', { headers: { accept: '*/*' } }],
      ['GET', { headers: { accept: `${accept}, text/event-stream` } }],
      ['GET', { headers: { accept, authorization: 'Bearer wrong' } }],
      ['GET', { headers: { accept, 'mcp-session-id': 'a' } }],
      ['POST', { headers: { accept } }],
      ['DELETE', { headers: { accept } }],
    ];
    for (const [address] of addresses) {
      for (const [method, init] of programs) {
        const { status } = await fetch(app.url + address, { ...init, method, redirect: 'manual' });
        expect([address, method, init, status < 400]).toEqual([address, method, init, false]);
      }
    }
    const below = await fetch(`${app.url}/run/some-slug/page`, browser);
    expect([below.status, below.headers.get('location')]).toEqual([401, null]);
  });

  verifies('console:addresses', 'an unknown path is a page for browsers and JSON for programs', async () => {
    const path = `${app.url}/%3Cscript%3E/no.where/at.all`;
    const [person, program, withKey] = await Promise.all([
      fetch(path, browser),
      fetch(path),
      fetch(path, { headers: { ...browser.headers, authorization: 'Bearer x' } }),
    ]);
    expect([person.status, person.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(await person.text()).toMatch(/<h1>Nothing here<\/h1>[^]*role="search"/);
    for (const answer of [program, withKey]) expect(await answer.json()).toEqual({ error: expect.any(String) });
    const signedIn = await signedInBrowser(app, await app.account());
    for (const word of ['nope', 'acme/tickets', 'servers', 'no.where/at.all']) {
      const [page, framed, json] = await Promise.all([
        fetch(`${app.url}/${word}`, browser),
        signedIn.get(`/${word}`),
        fetch(`${app.url}/${word}`, { headers: { accept: '*/*' } }),
      ]);
      expect([word, page.status]).toEqual([word, json.status]);
      expect(page.headers.get('www-authenticate')).toBe(json.headers.get('www-authenticate'));
      expect(await page.text()).toMatch(/Sign in<[^]*<h1>Nothing here<[^]*role="search"/);
      const address = { nope: './ui/n/nope', 'acme/tickets': '../ui/s/acme--tickets' }[word];
      if (address === undefined) {
        expect([framed.status, framed.text]).toEqual([
          json.status,
          expect.stringMatching(/Signed in as[^]*<h1>Nothing here</),
        ]);
        expect(framed.text).toContain(`href="${'../'.repeat(word.split('/').length - 1) || './'}ui/catalogue"`);
      } else {
        expect([framed.status, framed.headers.location]).toEqual([303, address]);
        expect((await signedIn.get(address.replace(/^[./]+/, '/'))).text).toContain('<h1>Nothing here<');
      }
      expect(json.headers.get('content-type')).toContain('application/json');
    }
    const stream = await fetch(`${app.url}/nope`, { headers: { accept: 'text/html, text/event-stream' } });
    expect([stream.status, stream.headers.get('content-type')]).toEqual([
      401,
      expect.stringContaining('application/json'),
    ]);
  });
});
