/** An employee signs in at the company, in a browser, on the way from an MCP client to the console. */
import { createHash, randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { startBrowser } from '../../support/people/browser.js';
import { startSite, type Site } from '../../support/people/site.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const port = String(await freePort());
const home = `http://127.0.0.1:${port}`;
const company = await startAuthorizationServer({
  asks: true,
  clients: [{ clientId: 'slipway', clientSecret: 'secret', redirectUri: `${home}/login/oidc/callback` }],
  person: () => ({ sub: 'anna', preferred_username: 'anna@example.com', email: 'anna@example.com' }),
});
const app = testApp({
  PORT: port,
  PUBLIC_URL: home,
  OIDC_ISSUER: company.issuer,
  OIDC_CLIENT_ID: 'slipway',
  OIDC_CLIENT_SECRET: 'secret',
  OIDC_NAME: 'Example Staff',
});
const upstreamIssuer = await startAuthorizationServer({ asks: true });

let browser: Browser;
let upstream: Upstream;
let client: Site;

beforeAll(async () => {
  [browser, upstream, client] = await Promise.all([
    startBrowser(),
    startUpstream(),
    startSite(() => ({}), { text: '<!doctype html><title>Client</title><link rel="icon" href="data:,">' }),
  ]);
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await Promise.all([upstream, client, company, upstreamIssuer].map((each) => each?.close()));
}, SLOW_MS);

/** Registers an MCP client. @returns the address that it opens in the browser, to be authorized for an endpoint */
async function authorizeUrl(resource: string): Promise<string> {
  const response = await fetch(`${home}/.well-known/oauth-authorization-server`);
  const metadata = (await response.json()) as Record<'registration_endpoint' | 'authorization_endpoint', string>;
  const redirectUri = `${client.origin}/callback`;
  const registered = await fetch(metadata.registration_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'App', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }),
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const parameters = {
    ...{ response_type: 'code', client_id, redirect_uri: redirectUri, scope: 'mcp', state: 'its-state', resource },
    code_challenge: createHash('sha256').update(randomBytes(32).toString('base64url')).digest('base64url'),
    code_challenge_method: 'S256',
  };
  return `${metadata.authorization_endpoint}?${new URLSearchParams(parameters).toString()}`;
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

async function expectAccessible(page: Page): Promise<void> {
  await page.addScriptTag({ path: createRequire(import.meta.url).resolve('axe-core/axe.min.js') });
  const { violations } = await page.evaluate<AxeResults>('axe.run(document, { resultTypes: ["violations"] })');
  expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
}

it(
  'leads by the button of the company to the consent, the setup page and the console',
  async () => {
    // The policy of a page keeps the script of axe out.
    const context = await browser.newContext({ bypassCSP: true });
    const page = await context.newPage();
    await page.goto(`${home}/login`);
    await expectAccessible(page);
    await press(page, 'Sign in with Example Staff');
    expect(new URL(page.url()).origin).toBe(company.issuer);
    await press(page, 'Allow');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goto(`${home}/me`);
    await page.getByText('anna@example.com', { exact: true }).first().waitFor();
    await expectAccessible(page);

    const [{ id }] = await app.database.query<[{ id: string }]>(`SELECT id FROM accounts WHERE name = 'anna'`);
    const { body } = await app.as(app.operator).post(`/accounts/${id}/api-keys`, { name: 'test' }).expect(201);
    const anna = { id, name: 'anna', key: (body as { key: string }).key };
    const { url: mcpUrl } = await upstreamIssuer.protect(upstream.url);
    const { path, namespace, connectionId } = await createConnection(app, anna, { mcpUrl });
    const { body: connection } = await app.as(anna).put(`/connect/${namespace}/${connectionId}`, { mcpUrl });
    const { setupUrl } = (connection as { status: { setupUrl: string } }).status;

    await context.clearCookies();
    await page.goto(await authorizeUrl(`${home}${path}/mcp`));
    await press(page, 'Sign in with Example Staff');
    await press(page, 'Allow');
    await page.waitForURL(`${home}/consent/**`);
    expect(await page.getByRole('main').innerText()).toContain('anna');
    await press(page, 'Allow');
    await page.waitForURL(/[?&]code=/);
    expect(new URL(page.url()).origin).toBe(client.origin);

    await page.goto(setupUrl);
    await page.getByRole('button', { name: /^Continue to / }).click();
    await press(page, 'Allow');
    await page.getByRole('heading', { name: 'Authorized' }).waitFor();

    await page.goto(`${home}/ui/`);
    await page.getByText(connectionId).first().waitFor();
    expect(await page.locator('strong').first().textContent()).toBe('anna');
    await context.close();
  },
  SLOW_MS,
);
