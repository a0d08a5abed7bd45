import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { PeopleRepository } from '../../../src/modules/people/people.repository.js';
import { testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
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
    expect([answer.status, answer.headers.location]).toEqual([303, './ui/']);
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

  verifies('people:invite:once', 'is invalid after it was used, replaced or has expired', async () => {
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

  it('replaces a forgotten password, and revokes the sessions of the account', async () => {
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

describe('an invitation into an organization', () => {
  let owner: TestAccount;
  let team: TestAccount;

  const setRole = ({ id }: TestAccount, role: string) =>
    app.as(app.operator).put(`/accounts/${team.id}/members/${id}`, { role });
  const inviteAs = (by: TestAccount, role: string) =>
    app.as(by).post(`/accounts/${team.id}/members/invitations`, { role });
  const rolesByName = async (): Promise<Record<string, string>> => {
    const { members } = (await app.as(owner).get(`/accounts/${team.id}/members`)).body;
    const each = members as { accountName: string; role: string }[];
    return Object.fromEntries(each.map(({ accountName, role }) => [accountName, role]));
  };
  const linkFor = async (role: string): Promise<string> => {
    const { status, body } = await inviteAs(owner, role);
    expect(status).toBe(201);
    return (body.url as string).slice(app.env.baseUrl.length);
  };

  beforeAll(async () => {
    [owner, team] = [await app.account(), await app.account({ kind: 'organization' })];
    await setRole(owner, 'owner');
  });

  verifies('team:invite', 'makes somebody new a member, once', async () => {
    const path = await linkFor('editor');
    const browser = openBrowser(app);
    const page = await browser.get(path);
    for (const word of [team.name, 'editor', `login?next=${encodeURIComponent(path)}`])
      expect(page.text).toContain(word);
    const refused = await browser.submit(path, { name: owner.name, ...chosen() });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('has this name')]);
    for (const fields of [
      chosen(),
      { name: 'a\nb', ...chosen() },
      { name: 'x', ...chosen('short') },
      { name: 'b\u{43E}b', ...chosen() },
      { name: 'b\u200bob', ...chosen() },
    ])
      expect((await browser.submit(path, fields)).status).toBe(400);
    const names = [uniqueName('person'), uniqueName('person')];
    const both = names.map((name, i) => openBrowser([app, other][i] ?? app).submit(path, { name, ...chosen() }));
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([303, 410]);
    const [winner = '', loser = ''] = statuses[0] === 303 ? names : names.toReversed();
    expect(await rolesByName()).toEqual({ [owner.name]: 'owner', [winner]: 'editor' });
    expect((await openBrowser(app).submit('/login', { name: winner, password: PASSWORD })).status).toBe(303);
    expect(await app.database.query('SELECT FROM accounts WHERE name = $1', [loser])).toEqual([]);
    expect((await openBrowser(app).get(path)).status).toBe(410);
  });

  verifies('team:invite', 'makes who is signed in a member, by a button', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    const path = await linkFor('member');
    expect((await browser.get(path)).text).toContain(account.name);
    expect((await browser.post(path, {})).status).toBe(403);
    expect((await browser.submit(path, {})).headers.location).toMatch(/^\.\/ui\/o\/[\w-]+\?done=joined$/);
    expect((await rolesByName())[account.name]).toBe('member');
    const again = await linkFor('owner');
    const refused = await browser.submit(again, {});
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('already')]);
    expect((await rolesByName())[account.name]).toBe('member');
    expect((await openBrowser(app).get(again)).status).toBe(200);
  });

  verifies('team:invite', 'is created by owners, and expires when its creator is no longer one', async () => {
    const maker = await app.account();
    await setRole(maker, 'owner');
    const { status, body } = await inviteAs(maker, 'guest');
    const path = (body.url as string).slice(app.env.baseUrl.length);
    expect([status, (await openBrowser(app).get(path)).status]).toEqual([201, 200]);
    const browser = await signedInBrowser(app, await app.account());
    const token = formTokenIn(await browser.get(path));
    await setRole(maker, 'editor');
    expect((await inviteAs(maker, 'guest')).status).toBe(403);
    expect((await inviteAs(team, 'guest')).status).toBe(403);
    expect((await inviteAs(await app.account(), 'guest')).status).toBe(404);
    const empty = await app.account({ kind: 'organization' });
    expect((await app.as(empty).post('/accounts/me/members/invitations', { role: 'guest' })).status).toBe(409);
    expect((await browser.get(path)).status).toBe(410);
    expect((await browser.post(path, { 'form-token': token })).status).toBe(410);
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
  expect(await app.get(PeopleRepository).purgeExpired(new Date())).toBeGreaterThanOrEqual(2);
  for (const table of ['sessions', 'invitations']) {
    const rows = await app.database.query(`SELECT 1 FROM ${table} WHERE account_id = $1`, [account.id]);
    expect(rows).toEqual([]);
  }
  expect(await personAt(app, browser)).not.toBeNull();
  expect((await openBrowser(app).get(path)).status).toBe(200);
});
