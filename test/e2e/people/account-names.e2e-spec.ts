import { expect, it } from '@jest/globals';
import type supertest from 'supertest';
import { storeSkeletons } from '../../../src/modules/auth/names/account-names.repository.js';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { openBrowser } from '../../support/people/browser-session.js';

const PASSWORD = 'correct horse battery';
const LOOKS_ALIKE = 'This name looks like the name of another account. Choose a different one.';

const app = testApp();

/** An organization, and its owner. */
async function organization(): Promise<{ id: string; owner: TestAccount }> {
  const [{ id }, owner] = [await app.account({ kind: 'organization' }), await app.account()];
  await app.as(app.operator).put(`/accounts/${id}/members/${owner.id}`, { role: 'owner' }).expect(200);
  return { id, owner };
}

/** Uses an invitation into the organization with a new account of this name. */
async function join({ id, owner }: { id: string; owner: TestAccount }, name: string): Promise<supertest.Response> {
  const { body } = await app.as(owner).post(`/accounts/${id}/members/invitations`, { role: 'member' }).expect(201);
  const { pathname, search } = new URL(body.url as string);
  return openBrowser(app).submit(pathname + search, { name, password: PASSWORD, repeated: PASSWORD });
}

const addAccount = (name: string, kind = 'user') => app.as(app.operator).post('/accounts', { name, kind });

it.each([
  ['paypal', 'раура\u04C0'], // Cyrillic
  ['paypal', 'paypa1'],
  ['paypal', 'paypaI'],
  ['paypal', 'PAYPAL'],
  ['paypal', 'ｐａｙｐａｌ'],
  ['paypal', 'pay\u034Fpal'], // an invisible character
  ['admin', 'adrnin'],
  ['admin', 'Adrnin'],
  ['admin', 'ADMIN'],
  ['straße', 'STRASSE'],
  ['e\u0301va', 'éva'],
  ['ann lee', 'ann  lee'],
])('refuses a person who joins next to %j the name %j', async (name, imitation) => {
  const { body } = await addAccount(name, 'organization').expect(201);
  const team = await organization();
  const refused = await join(team, imitation);
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(LOOKS_ALIKE)]);
  expect(refused.text).toMatch(/<input[^>]* aria-invalid="true"[^>]* name="name"/);
  expect(await app.database.query('SELECT FROM accounts WHERE name = $1', [imitation])).toEqual([]);
  await app.as(app.operator).delete(`/accounts/${body.id}`).expect(200);
  expect((await join(team, imitation)).status).toBe(303);
  await app.database.query('DELETE FROM accounts WHERE name = $1', [imitation]);
});

it.each([
  ['mail', 'mall'],
  ['ann', 'anne'],
  ['user1', 'user2'],
])('lets a person join next to %j with the name %j', async (name, other) => {
  await addAccount(name).expect(201);
  expect((await join(await organization(), other)).status).toBe(303);
});

it('says of the same name that it is taken', async () => {
  const name = uniqueName('same');
  await addAccount(name).expect(201);
  const { status, text } = await join(await organization(), name);
  expect([status, text]).toEqual([400, expect.stringContaining('Another account has this name')]);
});

it('lets an operator create an account that looks like another one', async () => {
  await addAccount('modern').expect(201);
  await addAccount('rnodern').expect(201);
});

it('compares with accounts of earlier versions, more than one statement stores', async () => {
  await app.database.query(
    `INSERT INTO accounts (name, kind) SELECT 'former-' || n, 'user' FROM generate_series(1, 2500) n`,
  );
  await storeSkeletons(app.database);
  expect(await app.database.query('SELECT FROM accounts WHERE name_skeletons IS NULL')).toEqual([]);
  expect((await join(await organization(), 'FORMER-25OO')).text).toContain(LOOKS_ALIKE);
});

it('adds one of two accounts that imitate each other and are created concurrently', async () => {
  const teams = await Promise.all([organization(), organization()]);
  for (const [first, second] of [
    ['galaxy', 'ga1axy'],
    ['corner', 'comer'],
    ['nova', 'NOVA'],
    ['bolt', 'b0lt'],
  ] as const) {
    const answers = await Promise.all([join(teams[0], first), join(teams[1], second)]);
    expect([first, ...answers.map(({ status }) => status).sort()]).toEqual([first, 303, 400]);
  }
});

it('finds names by an index', async () => {
  const plan = await app.database.transaction(async (tx) => {
    await tx.query('SET LOCAL enable_seqscan = off');
    return tx.query(`EXPLAIN SELECT FROM accounts WHERE name_skeletons && ARRAY['a'] AND name <> 'a' LIMIT 1`);
  });
  expect(JSON.stringify(plan)).toContain('accounts_name_skeletons');
});
