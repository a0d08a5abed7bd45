/** The setup page where a login does not succeed: it tells what happened, and has a way on that a person can take. */
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection } from '../support/factories.js';
import { startBrowser } from '../support/people/browser.js';
import { startQuirky, type Quirk, type QuirkyProvider } from '../support/people/quirky-provider.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

let app: TestApp;
let owner: TestAccount;
let provider: QuirkyProvider;
let browser: Browser;

beforeAll(async () => {
  [app, provider, browser] = await Promise.all([
    startApp({ PORT: String(await freePort()) }),
    startQuirky(),
    startBrowser(),
  ]);
  owner = await app.account();
}, SLOW_MS);

afterAll(async () => {
  await browser?.close();
  await Promise.all([app?.close(), provider?.close()]);
}, SLOW_MS);

const press = (page: Page) => page.locator('button[type=submit]').click();

/** Opens the link again without the quirk, and continues. */
const again = async (page: Page, link: string) => {
  provider.quirk = () => undefined;
  await page.goto(link);
  await press(page);
};

const enterKey = async (page: Page) => {
  await page.fill('[name="key.value"]', 'Bearer at-by-hand');
  await press(page);
};

const redirected =
  (error: string): Quirk =>
  ({ endpoint, params }, answer) => {
    if (endpoint !== 'authorize') return undefined;
    const query = new URLSearchParams({ error, state: params.get('state') ?? '' }).toString();
    return { ...answer, headers: { location: `${params.get('redirect_uri')}?${query}` } };
  };

const deadEnds: [
  name: string,
  quirk: Quirk,
  told: RegExp,
  isAtOnce: boolean,
  on: (page: Page, link: string) => Promise<void>,
][] = [
  [
    'no metadata can be read, because of a firewall',
    ({ endpoint }) =>
      endpoint === 'server' || endpoint === 'openid' ? { status: 403, type: 'text/html', body: '<p>' } : undefined,
    /a firewall or proxy answered/,
    true,
    enterKey,
  ],
  [
    'the metadata are of another resource',
    ({ endpoint }, answer) =>
      endpoint === 'resource' ? { ...answer, body: { resource: 'https://elsewhere.example' } } : undefined,
    /announces the resource/,
    true,
    enterKey,
  ],
  [
    'no client is registered',
    ({ endpoint }) =>
      endpoint === 'register' ? { status: 400, body: { error: 'invalid_client_metadata' } } : undefined,
    /does not know Slipway yet/,
    false,
    async (page) => {
      await page.fill('[name="client.id"]', 'by-hand');
      await press(page);
    },
  ],
  ['the parameter "resource" is refused', redirected('invalid_target'), /did not give Slipway access/, false, again],
  ['the authorization server fails', redirected('server_error'), /in a few minutes/, false, again],
  [
    'the code is refused',
    ({ endpoint }) => (endpoint === 'token' ? { status: 400, body: { error: 'invalid_grant' } } : undefined),
    /Open the link again/,
    false,
    again,
  ],
  [
    'the token endpoint is away',
    ({ endpoint }) => (endpoint === 'token' ? { status: 503, body: '' } : undefined),
    /did not answer Slipway/,
    false,
    again,
  ],
];

describe('the setup page where', () => {
  for (const [name, quirk, told, isAtOnce, on] of deadEnds) {
    verifies(
      'setup:dead-end',
      `${name} says so, and leads on`,
      async () => {
        await app.database.query('DELETE FROM oauth_clients');
        provider.quirk = quirk;
        const { path } = await createConnection(app, owner, { mcpUrl: provider.mcpUrl });
        const link = (await app.as(owner).get(path)).body.status.setupUrl as string;
        const context = await browser.newContext();
        const page = await context.newPage();
        await page.goto(link);
        if (!isAtOnce) await press(page);
        expect(await page.innerText('body')).toMatch(told);
        await on(page, link);
        expect(await page.innerText('h1')).toMatch(/^(Authorized|Connected)/);
        await context.close();
        expect((await app.as(owner).post(`${path}/.tools/run`, {})).status).toBe(200);
      },
      SLOW_MS,
    );
  }
});
