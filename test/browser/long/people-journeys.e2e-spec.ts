/** An operator invites a person, and the lead of a team opens a server to a guest: in a browser alone, with counted clicks. */
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { testApp, uniqueName } from '../../support/app.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startBrowser } from '../../support/people/browser.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const PASSWORD = 'correct horse battery';

const app = testApp({ ACCOUNT_LIMITS: 'organizations=1' });
let browser: Browser;
let upstream: Upstream;

beforeAll(async () => {
  [browser, upstream] = await Promise.all([startBrowser(), startUpstream()]);
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await Promise.all([app?.close(), upstream?.close()]);
}, SLOW_MS);

/** A person at a page, whose clicks are counted. Choosing an option is a click. */
async function personWith(cookies = new Map<string, string>()) {
  const context = await browser.newContext();
  await context.addCookies([...cookies].map(([name, value]) => ({ name, value, url: app.url })));
  const page: Page = await context.newPage();
  const effort = { clicks: 0 };
  const field = (label: string) => page.getByLabel(label, { exact: true }).locator('visible=true').first();
  return {
    page,
    effort,
    click: async (role: 'link' | 'button' | 'checkbox', name: string | RegExp) => {
      effort.clicks += 1;
      await page
        .getByRole(role, { name, exact: typeof name === 'string' })
        .first()
        .click();
    },
    open: async (summary: string) => {
      effort.clicks += 1;
      await page.locator('summary', { hasText: summary }).first().click();
    },
    choose: async (label: string, value: string) => {
      effort.clicks += 1;
      await field(label).selectOption(value);
    },
    fill: (label: string, text: string) => field(label).fill(text),
  };
}

verifies(
  'people:journey-operator',
  'an operator invites the second person with 2 clicks, who then signs in',
  async () => {
    const operator = await personWith((await signedInBrowser(app, app.operator)).cookies);
    const name = uniqueName('maria');
    await operator.page.goto(`${app.url}/ui/`);
    await operator.click('link', 'People');
    await operator.fill('Account name', name);
    await operator.click('button', 'Create a link');
    const link = await operator.page.locator('#invitation').innerText();
    expect(operator.effort.clicks).toBe(2);

    const invited = await personWith();
    await invited.page.goto(link);
    await invited.fill('New password', PASSWORD);
    await invited.fill('The same again', PASSWORD);
    await invited.click('button', 'Save and sign in');
    await invited.page.getByRole('heading', { name: 'Home' }).waitFor();
    expect(await invited.page.locator('strong').first().textContent()).toBe(name);
    expect(invited.effort.clicks).toBe(1);
    await Promise.all([operator.page.context().close(), invited.page.context().close()]);
  },
  SLOW_MS,
);

verifies(
  'people:journey-lead',
  'a lead creates an organization, invites a guest, and answers the request for one tool: 22 clicks to the first call',
  async () => {
    const [leading, inviting] = [await app.account(), await app.account()];
    const lead = await personWith((await signedInBrowser(app, leading)).cookies);
    const guest = await personWith((await signedInBrowser(app, inviting)).cookies);
    const namespace = uniqueName('team');

    await lead.page.goto(`${app.url}/ui/`);
    await lead.click('link', 'Account');
    await lead.click('link', 'new organization');
    await lead.fill('Name', `${namespace} org`);
    await lead.click('button', 'Create');
    await lead.open('Claim a namespace');
    await lead.fill('Name', namespace);
    await lead.click('button', 'Claim this namespace');
    await lead.page.getByText('The namespace belongs to the organization.').waitFor();
    await lead.choose('Role', 'guest');
    await lead.click('button', 'Create a link');
    const link = await lead.page.locator('#invitation').innerText();

    await guest.page.goto(link);
    await guest.click('button', 'Join');

    await lead.click('link', 'Publish');
    await lead.fill('URL', upstream.url);
    await lead.fill('Name', 'weather');
    await lead.choose('Visibility', 'restricted');
    await lead.click('button', 'Publish');
    await lead.page.locator('.head .badge', { hasText: 'Live' }).waitFor();

    await guest.page.goto(`${app.url}/ui/s/${namespace}--weather`);
    await guest.fill('What you need it for', 'For the report of the month.');
    await guest.click('button', 'Ask for access');
    await guest.page.getByText('Its owner has not answered yet.').waitFor();

    await lead.click('link', 'Home');
    await lead.click('link', /^Answer/);
    await lead.open('Only some tools');
    await lead.click('checkbox', 'echo');
    await lead.fill('Until', '2099-12-31');
    await lead.click('button', `Grant access to ${inviting.name}`);
    await lead.page.getByText('Access is granted.').waitFor();
    expect(await lead.page.getByRole('table', { name: 'Grants' }).innerText()).toMatch(/tools echo[^]*31 Dec 2099/);

    await guest.page.reload();
    await guest.click('button', 'Set up for me');
    await guest.page.getByRole('button', { name: 'Go on: who may call it' }).first().click();
    guest.effort.clicks += 1;
    await guest.click('link', 'Done: connect an app');
    await guest.page.getByText('Works', { exact: true }).first().waitFor();
    await guest.click('link', 'echo');
    await guest.page.locator('main textarea, main input[type=text]').first().fill('hello from the guest');
    await guest.click('button', 'Call the tool');
    await guest.page.getByText('In the log:').waitFor();
    expect(await guest.page.getByRole('main').innerText()).toContain('hello from the guest');
    expect([lead.effort.clicks, guest.effort.clicks]).toEqual([15, 7]);
    await Promise.all([lead.page.context().close(), guest.page.context().close()]);
  },
  SLOW_MS,
);
