import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { chromium, type Browser, type Locator, type Page, type Response } from 'playwright-core';
import { startEverything, type EverythingServer } from '../support/everything.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 120_000;

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

const key = `slipway_${randomBytes(32).toString('base64url')}`;

let url: string;
let everything: EverythingServer;
let browser: Browser;
let page: Page;
/** What the page should never do: errors, and requests to another host. */
let problems: string[];

/** A parsed body, of any shape. */
type Json = ReturnType<typeof JSON.parse>;

/** What the page got for one press of Execute. */
interface Executed {
  /** The request as the browser sent it. */
  method: string;
  url: URL;
  status: number;
  body: Json;
}

/** One operation on the page. */
class Operation {
  private readonly block: Locator;

  constructor(tag: string, id: string) {
    this.block = page.locator(`[id="operations-${tag.replaceAll(' ', '_')}-${id}"]`);
  }

  async open(): Promise<void> {
    await this.block.locator('.opblock-summary-control').click();
    await this.block.getByRole('button', { name: 'Execute' }).waitFor();
  }

  /** The value of a path or query parameter as it stands in its field. */
  parameter(name: string): Promise<string> {
    return this.block.locator(`tr[data-param-name="${name}"]`).locator('input, textarea').inputValue();
  }

  get body(): Locator {
    return this.block.locator('.opblock-section-request-body textarea');
  }

  /** Presses Execute. The page itself must show the status and the body that came. */
  async execute(): Promise<Executed> {
    const answered = page.waitForResponse((response: Response) => response.request().resourceType() === 'fetch');
    await this.block.getByRole('button', { name: 'Execute' }).click();
    const response = await answered;
    const live = this.block.locator('.live-responses-table');
    await live.locator('.response-col_status', { hasText: String(response.status()) }).waitFor();
    const shown = await live.locator('.response-col_description .highlight-code pre').first().innerText();
    const body: unknown = await response.json();
    expect(JSON.parse(shown)).toEqual(body);
    const request = response.request();
    return { method: request.method(), url: new URL(request.url()), status: response.status(), body };
  }
}

async function authorize(): Promise<void> {
  await page.locator('.auth-wrapper').getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.dialog-ux');
  await dialog.locator('input').fill(key);
  await dialog.locator('.auth-btn-wrapper').getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.locator('.auth-btn-wrapper').getByRole('button', { name: 'Close' }).click();
}

beforeAll(async () => {
  const service = runProgram('main.js', { DATA_DIR: await dataFolder(), BOOTSTRAP_API_KEY: key });
  [url, everything, browser] = await Promise.all([
    service.url(),
    startEverything(),
    chromium.launch({ executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium', args: flags }),
  ]);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([browser?.close(), everything?.close()]);
  await cleanUpPrograms();
}, SLOW_MS);

beforeEach(async () => {
  problems = [];
  // A context of its own: no key of another test is remembered.
  page = await (await browser.newContext()).newPage();
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('requestfailed', (request) => problems.push(`${request.url()} failed`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== url) problems.push(`a request to ${origin}`);
  });
  await page.goto(url);
  await page.locator('.opblock').first().waitFor();
});

afterEach(() => page.context().close());

describe('the docs page', () => {
  verifies('docs:page', 'is where GET / leads a browser, without a key, and loads nothing from elsewhere', async () => {
    expect(page.url()).toBe(`${url}/docs`);
    expect(await page.title()).toBe('Slipway API');
    expect(await page.locator('.info .title').innerText()).toContain('Slipway');
    expect(problems).toEqual([]);

    const program = await fetch(url, { redirect: 'manual' });
    expect(program.status).toBe(200);
    expect(await program.json()).toMatchObject({ docs: '/docs', openapi: '/openapi.json' });
  });

  verifies('docs:page', 'shows the groups in the order a newcomer needs, with nothing hidden', async () => {
    expect(
      await page.locator('.opblock-tag').evaluateAll((all) => all.map((tag) => tag.getAttribute('data-tag'))),
    ).toEqual(['Namespaces', 'Connections', 'Tools', 'MCP', 'Servers', 'Accounts and API keys', 'Health']);
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const documented = Object.values(paths).flatMap((item) => Object.keys(item));
    expect(await page.locator('.opblock').count()).toBe(documented.length);
  });

  verifies('docs:try-it-out', 'says what is wrong while no key is entered', async () => {
    const claim = new Operation('Namespaces', 'Namespaces_claim');
    await claim.open();
    expect(await claim.execute()).toMatchObject({ status: 401, body: { error: 'Unauthorized' } });
  });

  verifies(
    'docs:try-it-out',
    'takes a newcomer through the five first steps with the key entered there and the examples as they stand',
    async () => {
      await authorize();

      const claim = new Operation('Namespaces', 'Namespaces_claim');
      await claim.open();
      expect(await claim.parameter('name')).toBe('acme');
      expect(await claim.execute()).toMatchObject({ method: 'PUT', status: 201, body: { name: 'acme' } });

      const connect = new Operation('Connections', 'Connections_set');
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

      const list = new Operation('Tools', 'ConnectionTools_list');
      await list.open();
      const listed = await list.execute();
      expect(listed.status).toBe(200);
      expect(listed.body.tools.map((tool: { name: string }) => tool.name)).toContain('echo');

      const call = new Operation('Tools', 'ConnectionTools_call');
      await call.open();
      expect(await call.parameter('toolPath')).toBe('echo');
      expect(JSON.parse(await call.body.inputValue())).toEqual({ message: 'Hello' });
      const called = await call.execute();
      expect(called).toMatchObject({ status: 200, body: { content: [{ type: 'text', text: 'Echo: Hello' }] } });

      const mcp = new Operation('MCP', 'ConnectionMcp_serve');
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
      const find = new Operation('Connections', 'Connections_list');
      await find.open();
      expect(JSON.parse(await find.parameter('metadata'))).toEqual({ 'metadata.userId': 'u-1' });
      const found = await find.execute();
      expect(found.url.pathname).toBe('/connect/acme');
      expect([...found.url.searchParams]).toContainEqual(['metadata.userId', 'u-1']);
      expect(found.status).toBe(200);
      expect(found.body.connections.map((row: { connectionId: string }) => row.connectionId)).toEqual(['my-first']);

      expect(problems).toEqual([]);
    },
    SLOW_MS,
  );
});
