import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { Logs } from '../../src/extension.js';
import { ServerLogsPageController } from '../../src/extensions/author-pages/server-logs.controller.js';
import { invocationId } from '../../src/modules/logs/ingest/ingest-limits.js';
import { ServersService } from '../../src/modules/servers/servers.service.js';
import { testApp } from '../support/app.js';
import { createServer } from '../support/factories.js';
import { signedInBrowser } from '../support/people/browser-session.js';
import { startBrowser } from '../support/people/browser.js';
import { until } from '../support/until.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

/** Clicks of the journey below, from the first page on. */
const CLICKS = 13;

const module = (body: string) => ({ name: 'module.js', mimeType: 'text/javascript', buffer: Buffer.from(body) });

const BROKEN = 'throw new Error("WEATHER_DB is not reachable"); export default () => {};';
const REPAIRED = `export default { async fetch(request) {
  const { id, method } = await request.json();
  if (id === undefined) return new Response(null, { status: 202 });
  const result = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'weather', version: '1' } },
    'tools/list': { tools: [{ name: 'forecast', description: 'Returns the forecast.', inputSchema: { type: 'object' } }] },
  }[method] ?? {};
  return Response.json({ jsonrpc: '2.0', id, result });
} };`;

const app = testApp();
let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await app?.close();
}, SLOW_MS);

it(
  `publishes a module, sees it fail, repairs it, publishes it and shares it in ${CLICKS} clicks`,
  async () => {
    const author = await app.account();
    const { cookies } = await signedInBrowser(app, author);
    const context = await browser.newContext();
    await context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: app.url })));
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    let clicks = 0;
    const click = async (role: 'link' | 'button', name: string) => {
      clicks += 1;
      await page.getByRole(role, { name, exact: true }).first().click();
    };
    /** Choosing a file is a click on the field. */
    const choose = async (body: string) => {
      clicks += 1;
      await page.getByLabel('File').setInputFiles(module(body));
    };
    /** The script of the page reads it again until then. */
    const waitForState = (text: string) => page.locator('.head .badge', { hasText: text }).waitFor();

    await page.goto(`${app.url}/ui/`);
    await click('link', 'Publish');
    await click('link', 'File');
    await choose(BROKEN);
    clicks += 1;
    await page.getByLabel('Name').fill('weather');
    await click('button', 'Publish');
    await waitForState('Failed');
    await page.getByRole('alert').getByText('WEATHER_DB is not reachable').waitFor();

    // The author finds it again on the first page.
    await click('link', 'Home');
    await click('link', 'See why: weather');
    await click('link', 'Publish again');
    await choose(REPAIRED);
    await click('button', 'Publish a release');
    await waitForState('Live');
    await page.getByText('forecast', { exact: true }).waitFor();

    await click('link', 'Share it');
    clicks += 1;
    await page.getByRole('combobox', { name: 'Visibility' }).selectOption('public');
    await click('button', 'Save the visibility');
    await page.getByText('The settings are saved.').waitFor();
    expect(clicks).toBe(CLICKS);
    expect(problems).toEqual([]);

    const colleague = await app.account();
    await until(async () => {
      const { body } = await app.as(colleague).get('/servers?q=weather');
      return (body as { servers: { qualifiedName: string }[] }).servers.some(({ qualifiedName }) =>
        qualifiedName.endsWith('/weather'),
      );
    }, 'a colleague finds the server');
    await context.close();
  },
  SLOW_MS,
);

it(
  'follows a busy log by a stream of its own origin, without reloading, until it is paused',
  async () => {
    const author = await app.account();
    const name = await createServer(app, author);
    const [namespace, server] = name.split('/');
    const ref = await app.get(ServersService).find({ namespace, name: server }, null);
    const send = async (round: number) => {
      const at = Date.now();
      const lines = Array.from({ length: 200 }, (_, line) => ({
        at,
        level: 'info',
        message: `round ${round} line ${line}`,
      }));
      const id = invocationId(ref.id, `round ${round}`, new Date(at));
      const request = { id, at, method: 'POST', url: '/mcp', toolName: 'report', status: 200 };
      await app.get(Logs).ingest(ref, [{ ...request, outcome: 'ok', lines, exceptions: [] }]);
    };
    const { cookies } = await signedInBrowser(app, author);
    const context = await browser.newContext();
    await context.addCookies([...cookies].map(([cookie, value]) => ({ name: cookie, value, url: app.url })));
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    let loads = 0;
    page.on('load', () => (loads += 1));
    await page.goto(`${app.url}/ui/s/${name.replace('/', '--')}/logs`);
    await page.getByRole('link', { name: 'Follow' }).click();
    await page.getByText('No lines yet').waitFor();
    const opened = loads;
    const streamed = page.waitForResponse((response) => response.url().includes('/logs/stream'));
    for (let round = 1; round <= 3; round += 1) {
      await send(round);
      await page.getByText(`round ${round} line 199`).waitFor();
    }
    expect((await streamed).headers()['content-type']).toContain('text/event-stream');
    expect(await page.locator('.log li').count()).toBe(200);
    expect(loads).toBe(opened);
    await page.getByRole('link', { name: 'Pause' }).click();
    await page.getByRole('search', { name: 'Logs' }).waitFor();
    expect(await page.locator('[data-live]').count()).toBe(0);
    await until(() => streamsOf() === 0, 'the stream ends with its page');
    expect(problems).toEqual([]);
    await context.close();
  },
  SLOW_MS,
);

const streamsOf = () => (app.get(ServerLogsPageController) as unknown as { streams: { size: number } }).streams.size;
