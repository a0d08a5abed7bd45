import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { authorize, openDocs, Operation } from '../support/documentation/docs-page.js';
import { startBrowser } from '../support/people/browser.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { startSite } from '../support/people/site.js';
import { cleanUpPrograms, readySettings, runProgram } from '../support/program.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const key = `slipway_${randomBytes(32).toString('base64url')}`;

let url: string;
let everything: EverythingServer;
let browser: Browser;
let page: Page;
/** Faults of the page: errors, and requests to another host. */
let problems: string[];

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
