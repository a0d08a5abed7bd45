import { describe, expect, it } from '@jest/globals';
import { testApp } from '../../support/app.js';
import {
  accountWithPassword,
  openBrowser,
  personAt,
  signedInBrowser,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const PASSWORD = 'correct horse battery';
const NEW = 'staple of the library';

const app = testApp();

async function signIn(name: string, password: string): Promise<BrowserSession | null> {
  const browser = openBrowser(app);
  const { status } = await browser.submit('/login', { name, password });
  return status === 303 ? browser : null;
}

describe('/me', () => {
  verifies('people:sign-out-everywhere', 'shows who is signed in and in how many browsers', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    expect((await browser.get('/me')).text).toMatch(/Browsers<\/h2><span class="badge">1</);
    await signedInBrowser(app, account);
    const { status, text } = await browser.get('/me');
    expect(status).toBe(200);
    expect(text).toContain(`<strong>${account.name}</strong>`);
    expect(text).toMatch(/Browsers<\/h2><span class="badge">2<[^]*This browser/);
    expect(text).toContain('href="./me/access"');
    expect(text).not.toContain('Present password');
    const operator = await signedInBrowser(app, app.operator);
    expect((await operator.get('/me')).text).toContain('the operator of this service');
  });

  verifies('people:sign-out-everywhere', 'leads who is not signed in to the sign-in', async () => {
    const { status, headers } = await openBrowser(app).get('/me');
    expect([status, headers.location]).toEqual([303, './login?next=/me']);
    expect((await openBrowser(app).get('/me', { host: 'evil.example' })).status).toBe(403);
    for (const [path, location] of [
      ['/me/?saved', '../me?saved'],
      ['/me/access/', '../access'],
      ['/login/', '../login'],
    ] as const) {
      expect((await openBrowser(app).get(path)).headers.location).toBe(location);
    }
  });

  verifies('people:password', 'changes the password with the present one, and revokes all other sessions', async () => {
    const { name } = await accountWithPassword(app, PASSWORD);
    const [browser, second] = [await signIn(name, PASSWORD), await signIn(name, PASSWORD)];
    if (!browser || !second) throw new Error('not signed in');
    const change = (fields: Record<string, string>) =>
      browser.submit('/me', { password: NEW, repeated: NEW, ...fields });
    for (const [fields, status, fault] of [
      [{}, 403, 'present password is wrong'],
      [{ old: 'wrong password' }, 403, 'present password is wrong'],
      [{ old: PASSWORD, password: 'short' }, 400, 'at least 12'],
      [{ old: PASSWORD, repeated: 'another one' }, 400, 'differ'],
    ] as [Record<string, string>, number, string][]) {
      const answer = await change(fields);
      expect(answer.status).toBe(status);
      expect(answer.text).toContain(fault);
      expect(answer.text).not.toContain(NEW);
    }
    expect(await personAt(app, second)).not.toBeNull();
    expect((await change({ old: PASSWORD })).headers.location).toBe('./me?saved');
    expect((await browser.get('/me?saved')).text).toContain('Your password is saved');
    expect(await personAt(app, browser)).not.toBeNull();
    expect(await personAt(app, second)).toBeNull();
    expect(await signIn(name, PASSWORD)).toBeNull();
    expect(await signIn(name, NEW)).not.toBeNull();
  });

  verifies('people:key-sets-none', 'a session of a key sets no password, with or without the present one', async () => {
    const account = await accountWithPassword(app, PASSWORD);
    for (const who of [account, await app.account(), app.operator]) {
      const browser = await signedInBrowser(app, who);
      const { status, text } = await browser.submit('/me', { old: PASSWORD, password: NEW, repeated: NEW });
      expect([status, text]).toEqual([403, expect.stringContaining('signed in with an API key')]);
      expect(text).toContain(who === app.operator ? 'npm run keys -- --invite operator' : 'ask the operator');
      expect(await signIn(who.name, NEW)).toBeNull();
    }
    const own = await app.as(app.operator).post('/accounts/me/invitations');
    expect([own.status, own.body]).toEqual([403, { error: expect.stringContaining('--invite operator') }]);
  });

  it('limits guesses of the present password', async () => {
    const { name } = await accountWithPassword(app, PASSWORD);
    const browser = await signIn(name, PASSWORD);
    const guess = () => browser?.submit('/me', { old: 'wrong password', password: NEW, repeated: NEW });
    for (let i = 0; i < 10; i += 1) expect((await guess())?.status).toBe(403);
    expect((await guess())?.status).toBe(429);
  });

  it('changes nothing without a session or the token of the form', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    expect((await browser.post('/me', { old: PASSWORD, password: NEW, repeated: NEW })).status).toBe(403);
    const stranger = openBrowser(app);
    const answer = await stranger.submit('/me', { password: NEW, repeated: NEW }, '/login');
    expect(answer.headers.location).toBe('./login?next=/ui/');
    expect(await signIn(account.name, NEW)).toBeNull();
  });
});
