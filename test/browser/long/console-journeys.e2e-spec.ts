/** What a person does from the first link to a tool that works, in a real browser, with the number of clicks and fields that it takes. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import { testApp, uniqueName } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { letIn } from '../../support/oauth-clients/browser-login.js';
import { startMcpRemote } from '../../support/oauth-clients/mcp-remote.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startBrowser } from '../../support/people/browser.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const app = testApp();
let browser: Browser;
let upstream: Upstream;

beforeAll(async () => {
  [browser, upstream] = await Promise.all([startBrowser(), startUpstream()]);
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await Promise.all([app?.close(), upstream?.close()]);
}, SLOW_MS);

/** A person at a page, whose clicks and fields are counted. */
async function personWith(cookies = new Map<string, string>()) {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
  await context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: app.url })));
  const page: Page = await context.newPage();
  const effort = { clicks: 0, fields: 0 };
  return {
    page,
    effort,
    click: async (what: Locator) => {
      effort.clicks += 1;
      await what.click();
    },
    fill: async (label: string, text: string) => {
      effort.fields += 1;
      await page.getByLabel(label, { exact: true }).fill(text);
    },
  };
}

verifies(
  'console:journey-colleague',
  'a colleague who is invited calls a tool from an app with 5 clicks and 3 fields, and finds the call on Home',
  async () => {
    const [owner, colleague] = [await app.account(), await app.account()];
    const { namespace, connectionId, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    await app.as(owner).post(`${path}/grants`, { account: colleague.id, level: 'call' });
    const { body: invitation } = await app.as(app.operator).post(`/accounts/${colleague.id}/invitations`);

    const { page, effort, click, fill } = await personWith();
    await page.goto(invitation.url as string);
    await fill('New password', 'correct horse battery');
    await fill('The same again', 'correct horse battery');
    await click(page.getByRole('button', { name: 'Save and sign in' }));
    const row = page.getByRole('row').filter({ hasText: `${namespace}/${connectionId}` });
    expect(await row.innerText()).toContain('Not yet');
    await click(row.getByRole('link', { name: 'Connect' }));
    effort.fields += 1;
    await click(page.getByRole('link', { name: /^mcp-remote/ }));
    const snippet = page.locator('#snippet');
    const copy = page.getByRole('button', { name: 'Copy' }).nth(1);
    await snippet.waitFor();
    await click(copy);
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).toBe(await snippet.innerText());
    const [{ command, args }] = Object.values(
      (JSON.parse(copied) as { mcpServers: Record<string, { command: string; args: string[] }> }).mcpServers,
    );
    expect([command, ...args.slice(0, 3)]).toEqual(['npx', '-y', 'mcp-remote', `${app.url}${path}/mcp`]);

    // The program opens its page in the browser in which the colleague is signed in.
    const remote = await startMcpRemote(args[2], args.slice(3));
    effort.clicks += 1;
    const { asked } = await letIn(page, await remote.opened(), 'none: the colleague is signed in');
    expect(asked).toContain(connectionId);
    await remote.connected;
    expect((await remote.client.listTools()).tools.map(({ name }) => name)).toContain('echo');
    const called = await remote.client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    expect(textOf(called)).toContain('hi');

    await page.goto(app.url);
    const use = await until(async () => {
      await page.reload();
      return /UTC\s+with (.*)/.exec(await row.innerText())?.[1];
    }, 'Home shows the call');
    expect(use).toMatch(/^desktop \(via mcp-remote [\d.]+\)$/);
    expect(effort).toEqual({ clicks: 5, fields: 3 });
    await page.context().close();
  },
  SLOW_MS,
);

verifies(
  'console:journey-access',
  'somebody asks for access with 5 clicks and a sentence, its owner grants it with 2, and a connection to it works',
  async () => {
    const [owner, asker] = [await app.account(), await app.account()];
    const word = uniqueName('word');
    const name = await createServer(app, owner, { visibility: 'restricted', displayName: word });
    await releaseServer(app, name, { upstreamUrl: upstream.url, tools: [{ name: 'echo', inputSchema: {} }] });
    const asking = await personWith((await signedInBrowser(app, asker)).cookies);
    const granting = await personWith((await signedInBrowser(app, owner)).cookies);

    await asking.page.goto(`${app.url}/ui/`);
    await asking.click(asking.page.getByRole('navigation').getByRole('link', { name: 'Catalogue' }));
    const card = asking.page.getByRole('region', { name: word });
    await asking.fill('What you need it for', 'For the report of the month.');
    await asking.click(card.getByRole('button', { name: 'Ask for access' }));
    await asking.page.getByText('Its owner has not answered yet.').waitFor();
    expect(await asking.page.getByRole('status').innerText()).toContain('You asked for access');

    await granting.page.goto(`${app.url}/ui/`);
    const needs = granting.page.getByRole('region', { name: 'Needs you' });
    expect(await needs.innerText()).toMatch(new RegExp(`${asker.name}[^]*${name}[^]*“For the report of the month.”`));
    await granting.click(needs.getByRole('link', { name: /^Answer/ }));
    await granting.click(granting.page.getByRole('button', { name: `Grant access to ${asker.name}` }));
    await granting.page.getByRole('status').waitFor();
    await granting.page.goto(`${app.url}/ui/`);
    expect(await needs.count()).toBe(0);

    await asking.page.reload();
    await asking.page.getByRole('heading', { name: 'Connect' }).waitFor();
    await asking.click(asking.page.getByRole('button', { name: 'Set up for me' }));
    await asking.click(asking.page.getByRole('button', { name: 'Go on: who may call it' }).first());
    await asking.click(asking.page.getByRole('link', { name: 'Done: connect an app' }));
    await asking.page.getByText('Works', { exact: true }).first().waitFor();
    const address = new URL(await asking.page.locator('#address').innerText());
    const { body } = await app
      .as(asker)
      .post(`${address.pathname.replace(/\/mcp$/, '')}/.tools/echo`, { message: 'hi' });
    expect(textOf(body)).toContain('hi');
    expect([asking.effort, granting.effort]).toEqual([
      { clicks: 5, fields: 1 },
      { clicks: 2, fields: 0 },
    ]);
    await Promise.all([asking.page.context().close(), granting.page.context().close()]);
  },
  SLOW_MS,
);

it(
  'an owner finds who called what from Home with 3 clicks and a field',
  async () => {
    const [owner, caller] = [await app.account(), await app.account()];
    const { namespace, connectionId, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    await app.as(owner).post(`${path}/grants`, { account: caller.id, level: 'call' });
    for (const account of [owner, caller]) await app.as(account).post(`${path}/.tools/echo`, { message: 'hi' });
    await until(async () => (await app.as(owner).get('/calls')).body.calls.length === 2, 'both calls are listed');

    const { page, effort, click, fill } = await personWith((await signedInBrowser(app, owner)).cookies);
    await page.goto(`${app.url}/ui/`);
    await click(page.getByRole('navigation').getByRole('link', { name: 'Calls' }));
    await fill('Account', caller.name);
    await click(page.getByRole('button', { name: 'Apply' }));
    const row = page.getByRole('row').filter({ hasText: `${namespace}/${connectionId}` });
    expect(await row.count()).toBe(1);
    await click(row.getByRole('link', { name: 'echo' }));
    const call = page.getByRole('region', { name: 'Call of echo' });
    expect(await call.innerText()).toContain(caller.name);
    expect(effort).toEqual({ clicks: 3, fields: 1 });
    await page.context().close();
  },
  SLOW_MS,
);
