import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import type { CredentialOwner } from '../../../src/modules/oauth/credentials.types.js';
import { startBrowser } from '../../support/people/browser.js';
import { startApp, type TestApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../../support/people/authorization-server.js';
import { beginSetup, newOwner } from '../../support/people/credentials.js';
import { startSite } from '../../support/people/site.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

let app: TestApp;
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let owner: CredentialOwner;
let link: string;
/** Faults of the page: errors, violations of its content security policy, requests to another host. */
let problems: string[];

beforeAll(async () => {
  [app, upstream, server, browser] = await Promise.all([
    startApp({ PORT: String(await freePort()) }),
    startUpstream(),
    startAuthorizationServer({ asks: true }),
    startBrowser(),
  ]);
  guarded = await server.protect(upstream.url);
}, SLOW_MS);

beforeEach(async () => {
  owner = newOwner();
  link = await beginSetup(app, owner, guarded.url);
  context = await browser.newContext();
  page = await context.newPage();
  problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    // The test's authorization server has no icon for its page.
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) problems.push(message.text());
  });
  page.on('request', (request) => {
    const { origin } = new URL(request.url());
    if (origin !== app.url && origin !== server.issuer) problems.push(`asked ${origin}`);
  });
}, SLOW_MS);

afterEach(async () => {
  await context.close();
}, SLOW_MS);

afterAll(async () => {
  await browser.close();
  await Promise.all([app.close(), upstream.close(), server.close()]);
}, SLOW_MS);

const hasToken = async () => (await app.get(CredentialsService).accessToken(owner, guarded.url)) !== null;

describe('the setup page', () => {
  verifies(
    ['oauth:page', 'oauth:flow'],
    'leads with one click to the authorization server, and back to a page that shows the success',
    async () => {
      await page.goto(link);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(`Connect ${new URL(guarded.url).host}`);
      const text = await page.getByRole('main').innerText();
      for (const part of [new URL(guarded.url).host, new URL(server.issuer).host, 'tools:read']) {
        expect(text).toContain(part);
      }
      await page.getByRole('button').click();
      expect(await page.getByRole('heading').innerText()).toBe('Sign in');
      expect(new URL(page.url()).origin).toBe(server.issuer);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByRole('heading', { name: 'Authorized' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/oauth/callback');
      expect(await page.getByRole('status').innerText()).toContain(`Slipway may now use ${new URL(guarded.url).host}`);
      expect(await hasToken()).toBe(true);
      await page.reload();
      expect(await page.getByRole('alert').innerText()).toContain('It was completed before');
      expect(problems.filter((text) => !text.includes('410'))).toEqual([]);
    },
    SLOW_MS,
  );

  verifies(
    'oauth:page',
    'works with the keyboard',
    async () => {
      await page.goto(link);
      await page.keyboard.press('Tab');
      const focused = page.locator(':focus');
      expect(await focused.innerText()).toBe(`Continue to ${new URL(server.issuer).host}`);
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Authorized' }).waitFor();
      expect(await hasToken()).toBe(true);
    },
    SLOW_MS,
  );

  verifies(
    'oauth:page',
    'cannot be framed, by another site or its own',
    async () => {
      const frame = { text: `<!doctype html><title>Trap</title><iframe src="${link}"></iframe>` };
      const trap = await startSite(() => ({ '/': frame }));
      page.removeAllListeners('request');
      const refused = page.waitForEvent('console', (message) =>
        /frame-ancestors|X-Frame-Options/i.test(message.text()),
      );
      await page.goto(trap.origin);
      await refused;
      const inside = page.frames()[1];
      expect(await inside?.getByRole('button').count()).toBe(0);
      await trap.close();
    },
    SLOW_MS,
  );

  verifies(
    'connection:setup:browser',
    'is completed by the browser that submitted it, not by another one with the address',
    async () => {
      await page.goto(link);
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      let callback = `${page.url()}?answer=allow`;
      while (!callback.includes('/oauth/callback')) {
        const { location = '' } = (await context.request.get(callback, { maxRedirects: 0 })).headers();
        callback = new URL(location, server.issuer).href;
      }
      const other = await browser.newContext();
      const stranger = await other.newPage();
      await stranger.goto(callback);
      expect(await stranger.getByRole('alert').innerText()).toContain('Nothing was authorized');
      expect(await hasToken()).toBe(false);
      await other.close();
      await page.goto(callback);
      expect(await page.getByRole('heading').innerText()).toBe('Authorized');
      expect(await hasToken()).toBe(true);
    },
    SLOW_MS,
  );

  it(
    'fits a phone, and can be read in light and dark',
    async () => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: 320, height: 560 });
        await page.goto(link);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
        expect(Number(await page.evaluate(leastContrast))).toBeGreaterThan(4.5);
      }
      expect(problems).toEqual([]);
    },
    SLOW_MS,
  );
});

/** The least contrast between text and what is behind it (WCAG 2.2, 1.4.3), run in the page. */
const leastContrast = `(() => {
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((part) => channel(Number(part) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' && element.parentElement ? behind(element.parentElement) : color;
  };
  const texts = [...document.querySelectorAll('h1, p, strong, dt, dd, code, button')];
  return Math.min(...texts.map((element) => {
    const [low, high] = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
})()`;
