import { expect } from '@jest/globals';
import { testApp } from '../../support/app.js';
import { openBrowser, signedInBrowser } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();

verifies('people:start-page', 'is a page for browsers, with ways on that exist, and JSON for programs', async () => {
  const browser = openBrowser(app);
  const { status, headers, text } = await browser.get('/');
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    vary: expect.stringContaining('Accept'),
  });
  const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link]) => link).filter((link) => link !== 'data:,');
  expect(links).toEqual(expect.arrayContaining(['login', 'docs', 'docs/guides/people-and-keys.md']));
  expect(text).toContain('>People and keys</a>');
  for (const link of links) expect([link, (await browser.get(`/${link}`)).status]).toEqual([link, 200]);
  expect((await browser.get('/', { accept: '*/*' })).body).toMatchObject({ name: 'Slipway', docs: '/docs' });
});

verifies('people:start-page', 'leads on who is signed in, and under a foreign name nobody', async () => {
  const account = await app.account();
  const browser = await signedInBrowser(app, account);
  const { status, headers } = await browser.get('/');
  expect([status, headers.location]).toEqual([303, './ui/']);
  expect((await browser.get('/', { accept: '*/*' })).body).toMatchObject({ name: 'Slipway' });
  const rebound = await browser.get('/', { host: 'evil.example' });
  expect(rebound.status).toBe(200);
  expect(rebound.text).not.toContain(account.name);
});
