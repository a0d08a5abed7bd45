import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startBrowser } from '../../support/people/browser.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { startSite } from '../../support/people/site.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const SECRET = 'hunter2-and-more';

const configSchema = {
  type: 'object',
  required: ['apiKey', 'region'],
  properties: {
    apiKey: {
      type: 'string',
      title: 'API key',
      description: '<b>From</b> your account page.',
      'x-from': { header: 'X-Given-Key' },
      'x-to': { header: 'X-Key' },
    },
    region: { type: 'string', title: 'Region', enum: ['eu', 'us'] },
    days: { type: 'integer', title: 'Days', default: 3 },
    mail: { type: 'string', title: 'Mail', format: 'email' },
  },
};

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let keyed: Upstream;
let authorization: AuthorizationServer;
let namespace: string;
let server: string;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** Faults of the page: errors, violations of its content security policy. */
let problems: string[];

beforeAll(async () => {
  [upstream, keyed, authorization, browser] = await Promise.all([
    startUpstream(),
    startUpstream({ requireHeaders: { 'x-key': SECRET } }),
    startAuthorizationServer({ asks: true }),
    startBrowser(),
  ]);
  app = await startApp({ PORT: String(await freePort()) });
  owner = await app.account();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { displayName: 'Weather' });
  await uploadIcon(app, owner, server, images['image/svg+xml']);
  const configOrder = ['apiKey', 'region', 'days', 'mail'];
  await releaseServer(app, server, { upstreamUrl: keyed.url, configSchema, configOrder });
}, SLOW_MS);

beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
  problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    const isExpected = message.location().url.endsWith('/favicon.ico') || message.text().includes('422');
    if (message.type() === 'error' && !isExpected) problems.push(message.text());
  });
}, SLOW_MS);

afterEach(() => context.close(), SLOW_MS);

afterAll(async () => {
  await browser?.close();
  await Promise.all([upstream?.close(), keyed?.close(), authorization?.close()]);
}, SLOW_MS);

interface Status {
  state: string;
  setupUrl?: string;
}

async function connect(body: object): Promise<{ path: string; label: string; link: string }> {
  const { path, connectionId } = await createConnection(app, owner, body as { mcpUrl: string }, { namespace });
  const { setupUrl = '' } = await statusOf(path);
  return { path, label: `${namespace}/${connectionId}`, link: setupUrl };
}

async function statusOf(path: string): Promise<Status> {
  return ((await app.as(owner).get(path)).body as { status: Status }).status;
}

const echo = (path: string) => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });

