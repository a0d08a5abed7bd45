import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { testApp } from '../support/app.js';
import { startBrowser } from '../support/people/browser.js';
import { startSite, type Site } from '../support/people/site.js';
import { verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const PASSWORD = 'correct horse battery';

const app = testApp();
let browser: Browser;
/** Another site, with a form that it sends to us. */
let foreign: Site;

beforeAll(async () => {
  browser = await startBrowser();
  foreign = await startSite(() => ({
    '/': {
      text: `<link rel="icon" href="data:,"><form method="post" action="${app.url}/logout"><button>Win a prize</button></form>`,
    },
  }));
}, SLOW_MS);
afterAll(async () => {
  await browser?.close();
  await Promise.all([app?.close(), foreign?.close()]);
}, SLOW_MS);

verifies(
  ['people:invite', 'people:sign-out-everywhere', 'people:csrf'],
  'a person follows the link, signs out and in again, and another site changes nothing',
  async () => {
    const account = await app.account();
    const { body } = await app.as(app.operator).post(`/accounts/${account.id}/invitations`);
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));

    await page.goto(body.url as string);
    await page.getByLabel('New password').fill(PASSWORD);
    await page.getByLabel('The same again').fill(PASSWORD);
    await page.getByRole('button', { name: 'Save and sign in' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/ui/');
    expect(await page.locator('strong').first().textContent()).toBe(account.name);
    const [session] = (await context.cookies()).filter(({ name }) => name === 'slipway-session');
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/' });

    await page.goto(foreign.origin);
    await page.getByRole('button', { name: 'Win a prize' }).click();
    await page.getByRole('heading', { name: 'This form is no longer valid' }).waitFor();
    await page.goto(`${app.url}/me`);
    await page.locator('.menu > summary').click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();

    await page.goto(app.url);
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Account').fill(account.name);
    await page.getByLabel('Password').fill('something else');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('Account').inputValue()).toBe(account.name);
    expect(await page.getByLabel('Password').inputValue()).toBe('');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goto(app.url);
    await page.getByRole('link', { name: 'Account', exact: true }).click();
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    expect(problems.filter((text) => !/status of 403/.test(text))).toEqual([]);
    await context.close();
  },
  SLOW_MS,
);
