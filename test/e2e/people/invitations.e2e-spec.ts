import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { PeopleRepository } from '../../../src/modules/people/people.repository.js';
import { testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { formTokenIn, openBrowser, personAt, signedInBrowser } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const PASSWORD = 'correct horse battery';

const app = testApp();
let other: TestApp;

beforeAll(async () => {
  other = await app.sibling();
});

/** The path of a new invitation. */
async function invite({ id }: Pick<TestAccount, 'id'>): Promise<string> {
  const { status, body } = await app.as(app.operator).post(`/accounts/${id}/invitations`);
  expect(status).toBe(201);
  return (body.url as string).slice(app.env.baseUrl.length);
}

const chosen = (password = PASSWORD) => ({ password, repeated: password });

describe('POST /accounts/{accountId}/invitations', () => {
  verifies('people:invite', 'answers the operator a link by which a person chooses a password', async () => {
    const account = await app.account();
    const { status, headers, body } = await app.as(app.operator).post(`/accounts/${account.id}/invitations`);
    expect(status).toBe(201);
    expect(headers['cache-control']).toBe('no-store');
    expect(body).toEqual({
      url: expect.stringMatching(/\/invite\?token=[\w-]{43}$/),
      expiresAt: expect.stringMatching(/Z$/),
    });
    const hours = (Date.parse(body.expiresAt as string) - Date.now()) / 3_600_000;
    expect(Math.round(hours)).toBe(72);
    const path = (body.url as string).slice(app.env.baseUrl.length);

    const browser = openBrowser(app);
    const page = await browser.get(path);
    expect(page.status).toBe(200);
    expect(page.text).toContain(`value="${account.name}"`);
    const answer = await browser.post(path, { 'form-token': formTokenIn(page), ...chosen() });
    expect([answer.status, answer.headers.location]).toEqual([303, './me']);
    expect(await personAt(other, browser)).toMatchObject({ accountId: account.id });
    const later = openBrowser(other);
    expect((await later.submit('/login', { name: account.name, password: PASSWORD })).status).toBe(303);
  });

  it('is for the operator, and for accounts that exist and are enabled', async () => {
    const account = await app.account();
    expect((await app.as(account).post('/accounts/me/invitations')).status).toBe(403);
    expect((await app.as().post(`/accounts/${account.id}/invitations`)).status).toBe(401);
    expect((await app.as(app.operator).post(`/accounts/${randomUUID()}/invitations`)).status).toBe(404);
    await app.as(app.operator).patch(`/accounts/${account.id}`, { disabled: true });
    expect((await app.as(app.operator).post(`/accounts/${account.id}/invitations`)).status).toBe(409);
  });

  it('keeps only hashes of the link and the password', async () => {
    const account = await app.account();
    const path = await invite(account);
    const browser = openBrowser(app);
    const token = path.split('token=')[1] ?? '';
    const stored = async () =>
      JSON.stringify(
        await app.database.query(
          `SELECT (SELECT json_agg(i) FROM invitations i) AS i, (SELECT json_agg(p) FROM people p) AS p,
                  (SELECT json_agg(s) FROM sessions s) AS s`,
        ),
      );
    expect(await stored()).not.toContain(token);
    await browser.submit(path, chosen());
    const rows = await stored();
    for (const secret of [token, PASSWORD, ...browser.cookies.values()]) expect(rows).not.toContain(secret);
    expect(rows).toContain('scrypt$15$8$1$');
  });
});

describe('an invitation', () => {
  verifies('people:invite:once', 'is used by one of two browsers that come at the same moment', async () => {
    const account = await app.account();
    const path = await invite(account);
    const browsers = [openBrowser(app), openBrowser(other)];
    const answers = await Promise.all(
      browsers.map((browser, i) => browser.submit(path, chosen(`password number ${i}`))),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 410]);
    const winner = answers.findIndex(({ status }) => status === 303);
    const signIn = (i: number) =>
      openBrowser(app).submit('/login', { name: account.name, password: `password number ${i}` });
    expect((await signIn(winner)).status).toBe(303);
    expect((await signIn(1 - winner)).status).toBe(403);
  });

  verifies('people:invite:once', 'is over when it was used, replaced or has expired', async () => {
    const account = await app.account();
    const used = await invite(account);
    // Opening it is not using it.
    for (let i = 0; i < 3; i += 1) expect((await openBrowser(app).get(used)).status).toBe(200);
    expect((await openBrowser(app).submit(used, chosen())).status).toBe(303);
    const replaced = await invite(account);
    const expired = await invite(account);
    await app.database.query('UPDATE invitations SET expires_at = now() WHERE account_id = $1 AND used_at IS NULL', [
      account.id,
    ]);
    const browser = openBrowser(app);
    const token = formTokenIn(await browser.get('/login'));
    for (const path of [used, replaced, expired, '/invite', '/invite?token=x', `/invite?token=${'a'.repeat(43)}`]) {
      const opened = await browser.get(path);
      expect([path, opened.status]).toEqual([path, 410]);
      expect(opened.text).toContain('ask the operator of this service for a new link');
      const posted = await browser.post(path, { 'form-token': token, ...chosen('another password') });
      expect([path, posted.status]).toEqual([path, 410]);
    }
    expect((await openBrowser(app).submit('/login', { name: account.name, password: PASSWORD })).status).toBe(303);
  });

  it('replaces a forgotten password, and ends the sessions of the account', async () => {
    const account = await app.account();
    const signedIn = await signedInBrowser(app, account);
    const browser = openBrowser(app);
    await browser.submit(await invite(account), chosen());
    expect(await personAt(app, signedIn)).toBeNull();
    expect(await personAt(app, browser)).not.toBeNull();
  });

  verifies('people:password', 'refuses short, long and different passwords, and is not used by them', async () => {
    const account = await app.account();
    const path = await invite(account);
    const browser = openBrowser(app);
    for (const [fields, fault] of [
      [chosen('elevenchars'), 'at least 12'],
      [chosen('x'.repeat(201)), 'at most 200'],
      [{ password: PASSWORD, repeated: `${PASSWORD}!` }, 'differ'],
      [{ password: PASSWORD }, 'differ'],
      [{}, 'at least 12'],
    ] as [Record<string, string>, string][]) {
      const answer = await browser.submit(path, fields);
      expect(answer.status).toBe(400);
      expect(answer.text).toContain(fault);
      expect(answer.text).not.toContain(PASSWORD);
      expect(answer.text).toContain(account.name);
    }
    expect((await browser.submit(path, chosen('𝒳'.repeat(200)))).status).toBe(303);
    const again = openBrowser(app);
    expect((await again.submit('/login', { name: account.name, password: '𝒳'.repeat(200) })).status).toBe(303);
  });

  it('needs the token of its form', async () => {
    const account = await app.account();
    const path = await invite(account);
    const browser = openBrowser(app);
    const token = formTokenIn(await browser.get(path));
    const crossSite = { 'sec-fetch-site': 'cross-site' };
    expect((await browser.post(path, chosen())).status).toBe(403);
    expect((await browser.post(path, { 'form-token': token, ...chosen() }, crossSite)).status).toBe(403);
    expect((await browser.post(path, { 'form-token': token, ...chosen() }, { host: 'evil.example' })).status).toBe(403);
    expect((await browser.get(path)).status).toBe(200);
  });
});

it('expired sessions and invitations are deleted', async () => {
  const [account, kept] = [await app.account(), await app.account()];
  await signedInBrowser(app, account);
  await invite(account);
  const browser = await signedInBrowser(app, kept);
  const path = await invite(kept);
  for (const table of ['sessions', 'invitations']) {
    await app.database.query(`UPDATE ${table} SET expires_at = now() - interval '1 second' WHERE account_id = $1`, [
      account.id,
    ]);
  }
  expect(await app.get(PeopleRepository).purgeExpired()).toBeGreaterThanOrEqual(2);
  for (const table of ['sessions', 'invitations']) {
    const rows = await app.database.query(`SELECT 1 FROM ${table} WHERE account_id = $1`, [account.id]);
    expect(rows).toEqual([]);
  }
  expect(await personAt(app, browser)).not.toBeNull();
  expect((await openBrowser(app).get(path)).status).toBe(200);
});
