/** An owner adds a public server that wants a login, and has an app connected to it in the end: in a browser alone, step by step. */
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser, Locator } from 'playwright-core';
import { testApp } from '../../support/app.js';
import { letIn } from '../../support/oauth-clients/browser-login.js';
import { startMcpRemote } from '../../support/oauth-clients/mcp-remote.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startBrowser } from '../../support/people/browser.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

/** Presses of Tab after which a page has been walked through. */
const TABS_MAX = 150;

const app = testApp();
let browser: Browser;
let upstream: Upstream;
let authorization: AuthorizationServer;

beforeAll(async () => {
  [browser, upstream, authorization] = await Promise.all([
    startBrowser(),
    startUpstream(),
    startAuthorizationServer({ asks: true }),
  ]);
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await Promise.all([app?.close(), upstream?.close(), authorization?.close()]);
}, SLOW_MS);

describe.each([
  { width: 1280, by: 'mouse', scripts: true },
  { width: 390, by: 'mouse', scripts: false },
  { width: 1280, by: 'keyboard', scripts: true },
])('using the $by at $width px, scripts: $scripts', ({ width, by, scripts }) => {
  verifies(
    'console:journey-owner',
    'an owner adds a server that wants a login, tries it and connects an app, with 16 clicks and 3 fields',
    async () => {
      const [owner, ...colleagues] = [await app.account(), await app.account(), await app.account()];
      const { url } = await authorization.protect(upstream.url);
      const context = await browser.newContext({ viewport: { width, height: 800 }, javaScriptEnabled: scripts });
      const { cookies } = await signedInBrowser(app, owner);
      await context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: app.url })));
      const page = await context.newPage();
      const effort = { clicks: 0, fields: 0 };
      const isFocused = (what: Locator) => what.and(page.locator(':focus')).count();
      const reach = async (what: Locator) => {
        await what.waitFor();
        for (let tabs = 0; (await isFocused(what)) === 0; tabs += 1) {
          if (tabs > TABS_MAX) throw new Error(`No Tab reaches ${what.toString()}`);
          await page.keyboard.press('Tab');
        }
      };
      const click = async (what: Locator, key = 'Enter') => {
        effort.clicks += 1;
        if (by === 'mouse') return what.click();
        await reach(what);
        await page.keyboard.press(key);
      };
      const fill = async (label: string, text: string) => {
        effort.fields += 1;
        const field = page.getByLabel(label, { exact: true });
        if (by === 'mouse') return field.fill(text);
        await reach(field);
        await page.keyboard.type(text);
      };
      const button = (name: string | RegExp) => page.getByRole('button', { name });

      await page.goto(`${app.url}/ui/`);
      await click(page.getByRole('link', { name: 'Add a server' }).first());
      await fill('Address of the MCP server, or a name in the catalogue, or paste an mcp.json', url);
      await click(button('Find'));
      await page.getByText('It wants a login at').waitFor();
      await click(button('Add'));
      await click(button(/^Continue to/));
      await click(button('Deny'));
      await page.getByText('It was refused or cancelled at').waitFor();
      await click(page.getByRole('link', { name: 'Try again' }));
      await click(button(/^Continue to/));
      await click(button('Allow'));

      await page.getByRole('heading', { name: /which tools$/ }).waitFor();
      expect(new URL(page.url()).pathname).toMatch(/^\/ui\/add\/.*\/tools$/);
      await click(button('Tick none'));
      await page.locator('input[name=tool]:checked').first().waitFor({ state: 'detached' });
      const chosen = ['echo', 'fail'];
      for (const name of chosen) await click(page.locator(`input[name=tool][value=${name}]`), 'Space');
      await click(button('Go on: who may call it').first());
      await fill('Accounts', colleagues.map(({ name }) => name).join(', '));
      await click(button('Grant access'));
      await page.getByText('Access is granted.').waitFor();
      expect(await page.locator('html').evaluate((element) => element.scrollWidth)).toBe(width);
      await click(page.getByRole('link', { name: 'Done: connect an app' }));
      await page.getByRole('heading', { name: 'Connect' }).waitFor();
      // The script takes what was done out of the address.
      expect(page.url()).toMatch(scripts ? /127-0-0-1#connect$/ : /\?done=added#connect$/);

      const path = new URL(await page.locator('#address').innerText()).pathname;
      const { body } = await app.as(owner).get(path.replace(/\/mcp$/, ''));
      expect(body.tools.allow.toSorted()).toEqual(chosen.toSorted());
      await click(page.getByRole('link', { name: 'echo', exact: true }));
      effort.fields += 1;
      const message = page.locator('main textarea, main input[type=text]').first();
      if (by === 'mouse') await message.fill('hello from the page');
      else {
        await reach(message);
        await page.keyboard.type('hello from the page');
      }
      await click(button('Call the tool'));
      await page.getByText('In the log:').waitFor();
      expect(await page.getByRole('main').innerText()).toContain('hello from the page');

      for (const colleague of colleagues) {
        const called = await app.as(colleague).post(`${path.replace(/\/mcp$/, '')}/.tools/echo`, { message: 'hi' });
        expect(textOf(called.body)).toContain('hi');
      }
      await page.goto(
        `${app.url}/ui${path.replace(/^\/connect/, '/c').replace(/\/mcp$/, '')}?client=mcp-remote#connect`,
      );
      const config = JSON.parse(await page.locator('#snippet').innerText()) as {
        mcpServers: Record<string, { args: string[] }>;
      };
      const [{ args }] = Object.values(config.mcpServers);
      const remote = await startMcpRemote(args[2], args.slice(3));
      await letIn(page, await remote.opened(), 'none: the owner is signed in');
      await remote.connected;
      expect((await remote.client.listTools()).tools.map(({ name }) => name).sort()).toEqual(chosen.toSorted());
      expect(textOf(await remote.client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toContain('hi');
      expect(effort).toEqual({ clicks: 16, fields: 3 });
      await context.close();
    },
    SLOW_MS,
  );
});
