import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser } from 'playwright-core';
import { testApp } from '../support/app.js';
import { pathOf, releaseServer } from '../support/database/server-rows.js';
import { createConnection, createServer } from '../support/factories.js';
import { signedInBrowser } from '../support/people/browser-session.js';
import { startBrowser } from '../support/people/browser.js';
import { start } from '../support/upstream/upstream-clients.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const app = testApp();
let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await app?.close();
}, SLOW_MS);

/** A page of a new context that is signed in as an account with a long name, and what goes wrong in it. */
async function signedIn(options: Parameters<Browser['newContext']>[0]) {
  const account = await app.account();
  await app.database.query('UPDATE accounts SET name = $2 WHERE id = $1', [
    account.id,
    `${account.name}${'x'.repeat(200)}`,
  ]);
  const { cookies } = await signedInBrowser(app, account);
  const context = await browser.newContext(options);
  await context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: app.url })));
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  return { page, context, problems, account };
}

describe.each([
  [1280, 'light'],
  [390, 'dark'],
  [320, 'light'],
] as const)('the frame at %i px, %s', (width, colorScheme) => {
  verifies(
    'console:frame',
    'fits, leads on by keyboard and without scripts, and signs out',
    async () => {
      const viewport = { width, height: 800 };
      const { page, context, problems } = await signedIn({ viewport, colorScheme, javaScriptEnabled: width !== 390 });
      for (const path of ['/ui/', '/me', '/me/access']) {
        await page.goto(app.url + path);
        // Without its style the page has the margin that the browser gives it.
        const { height, ...box } = (await page.locator('body').boundingBox()) ?? {};
        expect({ path, ...box }).toEqual({ path, x: 0, y: 0, width });
        for (const button of await page.getByRole('button').all()) {
          const size = await button.boundingBox();
          expect(size?.height).toBeGreaterThanOrEqual(24);
          expect((size?.x ?? 0) + (size?.width ?? 0)).toBeLessThanOrEqual(width);
        }
        expect(height).toBeGreaterThan(100);
      }
      await page.goto(`${app.url}/ui/`);
      await page.keyboard.press('Tab');
      expect(await page.getByRole('link', { name: 'Skip to content' }).boundingBox()).toMatchObject({ x: 0 });
      // The mark, the search and the menu of the account come first.
      for (let stop = 0; stop < 3; stop += 1) await page.keyboard.press('Tab');
      for (const name of ['Home', 'Catalogue', 'Calls', 'Publish', 'Account']) {
        await page.keyboard.press('Tab');
        await page.getByRole('link', { name, exact: true }).and(page.locator(':focus')).waitFor();
      }
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Your account' }).waitFor();
      await page.locator('.menu > summary').click();
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
      expect(problems).toEqual([]);
      await context.close();
    },
    SLOW_MS,
  );
});

verifies(
  'console:as-request',
  'the request that shows the same is copied from the end of a page',
  async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const { page, context, problems } = await signedIn({ permissions });
    await page.goto(`${app.url}/ui/`);
    await page.getByText('View as API request').click();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toBe(
      `curl '${app.env.baseUrl}/accounts/me/usable?section=all' -H "Authorization: Bearer $SLIPWAY_KEY"`,
    );
    expect(problems).toEqual([]);
    await context.close();
  },
  SLOW_MS,
);

longVerifies(
  'console:accessible',
  'axe finds nothing serious on a page, light and dark, and no page scrolls sideways, from 320 px on',
  async () => {
    const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [390, 'dark'],
      [320, 'light'],
    ] as const) {
      // The policy of a page keeps the script of axe out.
      const { page, context, account } = await signedIn({
        viewport: { width, height: 800 },
        colorScheme,
        bypassCSP: true,
      });
      const organization = await app.account({ kind: 'organization' });
      await app.as(app.operator).put(`/accounts/${organization.id}/members/${account.id}`, { role: 'owner' });
      await app.as(account).post(`/accounts/${organization.id}/api-keys`, { name: 'ci' });
      const texts = { displayName: 'x'.repeat(100), description: 'y'.repeat(300) };
      const server = await createServer(app, account, { visibility: 'restricted', ...texts });
      const slug = server.replace('/', '--');
      const warnings = [{ tool: 'a', message: 'z'.repeat(200) }];
      const schema = { type: 'object' };
      await releaseServer(app, server, { tools: [{ name: 'a'.repeat(128), inputSchema: schema }], warnings });
      const asker = await app.account();
      await app.as(asker).post(pathOf(server, '/access-requests'), { text: 'w'.repeat(500) });
      const mcpUrl = 'http://127.0.0.1:9/mcp';
      const { namespace, connectionId } = await createConnection(app, account, { mcpUrl, name: 'n'.repeat(200) });
      const tooled = await createConnection(app, account, { mcpUrl: (await start()).url });
      // A new page has its line here.
      for (const path of [
        '/ui/',
        '/ui/?q=none',
        '/ui/catalogue',
        `/ui/c/${namespace}/${connectionId}?client=mcp-remote`,
        `/ui/n/${namespace}`,
        '/ui/add',
        `/ui/add/${namespace}/${connectionId}/tools`,
        `/ui/add/${tooled.namespace}/${tooled.connectionId}/tools`,
        `/ui/access/connection/${tooled.namespace}%2F${tooled.connectionId}`,
        `/ui/access/server/${encodeURIComponent(server)}`,
        `/ui/access/namespace/${tooled.namespace}?from=add`,
        `/ui/c/${tooled.namespace}/${tooled.connectionId}/tools/echo`,
        `/ui/s/${slug}?client=cursor`,
        `/ui/s/${slug}/logs`,
        `/ui/o/${organization.id}`,
        '/me',
        '/me/access',
        '/docs/guides/clients.md',
        '/nothing/here/at.all',
        '/login',
      ]) {
        if (path === '/login') await context.clearCookies();
        await page.goto(app.url + path);
        const scrolled = await page.evaluate<number>('document.documentElement.scrollWidth');
        await page.addScriptTag({ path: axe });
        const { violations } = await page.evaluate<AxeResults>('axe.run(document, { resultTypes: ["violations"] })');
        const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
        const found = serious.map(({ id, nodes }) => [id, nodes[0]?.html]);
        expect({ path, width, scrolled, found }).toEqual({ path, width, scrolled: width, found: [] });
      }
      await context.close();
    }
  },
  SLOW_MS,
);
