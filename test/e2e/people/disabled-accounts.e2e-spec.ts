import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { pathOf } from '../../support/database/server-rows.js';
import { accountWithPassword, openBrowser, personAt, signedInBrowser } from '../../support/people/browser-session.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

const PASSWORD = 'correct horse battery';

/** The longest time in which a key of a disabled account may work. */
const END_MS_MAX = 5_000;

const app = testApp();
/** A process that receives no message of the others: it listens on another channel. */
let deaf: TestApp;

beforeAll(async () => {
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
});

const set = ({ id }: { id: string }, disabled: unknown, by: TestAccount = app.operator) =>
  app.as(by).patch(`/accounts/${id}`, { disabled });

const statusAt = async (at: TestApp, account: TestAccount) => (await at.as(account).get('/accounts/me')).status;

describe('PATCH /accounts/{accountId}', () => {
  verifies('account:disable', 'refuses the keys of the account in every process, and says why', async () => {
    const account = await app.account();
    expect([await statusAt(app, account), await statusAt(deaf, account)]).toEqual([200, 200]);
    const { status, body } = await set(account, true);
    expect([status, body]).toEqual([200, expect.objectContaining({ id: account.id, disabled: true })]);
    const refused = await app.as(account).get('/connect/acme');
    expect(refused.status).toBe(401);
    expect(refused.body.message).toBe('The account of this API key is disabled: ask the operator.');
    await until(async () => (await statusAt(deaf, account)) === 401, 'the other process refuses the key', END_MS_MAX);
    const listed = await app.as(app.operator).get('/accounts');
    const accounts = listed.body.accounts as { id: string; disabled: boolean }[];
    expect(accounts.filter(({ disabled }) => disabled).map(({ id }) => id)).toEqual([account.id]);
    expect((await set(account, false)).body).toMatchObject({ disabled: false });
    expect(await statusAt(app, account)).toBe(200);
  });

  aloneVerifies('account:disable', 'closes what its keys hold open', async () => {
    const account = await app.account();
    const name = await createServer(app, account, { namespace: await createNamespace(app, account) });
    const ended = await Promise.all(
      [app, deaf].map(async ({ url }) => {
        const stream = await fetch(`${url}${pathOf(name, '/logs/stream')}`, {
          headers: { authorization: `Bearer ${account.key}` },
        });
        expect(stream.status).toBe(200);
        return { end: stream.text().catch(() => ''), state: { isOver: false } };
      }),
    );
    for (const { end, state } of ended) void end.then(() => (state.isOver = true));
    await set(account, true);
    await until(() => ended.every(({ state }) => state.isOver), 'the streams have ended', END_MS_MAX);
  });

  verifies('account:disable', 'revokes its sessions and invitations permanently', async () => {
    const account = await accountWithPassword(app, PASSWORD);
    const browser = await signedInBrowser(app, account);
    const { body } = await app.as(app.operator).post(`/accounts/${account.id}/invitations`);
    const link = (body.url as string).slice(app.env.baseUrl.length);
    await set(account, true);
    const isRefused = async (fields: Record<string, string>) =>
      (await openBrowser(app).submit('/login', fields)).status === 403;
    const ways = [{ name: account.name, password: PASSWORD }, { key: account.key }] as Record<string, string>[];
    for (const fields of ways) expect(await isRefused(fields)).toBe(true);
    expect(await personAt(app, browser)).toBeNull();
    expect((await openBrowser(app).get(link)).status).toBe(410);
    await set(account, false);
    expect(await personAt(app, browser)).toBeNull();
    expect((await openBrowser(app).get(link)).status).toBe(410);
    for (const fields of ways) expect(await isRefused(fields)).toBe(false);
  });

  it('is for the operator, and not for the account of one', async () => {
    const [account, second] = [await app.account(), await app.account({ isOperator: true })];
    expect((await set(account, true, account)).status).toBe(403);
    expect((await set(second, true)).status).toBe(409);
    expect((await set(app.operator, true)).status).toBe(409);
    expect((await set({ id: randomUUID() }, true)).status).toBe(404);
    for (const value of [undefined, null, 'true', 1]) expect((await set(account, value)).status).toBe(400);
    expect(await statusAt(app, account)).toBe(200);
  });
});
