import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { formOf, smallBundle } from '../support/documentation/api-walk.js';
import type { OpenApi } from '../support/documentation/api-document.js';
import { authorize, openDocs, Operation } from '../support/documentation/docs-page.js';
import { startBrowser } from '../support/people/browser.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { startSite } from '../support/people/site.js';
import { cleanUpPrograms, readySettings, runProgram } from '../support/program.js';
import { until } from '../support/until.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const key = `slipway_${randomBytes(32).toString('base64url')}`;

let url: string;
let everything: EverythingServer;
let browser: Browser;
let page: Page;
const request = async (method: string, path: string, body?: object, bearer = key) => {
  const headers = {
    authorization: `Bearer ${bearer}`,
    ...(!(body instanceof FormData) && { 'content-type': 'application/json' }),
  };
  const response = await fetch(url + path, {
    method,
    headers,
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as ReturnType<typeof JSON.parse> };
};
/** Faults of the page: errors, and requests to another host. */
let problems: string[];

/** Operations of each method, with parameters, bodies, forms and choices. */
const opened = [
  ['Core servers', 'Releases_list'],
  ['Connections', 'Connections_set'],
  ['Releases', 'Publish_publish'],
  ['Namespaces', 'Namespaces_move'],
  ['Core connections', 'Connections_remove'],
  ['Skills', 'Skills_create'],
  ['Grants', 'ServerGrants_set'],
] as const;

beforeAll(async () => {
  const service = runProgram('main.js', await readySettings(key));
  [url, everything, browser] = await Promise.all([service.url(), startEverything(), startBrowser()]);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([browser?.close(), everything?.close()]);
  await cleanUpPrograms();
}, SLOW_MS);

beforeEach(async () => {
  problems = [];
  page = await openDocs(browser, url, (opened) => {
    opened.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    opened.on('pageerror', (error) => problems.push(error.message));
    opened.on('requestfailed', (request) => problems.push(`${request.url()} failed`));
    opened.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && origin !== url) problems.push(`a request to ${origin}`);
    });
  });
});

afterEach(() => page.context().close());

