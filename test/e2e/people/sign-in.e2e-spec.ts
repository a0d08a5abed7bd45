import { request } from 'node:http';
import { beforeAll, describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { PasswordsService } from '../../../src/modules/people/passwords.service.js';
import { testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import {
  accountWithPassword,
  formTokenIn,
  openBrowser,
  personAt,
  SESSION_COOKIE as COOKIE,
  signedInBrowser,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { longIt } from '../../support/jest/globals.mjs';
import { verifies } from '../../support/verifies.js';

const PASSWORD = 'correct horse battery';

const app = testApp();
let other: TestApp;

beforeAll(async () => {
  other = await app.sibling();
});

/** An account that can sign in with {@link PASSWORD}. */
const person = () => accountWithPassword(app, PASSWORD);

/** The person that a process takes the browser for. */
const current = (browser: BrowserSession, at = app) => personAt(at, browser);

const who = (account: TestAccount): unknown =>
  expect.objectContaining({
    accountId: account.id,
    accountName: account.name,
    isOperator: false,
    keyId: expect.any(String),
  });

describe('signing in', () => {
  verifies('people:sign-in', 'with a password and with a key without scopes begins a session', async () => {
    const account = await person();
    const ways: Record<string, string>[] = [{ name: account.name, password: PASSWORD }, { key: account.key }];
    for (const fields of ways) {
      const browser = openBrowser(app);
      expect(await current(browser)).toBeNull();
      const answer = await browser.submit('/login', fields);
      expect(answer.status).toBe(303);
      expect(answer.headers.location).toBe('./ui/');
      expect(String(answer.headers['set-cookie'])).toMatch(
        /^slipway-session=[\w-]{43}; Max-Age=\d+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
      );
      expect(await current(browser)).toEqual(who(account));
      expect((await browser.get('/login?next=/me/access')).headers.location).toBe('./me/access');
    }
  });

  verifies('people:logins', 'shows the first 200 characters of what a browser says it is', async () => {
    const account = await person();
    const browser = openBrowser(app);
    const token = formTokenIn(await browser.get('/login'));
    const fields = { 'form-token': token, key: account.key };
    expect((await browser.post('/login', fields, { 'user-agent': 'x'.repeat(2_000) })).status).toBe(303);
    const { body } = await app.as(account).get('/accounts/me/logins');
    expect(body.logins.map(({ name }: { name: string }) => name)).toContain('x'.repeat(200));
  });

  it('has the prefix and the attribute that need https there', async () => {
    const account = await person();
    const published = await app.sibling({ PUBLIC_URL: 'https://slipway.example' });
    const browser = openBrowser(published);
    const answer = await browser.submit('/login', { key: account.key });
    expect(String(answer.headers['set-cookie'])).toMatch(
      /^__Host-slipway-session=.*; Path=\/; .*; Secure; SameSite=Lax$/,
    );
    expect(await current(browser, published)).toEqual(who(account));
    await published.close();
  });

  it('has the path of PUBLIC_URL, which a 404 names where the proxy did not take it off', async () => {
    const published = await app.sibling({ PUBLIC_URL: 'https://slipway.example/tools' });
    const answer = await openBrowser(published).get('/login');
    expect(String(answer.headers['set-cookie'])).toMatch(/^__Secure-slipway-form=.*; Path=\/tools; .*; Secure/);
    for (const path of ['/tools/servers/x', '/tools/docs/a', '/tools/connect/acme/x']) {
      const { status, headers } = await published.as(app.operator).get(path);
      expect([path, status, headers['slipway-hint']]).toEqual([path, 404, expect.stringContaining('must take it off')]);
    }
    await published.close();
  });

  it('refuses a key with scopes, and an unknown one', async () => {
    const account = await app.account();
    const made = await app.as(account).post('/accounts/me/api-keys', { name: 'agent', scopes: ['manage'] });
    for (const [key, fault] of [
      [made.body.key as string, 'may do only a part'],
      [`slipway_${'a'.repeat(43)}`, 'not valid'],
      ['nonsense', 'not valid'],
    ] as const) {
      const browser = openBrowser(app);
      const answer = await browser.submit('/login', { key });
      expect(answer.status).toBe(403);
      expect(answer.text).toContain(fault);
      expect(answer.text).not.toContain(key);
      expect(browser.cookies.has(COOKIE)).toBe(false);
    }
  });

  verifies(
    'people:enumeration',
    'answers the same for an unknown, a disabled and a passwordless account, unless the password is right',
    async () => {
      const [known, disabled, keyed] = [await person(), await person(), await app.account()];
      await app.database.query('UPDATE accounts SET disabled_at = now() WHERE id = $1', [disabled.id]);
      const answers = [];
      for (const [name, password] of [
        [known.name, 'wrong password'],
        [disabled.name, 'wrong password'],
        [keyed.name, PASSWORD],
        [uniqueName('nobody'), PASSWORD],
        [`a\0b`, PASSWORD],
        ['a'.repeat(300), PASSWORD],
        [known.name, 'x'.repeat(5_000)],
      ] as const) {
        const browser = openBrowser(app);
        const { status, headers, text } = await browser.submit('/login', { name, password });
        const plain = text
          .replace(/( name="name"[^>]* value=")[^"]*/, '$1')
          .replace(/(form-token" value=")[^"]*/g, '$1');
        for (const varying of ['date', 'x-request-id', 'ratelimit', 'content-length']) delete headers[varying];
        answers.push({ status, headers, plain });
        expect(text).not.toContain(password);
      }
      const ended = await openBrowser(app).submit('/login', { name: disabled.name, password: PASSWORD });
      expect([ended.status, ended.text]).toEqual([
        403,
        expect.stringContaining('This account is disabled, or an organization'),
      ]);
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect(answers[0]).toMatchObject({
        status: 403,
        plain: expect.stringContaining('account or the password is wrong'),
      });
    },
  );

  verifies('people:guesses', 'refuses the 11th attempt for a name, whether an account has it or not', async () => {
    const known = await person();
    for (const name of [known.name, uniqueName('nobody')]) {
      const browser = openBrowser(app);
      const token = formTokenIn(await browser.get('/login'));
      const guess = (password: string) => browser.post('/login', { 'form-token': token, name, password });
      // At the same moment: what is under way counts as well.
      const statuses = (await Promise.all(Array.from({ length: 14 }, () => guess('wrong')))).map(
        ({ status }) => status,
      );
      expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(4);
      const refused = await guess(PASSWORD);
      expect(refused.status).toBe(429);
      expect(refused.headers['retry-after']).toBe('900');
      expect(refused.text).toContain('Too many attempts');
      expect(refused.text).toContain(`value="${name}"`);
    }
    expect((await openBrowser(app).submit('/login', { key: known.key })).status).toBe(303);
  });

  verifies('people:turns', 'is refused to nobody else while one address guesses', async () => {
    const alice = await person();
    const mallory = openBrowser(app);
    const token = formTokenIn(await mallory.get('/login'));
    const cookie = [...mallory.cookies].map((pair) => pair.join('=')).join('; ');
    const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' };
    const guess = () =>
      new Promise<number>((resolve, reject) => {
        const form = { 'form-token': token, name: uniqueName('nobody'), password: 'wrong' };
        const sent = { method: 'POST', localAddress: '127.0.0.2', headers };
        request(`${app.url}/login`, sent, (answer) => resolve(answer.resume().statusCode ?? 0))
          .on('error', reject)
          .end(new URLSearchParams(form).toString());
      });
    const browser = openBrowser(app);
    const hers = { 'form-token': formTokenIn(await browser.get('/login')), name: alice.name, password: PASSWORD };
    let answered = 0;
    const guesses = Array.from({ length: 40 }, () => guess().finally(() => answered++));
    expect((await browser.post('/login', hers)).status).toBe(303);
    // A place is hers at once, although they came first.
    expect(answered).toBeLessThan(20);
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([403]));
  });

  it('limits wrong passwords of one address', async () => {
    const strict = await app.sibling({ AUTH_FAILURES_MAX: '3' });
    const known = await person();
    const browser = openBrowser(strict);
    const guess = (name: string, password: string) => browser.submit('/login', { name, password });
    for (let i = 0; i < 3; i += 1) expect((await guess(uniqueName('nobody'), 'wrong')).status).toBe(403);
    expect((await guess(known.name, PASSWORD)).status).toBe(429);
    await strict.close();
  });

  longIt('signs 200 people of one network in, whoever else guesses, and rejects the 201st password', async () => {
    const passwords = app.get(PasswordsService);
    const check = (address: string) => passwords.check({ address }, uniqueName('nobody'), 'wrong');
    const results = await Promise.allSettled([
      ...Array.from({ length: 16 }, (_, n) => Array.from({ length: 13 }, () => check(`2001:db8:1:${n}::1`))).flat(),
      ...Array.from({ length: 20 }, () => check('192.0.2.1')),
    ]);
    // On a busy machine some wait for too long, which is another error.
    const isRefused = (result: (typeof results)[number]) =>
      result.status === 'rejected' && (result.reason as { kind?: string }).kind === 'rate_limited';
    expect(results.map(isRefused).lastIndexOf(true)).toBe(207);
    expect(results.filter(isRefused)).toHaveLength(8);
  });

  verifies('login:redirect', 'redirects to Slipway pages only', async () => {
    const account = await app.account();
    for (const [next, location] of [
      ['/consent/abc?x=1', './consent/abc?x=1'],
      ['/setup/acme', './setup/acme'],
      ['//evil.example', './ui/'],
      ['https://evil.example/', './ui/'],
      ['/\\evil.example', './ui/'],
      ['/%2Fevil.example', './ui/'],
    ] as const) {
      const browser = openBrowser(app);
      const opened = await browser.get(`/login?next=${encodeURIComponent(next)}`);
      expect(opened.text.includes('evil')).toBe(false);
      const fields = { 'form-token': formTokenIn(opened), key: account.key, next };
      expect((await browser.post('/login', fields)).headers.location).toBe(location);
    }
  });

  verifies('login:fixation', 'has a new secret and id each time, and revokes the previous session', async () => {
    const account = await app.account();
    const browser = openBrowser(app);
    const planted = 'p'.repeat(43);
    browser.cookies.set(COOKIE, planted);
    const fields = { 'form-token': formTokenIn(await browser.get('/login')), key: account.key };
    await browser.post('/login', fields);
    const first = { secret: browser.cookies.get(COOKIE), person: await current(browser) };
    expect(first.secret).not.toBe(planted);
    const old = openBrowser(app, new Map(browser.cookies));
    await browser.post('/login', { ...fields, 'form-token': formTokenIn(await browser.get('/me')) });
    expect(browser.cookies.get(COOKIE)).not.toBe(first.secret);
    expect((await current(browser))?.keyId).not.toBe(first.person?.keyId);
    expect(await current(old)).toBeNull();
    const rows = await app.database.query('SELECT 1 FROM sessions WHERE account_id = $1', [account.id]);
    expect(rows).toHaveLength(1);
  });
});

describe('a session', () => {
  verifies('people:processes', 'is known to every process, and ends in all of them immediately', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    expect(await current(browser, other)).toEqual(who(account));
    const copy = openBrowser(app, new Map(browser.cookies));
    const page = { 'form-token': formTokenIn(await browser.get('/me')) };
    expect((await browser.at(other).post('/logout', page)).headers.location).toBe('./login');
    expect(browser.cookies.has(COOKIE)).toBe(false);
    expect(await current(copy)).toBeNull();
    expect(await current(copy, other)).toBeNull();
  });

  verifies('people:sign-out-everywhere', 'ends in all browsers of the person', async () => {
    const account = await app.account();
    const [one, two, foreign] = await Promise.all([
      signedInBrowser(app, account),
      signedInBrowser(other, account),
      signedInBrowser(app, await app.account()),
    ]);
    await one.post('/logout', { everywhere: 'yes', 'form-token': formTokenIn(await one.get('/me')) });
    expect(await current(two)).toBeNull();
    expect(await current(foreign)).not.toBeNull();
  });

  it('ends with its time, and lives on while it is used', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    const set = (column: string, value: string) =>
      app.database.query(`UPDATE sessions SET ${column} = now() + $2::interval WHERE account_id = $1`, [
        account.id,
        value,
      ]);
    const left = async () => {
      const [row] = await app.database.query<{ hours: number }[]>(
        'SELECT extract(epoch FROM expires_at - now()) / 3600 AS hours FROM sessions WHERE account_id = $1',
        [account.id],
      );
      return Math.round(row?.hours ?? 0);
    };
    await set('expires_at', '5 hours');
    await current(browser);
    expect(await left()).toBe(5);
    await set('last_used_at', '-61 minutes');
    await current(browser);
    expect(await left()).toBe(14 * 24);
    await set('expires_at', '-1 second');
    expect(await current(browser)).toBeNull();
  });

  verifies('people:key-ends', 'ends when the key that it began with is revoked or expires', async () => {
    const account = await app.account();
    const keys = await Promise.all(
      ['a', 'b'].map((name) =>
        app
          .as(account)
          .post('/accounts/me/api-keys', { name })
          .then(({ body }) => body),
      ),
    );
    const [revoked, expired] = await Promise.all(keys.map(({ key }: { key: string }) => signedInBrowser(app, { key })));
    await app.as(account).delete(`/accounts/me/api-keys/${keys[0].id}`);
    await app.database.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [keys[1].id]);
    expect(await current(revoked)).toBeNull();
    expect(await current(expired)).toBeNull();
  });

  it('ends with its account', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    await app.database.query('UPDATE accounts SET disabled_at = now() WHERE id = $1', [account.id]);
    expect(await current(browser)).toBeNull();
  });

  verifies('people:pages-only', 'opens neither REST nor MCP nor run endpoints', async () => {
    const browser = await signedInBrowser(app, await app.account());
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const path of [
      '/accounts/me',
      '/servers/acme/weather',
      '/connect/acme',
      '/connect/acme/.mcp',
      '/acme/x/mcp',
    ]) {
      expect([path, (await supertest(app.url).get(path).set('cookie', cookie)).status]).toEqual([path, 401]);
    }
    for (const path of ['/connect/acme/.mcp', '/connect/acme/x/mcp', '/acme/x/mcp', '/run/acme', '/run/acme/mcp']) {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      expect([path, (await supertest(app.url).post(path).set('cookie', cookie).send(body)).status]).toEqual([
        path,
        401,
      ]);
    }
  });

  it('keeps 200 concurrent sign-ins from stopping the service, and an account from having more than 100', async () => {
    const account = await app.account();
    const browser = openBrowser(app);
    const token = formTokenIn(await browser.get('/login'));
    const cookies = new Map(browser.cookies);
    const answers = await Promise.all(
      Array.from({ length: 200 }, () =>
        openBrowser(app, new Map(cookies)).post('/login', { 'form-token': token, key: account.key }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([303]));
    expect((await app.as(account).get('/accounts/me')).status).toBe(200);
    await signedInBrowser(app, account);
    const rows = await app.database.query('SELECT 1 FROM sessions WHERE account_id = $1', [account.id]);
    expect(rows).toHaveLength(100);
  });
});

describe('forms', () => {
  verifies('people:csrf', 'need the token of their browser, and no header of another site', async () => {
    const account = await app.account();
    const browser = openBrowser(app);
    const own = formTokenIn(await browser.get('/login'));
    const foreign = formTokenIn(await openBrowser(app).get('/login'));
    const send = (token: string | null, headers = {}) =>
      browser.post('/login', { key: account.key, ...(token !== null && { 'form-token': token }) }, headers);
    for (const token of [null, '', 'x', foreign]) expect((await send(token)).status).toBe(403);
    expect((await send(own, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await send(own, { 'sec-fetch-site': 'same-site' })).status).toBe(403);
    const withoutCookie = await openBrowser(app).post('/login', { key: account.key, 'form-token': own });
    expect(withoutCookie.status).toBe(403);
    expect(withoutCookie.text).toContain('no longer valid');
    expect(browser.cookies.has(COOKIE)).toBe(false);
    expect((await send(own)).status).toBe(303);
    expect((await browser.post('/logout', {})).status).toBe(403);
    expect((await browser.post('/logout', { everywhere: 'yes' })).status).toBe(403);
    // Over http another port of the host can set the cookie of forms.
    const attacker = openBrowser(app);
    const forged = formTokenIn(await attacker.get('/login'));
    browser.cookies.set('slipway-form', attacker.cookies.get('slipway-form') ?? '');
    expect((await browser.post('/logout', { 'form-token': forged })).status).toBe(403);
    expect(await current(browser)).not.toBeNull();
    const referer = `${app.url}/ui/add?url=x`;
    const lost = await browser.post(
      '/me/keys/create',
      { 'form-token': forged, name: 'My <b>words</b>', 'api-key': 'k-1' },
      { referer },
    );
    expect([lost.status, lost.text]).toEqual([
      403,
      expect.stringContaining('<dt>name</dt><dd>My &lt;b&gt;words&lt;/b&gt;</dd>'),
    ]);
    expect(lost.text).toContain('<a href="/ui/add?url=x">');
    expect(lost.text).not.toContain('k-1');
    const valid = formTokenIn(await browser.get('/me'));
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
    for (const [origin, status] of [
      ['null', 403],
      ['http://127.0.0.1:1', 403],
      [app.url, 303],
    ] as const) {
      const body = new URLSearchParams({ 'form-token': valid });
      const sent = { method: 'POST', body, headers: { cookie, origin }, redirect: 'manual' } as const;
      expect([origin, (await fetch(`${app.url}/logout`, sent)).status]).toEqual([origin, status]);
    }
  });

  verifies('people:host', 'reject, like pages, any host but the own one while there is no certificate', async () => {
    const { port } = new URL(app.url);
    const browser = openBrowser(app);
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1',
      'localhost:1',
      '',
      `x@localhost:${port}`,
    ]) {
      const answer = await browser.get('/login', { host });
      expect([host, answer.status]).toEqual([host, host === '' ? answer.status : 403]);
      expect(answer.text).not.toContain('form-token');
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect([host, (await browser.get('/login', { host })).status]).toEqual([host, 200]);
    }
    const token = formTokenIn(await browser.get('/login'));
    expect((await browser.post('/login', { 'form-token': token }, { host: `evil.example:${port}` })).status).toBe(403);
    const published = await app.sibling({ PUBLIC_URL: 'http://slipway.test' });
    expect((await openBrowser(published).get('/login', { host: 'slipway.test' })).status).toBe(200);
    expect((await openBrowser(published).get('/login')).status).toBe(403);
    await published.close();
  });

  it('show in no frame, run no script and are not stored', async () => {
    const { headers } = await openBrowser(app).get('/login');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
    expect(headers).toMatchObject({ 'x-frame-options': 'DENY', 'cache-control': 'no-store' });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });
});
