import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { chromium, type Browser, type Locator, type Page, type Response } from 'playwright-core';
import { startEverything, type EverythingServer } from '../support/everything.js';
import { images } from '../support/icons.js';
import { cleanUpPrograms, readySettings, runProgram } from '../support/program.js';
import { startRepositoryHost, type RepositoryHost } from '../support/repository-host.js';
import { skillMd } from '../support/skills.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';
import { zipOf } from '../support/zips.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

const key = `slipway_${randomBytes(32).toString('base64url')}`;

let url: string;
let everything: EverythingServer;
let repositories: RepositoryHost;
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

  async shut(): Promise<void> {
    await this.block.locator('.opblock-summary-control').click();
  }

  /** The value of a path or query parameter as it stands in its field. */
  parameter(name: string): Promise<string> {
    return this.block.locator(`tr[data-param-name="${name}"]`).locator('input, textarea').inputValue();
  }

  get body(): Locator {
    return this.block.locator('.opblock-section-request-body textarea');
  }

  /** Chooses this file wherever the form takes one that it cannot do without. */
  async choose(name: string, buffer: Buffer): Promise<void> {
    const input = this.block.locator('.opblock-section-request-body tr.parameters', { hasText: name });
    await input.locator('input[type="file"]').setInputFiles({ name: `${name}.bin`, mimeType: 'image/png', buffer });
  }

  /** Replaces what only the machine of the test can know, in a body or in a field of a form. */
  async adjust(replacements: Record<string, string>): Promise<void> {
    for (const field of await this.block
      .locator('.opblock-section-request-body textarea, .opblock-section-request-body input[type="text"]')
      .all()) {
      const example = await field.inputValue();
      const adjusted = Object.entries(replacements).reduce((text, [from, to]) => text.replaceAll(from, to), example);
      if (adjusted !== example) await field.fill(adjusted);
    }
  }

  /** Presses Execute, and returns the status the page shows. */
  async press(): Promise<number> {
    await this.block.getByRole('button', { name: 'Execute' }).click();
    const shown = this.block.locator('.live-responses-table tbody .response-col_status');
    return Number(/\d+/.exec(await shown.first().innerText())?.[0]);
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
  const service = runProgram('main.js', await readySettings(key));
  [url, everything, repositories, browser] = await Promise.all([
    service.url(),
    startEverything(),
    startRepositoryHost(),
    chromium.launch({ executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium', args: flags }),
  ]);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([browser?.close(), everything?.close(), repositories?.close()]);
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
    ).toEqual([
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
      'Health',
    ]);
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

  verifies(
    'docs:try-it-out',
    'executes every operation with its examples as they stand',
    async () => {
      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { operationId: string; tags: [string] }>>;
      };
      const operations = Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, { operationId, tags }]) => ({ path, method, operationId, tag: tags[0] })),
      );
      const rank = ({ operationId, method }: (typeof operations)[number]) =>
        method === 'delete' ? 2 : first.includes(operationId) ? 0 : last.includes(operationId) ? 1.5 : 1;
      operations.sort(
        (a, b) =>
          rank(a) - rank(b) ||
          first.indexOf(a.operationId) - first.indexOf(b.operationId) ||
          last.indexOf(a.operationId) - last.indexOf(b.operationId) ||
          (a.method === 'delete' ? b.path.length - a.path.length : 0),
      );
      await authorize();
      const archive = await zipOf({ 'SKILL.md': skillMd() });
      repositories.serve(
        '/acme/skills/archive/main.zip',
        await zipOf({ 'skills-main/code-review/SKILL.md': skillMd() }),
      );
      const replacements = { 'http://127.0.0.1:3001/mcp': everything.url, 'https://github.com': repositories.url };
      const unexpected: string[] = [];
      // Following a log does not end by itself, and the page shows nothing before the end.
      for (const { operationId, tag } of operations.filter((one) => one.operationId !== 'LogStreams_follow')) {
        const operation = new Operation(tag, operationId);
        await operation.open();
        await operation.adjust(replacements);
        if (operationId === 'ServerIcons_upload') await operation.choose('file', images['image/png']);
        if (operationId === 'Skills_upload') await operation.choose('archive', archive);
        const status = await operation.press();
        const wanted = statuses[operationId];
        if (wanted === undefined ? status > 299 : status !== wanted) unexpected.push(`${operationId}: ${status}`);
        if (operationId === 'Publish_publish') await released();
        await operation.shut();
      }
      expect(unexpected).toEqual([]);
    },
    3 * SLOW_MS,
  );
});

/** What has to be there before anything else can be tried, in this order. */
const first = ['Namespaces_claim', 'Servers_create', 'Publish_publish', 'Connections_set', 'Skills_set'];

/** What others would not work after. */
const last = ['ServerDomains_rename', 'Skills_upload'];

/** What a newcomer is answered where the example cannot fit a newcomer's service. */
const statuses: Record<string, number> = {
  // The operator has turned it off.
  Metrics_read: 404,
  // It succeeded.
  Releases_resume: 400,
  // Nobody called its tools.
  ToolSchemas_infer: 404,
  // It has no bundle.
  Bundle_download: 404,
  // The server of the example has no triggers, and is no uplink.
  Triggers_get: 404,
  Triggers_subscribe: 404,
  Triggers_unsubscribe: 404,
  Uplink_paired: 404,
  // It takes a second namespace.
  Servers_transfer: 404,
  // Keys have ids nobody can foresee.
  Accounts_revokeKey: 404,
};

/** Waits for the first release. */
async function released(): Promise<void> {
  const path = `${url}/servers/acme%2Fweather/releases/latest`;
  await until(async () => {
    const answer = await fetch(path, { headers: { authorization: `Bearer ${key}` } });
    const release = (await answer.json()) as { status: string };
    if (release.status !== 'SUCCESS') throw new Error(JSON.stringify(release));
    return true;
  }, 'the release succeeds');
}