describe('the docs page', () => {
  verifies(
    'docs:guides',
    'is linked by GET / for a browser, needs no key, and loads nothing from other origins',
    async () => {
      expect(page.url()).toBe(`${url}/docs`);
      expect(await page.title()).toBe('Slipway API');
      expect(await page.locator('.info .title').innerText()).toContain('Slipway');
      expect(problems).toEqual([]);

      const program = await fetch(url, { redirect: 'manual' });
      expect(program.status).toBe(200);
      expect(await program.json()).toMatchObject({ docs: '/docs', openapi: '/openapi.json' });
    },
  );

  verifies(
    'docs:guides',
    'shows the contract first, then folded groups, with a filter and nothing missing',
    async () => {
      const core = ['Core connections', 'Core servers', 'Core namespaces and skills'];
      const groups = [
        ...core,
        'Namespaces',
        'Connections',
        'Tools',
        'Triggers',
        'MCP',
        'Servers',
        'Releases',
        'Runtime logs',
        'Skills',
        'Server icons',
        'Server settings',
        'Accounts and API keys',
        'Grants',
        'Health',
      ];
      const shown = await page
        .locator('.opblock-tag')
        .evaluateAll((all) => all.map((tag) => tag.getAttribute('data-tag')));
      // Further modules follow.
      expect(shown.slice(0, groups.length)).toEqual(groups);
      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
      const documented = Object.values(paths).flatMap((item) => Object.keys(item));
      expect(await page.locator('.opblock').count()).toBe(14);
      const groupOf = (name: string) => page.locator(`.opblock-tag[data-tag="${name}"]`);
      for (const name of shown.filter((name) => !core.includes(String(name)))) await groupOf(String(name)).click();
      expect(await page.locator('.opblock').count()).toBe(documented.length);
      await page.getByPlaceholder('Filter by tag').fill('Grants');
      await groupOf('Health').waitFor({ state: 'detached' });
      expect(await groupOf('Grants').count()).toBe(1);
    },
  );

  verifies(
    'docs:guides',
    'takes the colours of the system, leads to the console, and says what it is without scripts',
    async () => {
      const background = (target: Page) => target.evaluate('getComputedStyle(document.body).backgroundColor');
      const light = await background(page);
      const dark = await browser.newPage({ colorScheme: 'dark' });
      await dark.goto(`${url}/docs`);
      await dark.locator('.opblock').first().waitFor();
      expect(await background(dark)).not.toBe(light);
      await dark.close();
      const plain = await browser.newPage({ javaScriptEnabled: false });
      await plain.goto(`${url}/docs`);
      await plain.getByRole('link', { name: 'the guides' }).click();
      expect(await plain.locator('h1').first().innerText()).toContain('Slipway');
      await plain.close();
      expect(await page.locator('.info a[href="/ui/"]').innerText()).toBe('Console');
    },
  );

  verifies('docs:safe', 'keeps the key for the tab alone, runs only its own scripts and cannot be framed', async () => {
    await authorize(page, key);
    await page.reload();
    await page.locator('.auth-wrapper .authorize.locked').waitFor();
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain(key);
    const tab = await page.context().newPage();
    await tab.goto(`${url}/docs`);
    await tab.locator('.auth-wrapper .authorize.unlocked').waitFor();
    await tab.close();
    expect(problems).toEqual([]);

    const { headers } = await fetch(`${url}/docs`);
    expect(headers.get('content-security-policy')).toContain("script-src 'self';");
    const trap = await startSite(() => ({ '/': { text: `<!doctype html><iframe src="${url}/docs"></iframe>` } }));
    const refused = page.waitForEvent('console', (message) => /frame-ancestors|X-Frame-Options/i.test(message.text()));
    await page.goto(trap.origin);
    await refused;
    expect(await page.frames()[1]?.locator('.opblock').count()).toBe(0);
    await trap.close();
  });

  verifies('docs:try-it-out', 'shows the error while no key is entered', async () => {
    const claim = new Operation(page, 'Namespaces', 'Namespaces_claim');
    await claim.open();
    expect(await claim.execute()).toMatchObject({ status: 401, body: { error: 'Unauthorized' } });
  });

  verifies(
    'docs:accessible',
    'gives axe nothing to report and does not scroll sideways, wide and narrow, light and dark',
    async () => {
      const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
      const found: unknown[] = [];
      for (const [width, colorScheme] of [
        [1280, 'light'],
        [1280, 'dark'],
        [390, 'light'],
        [390, 'dark'],
      ] as const) {
        // The policy of the page keeps the script of axe out.
        const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
        const shown = await context.newPage();
        await shown.goto(`${url}/docs`);
        await shown.addScriptTag({ path: axe });
        const look = async (state: string) => {
          const { violations } = await shown.evaluate<AxeResults>('axe.run(document, { resultTypes: ["violations"] })');
          const scrolled = await shown.evaluate<number>('document.documentElement.scrollWidth');
          if (scrolled !== width) found.push([state, width, scrolled]);
          for (const { id, nodes } of violations) {
            found.push(...nodes.map(({ target, any }) => [state, width, colorScheme, id, target, any[0]?.message]));
          }
        };
        await shown.locator('.opblock').first().waitFor();
        await look('start');
        for (const [tag, id] of opened) await new Operation(shown, tag, id).open();
        await look('open');
        await new Operation(shown, 'Connections', 'Connections_set').press();
        await look('executed');
        await shown.locator('.auth-wrapper').getByRole('button', { name: 'Authorize' }).click();
        await look('dialog');
        await context.close();
      }
      expect(found).toEqual([]);
    },
    SLOW_MS,
  );

  verifies(
    'docs:try-it-out',
    'leads from the key to a published server by clicks, and tells another account what to do',
    async () => {
      const run = async (target: Page, tag: string, id: string) => {
        const operation = new Operation(target, tag, id);
        await operation.open();
        await operation.adjust({ 'http://127.0.0.1:3001/mcp': everything.url });
        const executed = await operation.execute();
        return { ...executed, advice: (await operation.hint()) ?? String(executed.body.error) };
      };
      await authorize(page, key);
      expect(await run(page, 'Namespaces', 'Namespaces_claim')).toMatchObject({ status: 201, body: { name: 'acme' } });
      expect(await run(page, 'Servers', 'Servers_create')).toMatchObject({ status: 201 });
      expect(await run(page, 'Releases', 'Publish_publish')).toMatchObject({ status: 202 });
      const isReleased = async () =>
        (await request('GET', '/servers/acme%2Fweather/releases/latest')).body.status === 'SUCCESS';
      await until(isReleased, 'the release succeeds');
      const called = await run(page, 'MCP', 'Run_serve');
      expect(called).toMatchObject({ status: 200, body: { jsonrpc: '2.0', id: 1 } });

      const account = await request('POST', '/accounts', { name: 'second', kind: 'organization' });
      const second = await request('POST', `/accounts/${account.body.id}/api-keys`, { name: 'first' });
      const other = await openDocs(browser, url);
      await authorize(other, second.body.key as string);
      const claim = 'Claim one with PUT /namespaces/{name}.';
      for (const [tag, id, status, hint] of [
        ['Namespaces', 'Namespaces_claim', 409, 'choose another name, or let POST /namespaces generate one'],
        ['Connections', 'Connections_set', 404, `You have no such namespace. ${claim}`],
        ['Servers', 'Servers_create', 403, claim],
        ['Core connections', 'Connections_list', 404, `You have no such namespace. ${claim}`],
        ['Core namespaces and skills', 'Namespaces_remove', 403, claim],
      ] as const) {
        const answered = await run(other, tag, id);
        expect([id, answered.status, answered.advice]).toEqual([id, status, expect.stringContaining(hint)]);
      }
      await other.context().close();

      // Every example of a body that can have several forms.
      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
      const examplesOf = (path: string, method: string, type: string) =>
        Object.entries(paths[path]?.[method]?.requestBody?.content[type]?.examples ?? {});
      const connections = examplesOf('/connect/{namespace}', 'post', 'application/json');
      expect(connections.map(([name]) => name)).toEqual(['first', 'registry', 'mock', 'uplink', 'headers']);
      for (const [name, { value }] of connections) {
        const connection = await request('POST', '/connect/acme', value as object);
        expect([name, connection.status]).toEqual([name, 201]);
      }
      const releases = examplesOf('/servers/{qualifiedName}/releases', 'put', 'multipart/form-data');
      expect(releases.map(([name]) => name)).toEqual(['external', 'hosted', 'stdio']);
      const { bundle } = await smallBundle();
      const files: Record<string, Record<string, Buffer>> = {
        hosted: { module: Buffer.from('export {};') },
        stdio: { bundle },
      };
      for (const [name, { value }] of releases) {
        const payload = JSON.stringify((value as { payload: object }).payload);
        const release = await request('PUT', '/servers/acme%2Fweather/releases', formOf({ payload, ...files[name] }));
        expect([name, release.status]).toEqual([name, 202]);
      }
      const publish = page.locator('[id="operations-Releases-Publish_publish"]');
      for (const [name] of releases) expect(await publish.innerText()).toContain(`"type":"${name}"`);
    },
    SLOW_MS,
  );

  longVerifies(
    'docs:try-it-out',
    'runs the first five steps with the entered key and the unmodified examples',
    async () => {
      await authorize(page, key);

      const claim = new Operation(page, 'Namespaces', 'Namespaces_claim');
      await claim.open();
      expect(await claim.parameter('name')).toBe('acme');
      expect(await claim.execute()).toMatchObject({ method: 'PUT', status: 201, body: { name: 'acme' } });

      const connect = new Operation(page, 'Connections', 'Connections_set');
      await connect.open();
      expect([await connect.parameter('namespace'), await connect.parameter('connectionId')]).toEqual([
        'acme',
        'my-first',
      ]);
      const example = await connect.body.inputValue();
      expect(JSON.parse(example)).toEqual({
        mcpUrl: 'http://127.0.0.1:3001/mcp',
        name: 'My first connection',
        metadata: { userId: 'u-1' },
      });
      await connect.body.fill(example.replace('http://127.0.0.1:3001/mcp', everything.url));
      expect(await connect.execute()).toMatchObject({
        method: 'PUT',
        status: 201,
        body: {
          connectionId: 'my-first',
          status: { state: 'connected' },
          serverInfo: { name: 'mcp-servers/everything' },
        },
      });

      const list = new Operation(page, 'Tools', 'ConnectionTools_list');
      await list.open();
      const listed = await list.execute();
      expect(listed.status).toBe(200);
      expect(listed.body.tools.map((tool: { name: string }) => tool.name)).toContain('echo');

      const call = new Operation(page, 'Tools', 'ConnectionTools_call');
      await call.open();
      expect(await call.parameter('toolPath')).toBe('echo');
      expect(JSON.parse(await call.body.inputValue())).toEqual({ message: 'Hello' });
      const called = await call.execute();
      expect(called).toMatchObject({ status: 200, body: { content: [{ type: 'text', text: 'Echo: Hello' }] } });

      const mcp = new Operation(page, 'MCP', 'ConnectionMcp_serve');
      await mcp.open();
      expect(JSON.parse(await mcp.body.inputValue())).toMatchObject({ method: 'tools/list' });
      const spoken = await mcp.execute();
      expect(spoken).toMatchObject({ status: 200, body: { jsonrpc: '2.0', id: 1 } });
      expect(spoken.body.result.tools).toEqual(listed.body.tools);

      // Somebody else's row, which only the filter can keep out.
      const other = await fetch(`${url}/connect/acme/other`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ mcpUrl: everything.url, metadata: { userId: 'u-2' } }),
      });
      expect(other.status).toBe(201);
      const find = new Operation(page, 'Core connections', 'Connections_list');
      await find.open();
      expect(JSON.parse(await find.parameter('metadata'))).toEqual({ 'metadata.userId': 'u-1' });
      const filtered = await find.execute();
      expect(filtered.url.pathname).toBe('/connect/acme');
      expect([...filtered.url.searchParams]).toContainEqual(['metadata.userId', 'u-1']);
      expect(filtered.status).toBe(200);
      expect(filtered.body.connections.map((row: { connectionId: string }) => row.connectionId)).toEqual(['my-first']);

      expect(problems).toEqual([]);
    },
    SLOW_MS,
  );
});