describe('the setup page of a connection', () => {
  verifies(
    ['oauth:flow', 'connection:state:authorized'],
    'leads with one click to the authorization server and back, and the connection works',
    async () => {
      const guarded = await authorization.protect(upstream.url);
      const { path, link } = await connect({ mcpUrl: guarded.url });
      expect(await statusOf(path)).toMatchObject({ state: 'auth_required' });
      await page.goto(link);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(`Connect ${new URL(guarded.url).host}`);
      const text = await page.getByRole('main').innerText();
      for (const part of [new URL(guarded.url).host, new URL(authorization.issuer).host, 'tools:read']) {
        expect(text).toContain(part);
      }
      await page.getByRole('button').click();
      expect(new URL(page.url()).origin).toBe(authorization.issuer);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByRole('heading', { name: 'Authorized' }).waitFor();
      await until(async () => (await statusOf(path)).state === 'connected', 'it is connected');
      expect((await echo(path)).status).toBe(200);
      await page.goto(link);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('This link was used before');
      expect(problems.filter((problem) => !problem.includes('410'))).toEqual([]);
    },
    SLOW_MS,
  );

  verifies(
    ['connection:setup:form', 'connection:state:input-supplied'],
    'is a form that works with the keyboard, with labels, password fields and choices, that shows errors, keeps what was entered and repeats no secret',
    async () => {
      const { path, label, link } = await connect({ server });
      await page.goto(link);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Set up Weather');
      expect(await page.evaluate('document.images[0].naturalWidth')).toBeGreaterThan(0);
      expect(await page.getByRole('main').innerText()).toContain('<b>From</b> your account page.');
      const key = page.getByLabel('API key');
      expect(await key.getAttribute('type')).toBe('password');
      expect(await page.getByLabel('Days (optional)').getAttribute('type')).toBe('number');
      expect(await page.getByLabel('Days (optional)').inputValue()).toBe('3');
      await page.keyboard.press('Tab');
      await page.keyboard.type('typed-first');
      await page.keyboard.press('Tab');
      await page.keyboard.type('us');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      // The browser accepts it.
      await page.keyboard.type('nobody@host');
      await page.keyboard.press('Enter');
      const refusal = page.getByText('It must');
      await refusal.waitFor();
      expect(await page.getByLabel('Mail (optional)').getAttribute('aria-invalid')).toBe('true');
      expect(await page.getByLabel('Mail (optional)').inputValue()).toBe('nobody@host');
      expect(await page.getByLabel('Region').inputValue()).toBe('us');
      expect(await page.getByText('Enter it again').count()).toBe(1);
      expect(await page.content()).not.toContain('typed-first');

      await page.getByLabel('API key').fill(SECRET);
      await page.getByLabel('Region').selectOption('eu');
      await page.getByLabel('Mail (optional)').fill('ann@example.com');
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'Connected' }).waitFor();
      expect(await page.getByRole('main').innerText()).toContain(label);
      expect(await statusOf(path)).toMatchObject({ state: 'connected' });
      expect((await echo(path)).status).toBe(200);
      expect(problems).toEqual([]);
    },
    SLOW_MS,
  );

  verifies(
    ['connection:setup:header', 'connection:setup:names'],
    'accepts a key in another header, and keeps the name of the header after an error',
    async () => {
      const bare = await startUpstream({ requireHeaders: { 'x-api-key': SECRET } });
      const { path, link } = await connect({ mcpUrl: bare.url, name: "Ann's weather" });
      await page.goto(link);
      expect(await page.title()).toBe("Set up Ann's weather · Slipway");
      expect(await page.getByLabel('Header').inputValue()).toBe('Authorization');
      await page.getByLabel('Header').fill('host');
      await page.getByLabel('Key or token (optional)').fill(SECRET);
      await page.keyboard.press('Enter');
      await page.getByText('is set by the service itself').waitFor();
      expect(await page.getByLabel('Header').inputValue()).toBe('host');
      expect(await page.getByLabel('Key or token (optional)').inputValue()).toBe('');
      await page.getByLabel('Header').fill('x-api-key');
      await page.getByLabel('Key or token (optional)').fill(SECRET);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Connected' }).waitFor();
      expect((await echo(path)).status).toBe(200);
      expect(problems).toEqual([]);
      await bare.close();
    },
    SLOW_MS,
  );

  verifies(
    'connection:setup:header',
    'accepts a key if OAuth is not possible',
    async () => {
      const bare = await startUpstream({ requireHeaders: { authorization: `Bearer ${SECRET}` } });
      const { path, link } = await connect({ mcpUrl: bare.url });
      await page.goto(link);
      const field = page.getByLabel('Key or token (optional)');
      expect(await field.getAttribute('type')).toBe('password');
      await field.fill(`Bearer ${SECRET}`);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Connected' }).waitFor();
      expect((await echo(path)).status).toBe(200);
      await bare.close();
    },
    SLOW_MS,
  );

  verifies(
    'connection:setup:browser',
    'cannot be framed, and accepts no form of another site',
    async () => {
      const { path, link } = await connect({ server });
      await page.goto(link);
      const action = link.replaceAll('&', '&amp;');
      const trap = await startSite(() => ({
        '/frame': { text: `<!doctype html><title>Trap</title><iframe src="${action}"></iframe>` },
        '/form': {
          text: `<!doctype html><title>Trap</title><form method="post" action="${action}">
<input name="headers.X-Given-Key" value="theirs"><input name="query.region" value="us"><button>Win</button></form>`,
        },
      }));
      const refused = page.waitForEvent('console', (message) =>
        /frame-ancestors|X-Frame-Options/i.test(message.text()),
      );
      await page.goto(`${trap.origin}/frame`);
      await refused;
      expect(await page.frames()[1]?.getByRole('button').count()).toBe(0);
      await page.goto(`${trap.origin}/form`);
      await page.getByRole('button').click();
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('This is not the browser that began');
      expect(await statusOf(path)).toMatchObject({
        state: 'input_required',
        missing: { headers: ['X-Given-Key'], query: ['region'] },
      });
      await trap.close();
    },
    SLOW_MS,
  );

  verifies(
    'connection:setup:link',
    'has expired for a second browser once the first one finished',
    async () => {
      const { path, link } = await connect({ server });
      const other = await (await browser.newContext()).newPage();
      for (const tab of [page, other]) await tab.goto(link);
      for (const [tab, region] of [
        [page, 'eu'],
        [other, 'us'],
      ] as const) {
        await tab.getByLabel('API key').fill(SECRET);
        await tab.getByLabel('Region').selectOption(region);
        await tab.getByRole('button').click();
      }
      await page.getByRole('heading', { name: 'Connected' }).waitFor();
      await other.getByRole('heading', { name: 'This link was used before' }).waitFor();
      await echo(path);
      expect(keyed.requests.at(-1)?.path).toContain('region=eu');
      await other.context().close();
    },
    SLOW_MS,
  );

  verifies(
    'connection:setup:form',
    'fits a phone in light and dark',
    async () => {
      const { link } = await connect({ server, name: `W${'e'.repeat(60)}ather` });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: 320, height: 560 });
        await page.goto(link);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
      }
    },
    SLOW_MS,
  );
});
