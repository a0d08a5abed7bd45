import { randomUUID } from 'node:crypto';
import { describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const user = testAccount(app);

const uuid = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('POST /accounts', () => {
  verifies('account:create', 'creates users and organizations that can then be given keys', async () => {
    for (const kind of ['user', 'organization']) {
      const name = uniqueName('account');
      const response = await app.as(app.operator).post('/accounts', { name, kind });
      expect(response.status).toBe(201);
      const account = { id: uuid, name, kind, isOperator: false, disabled: false, timeZone: null, createdAt: moment };
      expect(response.body).toEqual(account);
      const made = await app.as(app.operator).post(`/accounts/${response.body.id}/api-keys`, { name: 'first' });
      const me = await app.as({ id: '', name, key: made.body.key }).get('/accounts/me');
      expect(me.body).toEqual(response.body);
    }
  });

  verifies('account:create', 'refuses a name that is taken', async () => {
    const response = await app.as(app.operator).post('/accounts', { name: user.name, kind: 'organization' });
    expect(response.status).toBe(409);
    expect(response.body).toEqual({ error: `An account named "${user.name}" already exists` });
    expect(response.headers['x-should-retry']).toBe('false');
  });

  verifies('account:create', 'creates one account for concurrent requests with one name', async () => {
    const body = { name: uniqueName('account'), kind: 'user' };
    const made = await Promise.all([1, 2, 3].map(() => app.as(app.operator).post('/accounts', body)));
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
  });

  verifies('account:create', 'never creates an operator, whatever the body contains', async () => {
    const body = {
      name: uniqueName('account'),
      kind: 'user',
      isOperator: true,
      is_operator: true,
      id: app.operator.id,
    };
    const response = await app.as(app.operator).post('/accounts', body);
    expect(response.body).toMatchObject({ isOperator: false });
    expect(response.body.id).not.toBe(app.operator.id);
  });

  verifies('account:create', 'names what is wrong with a name or a kind', async () => {
    const name = () => uniqueName('account');
    const cases: [object | undefined, RegExp][] = [
      [undefined, /^name is required; kind must be one of/],
      [{ kind: 'user' }, /^name is required$/],
      [{ name: '', kind: 'user' }, /^name must not be empty$/],
      [{ name: 'x'.repeat(256), kind: 'user' }, /^name must have at most 255 characters$/],
      [{ name: 7, kind: 'user' }, /name must be a string/],
      [{ name: ['a'], kind: 'user' }, /name must be a string/],
      [{ name: 'two\nlines', kind: 'user' }, /^name must not hold control characters/],
      [{ name: 'nul\u0000', kind: 'user' }, /^name must not hold control characters/],
      [{ name: name() }, /^kind must be one of the following values: user, organization/],
      [{ name: name(), kind: 'robot' }, /^kind must be one of/],
      [{ name: name(), kind: 'User' }, /^kind must be one of/],
    ];
    for (const [body, text] of cases) {
      const response = await app.as(app.operator).post('/accounts', body);
      expect([body, response.status]).toEqual([body, 400]);
      expect(response.body).toEqual({ error: expect.stringMatching(text) });
    }
    const longest = await app.as(app.operator).post('/accounts', { name: 'é'.repeat(255), kind: 'user' });
    expect(longest.status).toBe(201);
  });
});

describe('POST /accounts with a limit of organizations', () => {
  verifies(
    'account:create',
    'creates organizations that the account owns, within the limit and nothing else',
    async () => {
      const founder = await app.account();
      const create = (name: string, kind = 'organization', account = founder) =>
        app.as(account).post('/accounts', { name, kind });
      const closed = { error: 'Forbidden: only the operator manages accounts' };
      expect((await create(uniqueName('team'))).body).toEqual(closed);
      const limits = { limits: { organizations: 2 } };
      await app.as(app.operator).patch(`/accounts/${founder.id}/limits`, limits).expect(200);
      const names = [uniqueName('team'), uniqueName('team')];
      await until(async () => (await create(names[0] ?? '')).status === 201, 'the limit opens it');
      expect((await create(uniqueName('user'), 'user')).body).toEqual(closed);
      const read = await app.as(founder).post('/accounts/me/api-keys', { name: 'read', scopes: ['read'] });
      expect(
        (await create(uniqueName('team'), 'organization', { ...founder, key: read.body.key as string })).status,
      ).toBe(403);
      expect((await create(names[0] ?? '')).status).toBe(409);
      const { body: made } = await create(names[1] ?? '');
      const { body: list } = await app.as(founder).get(`/accounts/${made.id}/members`);
      expect(list.members).toMatchObject([{ accountId: founder.id, role: 'owner' }]);
      const name = uniqueName('team');
      const beyond = await create(name);
      expect([beyond.status, beyond.body.error]).toEqual([
        429,
        expect.stringContaining('limit of organizations: 2 of 2'),
      ]);
      expect(await app.database.query('SELECT 1 FROM accounts WHERE name = $1', [name])).toEqual([]);
      const { body: other } = await app.as(app.operator).post('/accounts', { name, kind: 'organization' });
      expect((await app.as(app.operator).get(`/accounts/${other.id}/members`)).body.members).toEqual([]);
    },
  );
});

describe('GET /accounts', () => {
  verifies('account:create', 'shows the operator every account, newest first, page by page', async () => {
    const made: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      const response = await app.as(app.operator).post('/accounts', { name: uniqueName('listed'), kind: 'user' });
      made.unshift(response.body.id as string);
    }
    const rows = await app.database.query<{ id: string }[]>('SELECT id FROM accounts');
    const seen: { id: string; name: string }[] = [];
    for (let page = 1; page <= Math.ceil(rows.length / 2); page += 1) {
      const { status, body } = await app.as(app.operator).get(`/accounts?page=${page}&pageSize=2`);
      expect(status).toBe(200);
      expect(body.pagination).toEqual({
        currentPage: page,
        pageSize: 2,
        totalPages: Math.ceil(rows.length / 2),
        totalCount: rows.length,
      });
      seen.push(...(body.accounts as typeof seen));
    }
    expect(seen.slice(0, 3).map(({ id }) => id)).toEqual(made);
    expect(seen.map(({ id }) => id).toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
    expect(seen).toContainEqual({
      id: user.id,
      name: user.name,
      kind: 'user',
      isOperator: false,
      disabled: false,
      timeZone: null,
      createdAt: moment,
      signIn: 'none',
      suspended: null,
      lastSeenAt: null,
    });
    const beyond = await app.as(app.operator).get(`/accounts?page=${Number.MAX_SAFE_INTEGER}`);
    expect(beyond.body).toMatchObject({ accounts: [], pagination: { totalCount: rows.length } });
  });
});

describe('accounts of others', () => {
  verifies('auth:matrix', 'are neither created nor listed with a key that is not the operator’s', async () => {
    const organization = await app.account({ kind: 'organization' });
    for (const account of [user, organization]) {
      const name = uniqueName('account');
      const answers = [
        await app.as(account).post('/accounts', { name, kind: 'user' }),
        await app.as(account).post('/accounts', { nonsense: true }),
        await app.as(account).get('/accounts'),
      ];
      for (const { status, body } of answers) {
        expect(status).toBe(403);
        expect(body).toEqual({ error: 'Forbidden: only the operator manages accounts' });
      }
      expect(await app.database.query('SELECT 1 FROM accounts WHERE name = $1', [name])).toEqual([]);
    }
  });

  verifies('auth:matrix', 'stay closed when an account is renamed like the operator', async () => {
    const other = await app.account({ isOperator: false });
    await app.database.query(`UPDATE accounts SET name = 'Operator' WHERE id = $1`, [other.id]);
    expect((await app.as(other).get('/accounts')).status).toBe(403);
  });

  verifies('key:own', 'an account that does not exist is not found, by the operator either', async () => {
    for (const id of [randomUUID(), 'none', '00000000-0000-0000-0000-000000000000', encodeURIComponent("' OR 1=1")]) {
      for (const answer of [
        await app.as(app.operator).post(`/accounts/${id}/api-keys`, { name: 'x' }),
        await app.as(user).get(`/accounts/${id}/api-keys`),
      ]) {
        expect([id, answer.status]).toEqual([id, 404]);
        expect(answer.body).toEqual({ error: 'Account not found' });
      }
    }
  });
});
