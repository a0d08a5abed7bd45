// Also run with the queue on Redis: jobs, and messages between processes.
import { createHash, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  testAccount,
  testApp,
  uniqueName,
  type TestAccount,
  type TestApp,
  type TestClient,
} from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

interface Key {
  id: string;
  key: string;
}

/** The longest time in which a process may accept a revoked key, by the contract. */
const CACHED_MS_MAX = 5_000;

const app = testApp();
let upstream: Upstream;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => {
  upstream = await startUpstream();
});

async function createKey(account: TestAccount, body: object = {}): Promise<Key> {
  const response = await app.as(account).post('/accounts/me/api-keys', { name: 'made by a test', ...body });
  expect(response.status).toBe(201);
  return response.body as Key;
}

/** The account, asking with another of its keys. */
function withKey({ key }: Key, account = owner): TestAccount {
  return { ...account, key };
}

const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('POST /accounts/{id}/api-keys', () => {
  verifies('key:create', 'returns a key that works immediately and is recognisable', async () => {
    for (const id of ['me', owner.id]) {
      const response = await app.as(owner).post(`/accounts/${id}/api-keys`, { name: 'laptop' });
      expect(response.status).toBe(201);
      expect(response.body).toEqual({
        id: expect.any(String),
        name: 'laptop',
        key: expect.stringMatching(/^slipway_[A-Za-z0-9_-]{43}$/),
        prefix: response.body.key.slice(0, 12),
        createdAt: moment,
        lastUsedAt: null,
        lastAddress: null,
        expiresAt: null,
        scopes: null,
        replacedBy: null,
        madeBy: expect.any(String),
      });
      const me = await app.as(withKey(response.body)).get('/accounts/me');
      expect([me.status, me.body.id]).toEqual([200, owner.id]);
    }
  });

  verifies('http:no-page', 'returns a response that browsers neither store, run nor load anything from', async () => {
    const { headers } = await app.as(owner).post('/accounts/me/api-keys', { name: 'laptop' });
    const sandbox = { 'content-security-policy': expect.stringContaining("sandbox; default-src 'none'") };
    expect(headers).toMatchObject({ 'cache-control': 'no-store', ...sandbox });
    for (const path of ['/run/nobody', '/servers', '/nowhere/at/all']) {
      expect((await app.as(owner).post(path, {})).headers).toMatchObject(sandbox);
    }
  });

  verifies('key:create', 'lets the operator make one for any account, which is that account’s', async () => {
    const account = await app.account();
    const response = await app.as(app.operator).post(`/accounts/${account.id}/api-keys`, { name: 'from the operator' });
    const me = await app.as(withKey(response.body)).get('/accounts/me');
    expect(me.body).toMatchObject({ id: account.id, isOperator: false });
  });

  verifies('key:create', 'names what is wrong with the name', async () => {
    for (const name of [undefined, '', 7, 'x'.repeat(256), 'a\tb', null]) {
      const response = await app.as(owner).post('/accounts/me/api-keys', { name });
      expect([name, response.status]).toEqual([name, 400]);
      expect(response.body).toEqual({
        error: expect.stringMatching(name === undefined ? /^name is required$/ : /name must/),
      });
    }
  });

  verifies('auth:expired-key', 'creates a key that works until its expiry and not a moment longer', async () => {
    const expiresAt = new Date(Date.now() + 3_000).toISOString();
    const made = await app.as(owner).post('/accounts/me/api-keys', { name: 'short', expiresAt });
    expect(made.body.expiresAt).toBe(expiresAt);
    const client = app.as(withKey(made.body));
    expect((await client.get('/accounts/me')).status).toBe(200);
    // In constant use, so that whatever the service remembers of the key is fresh when it expires.
    let askedAt: number;
    let refused: Awaited<ReturnType<typeof client.get>>;
    do {
      askedAt = Date.now();
      refused = await client.get('/accounts/me');
    } while (refused.status === 200 && askedAt <= Date.parse(expiresAt));
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
    expect(refused.status).toBe(401);
    expect(refused.body).toEqual(expect.objectContaining({ error: 'Unauthorized' }));
    const connect = await client.get('/connect/any');
    expect(connect.body).toEqual({ error: 'unauthorized', message: expect.stringContaining('expired') });
    const listed = await app.as(owner).get('/accounts/me/api-keys');
    expect(listed.body.apiKeys).toContainEqual(expect.objectContaining({ id: made.body.id, expiresAt }));
  });

  verifies(
    'auth:expired-key',
    'understands an expiry of any time zone, and refuses what is no moment in the future',
    async () => {
      const made = await app
        .as(owner)
        .post('/accounts/me/api-keys', { name: 'x', expiresAt: '2099-01-01T00:00:00+02:00' });
      expect(made.body.expiresAt).toBe('2098-12-31T22:00:00.000Z');
      const wrong = [
        'tomorrow',
        '',
        7,
        '2099-13-01',
        '2099-02-30T00:00:00Z',
        '2001-01-01T00:00:00Z',
        new Date(Date.now() - 1).toISOString(),
        '2099-W05',
        '2099-W05-1',
        '2099-050',
        ['2099-01-01'],
      ];
      for (const expiresAt of wrong) {
        const response = await app.as(owner).post('/accounts/me/api-keys', { name: 'x', expiresAt });
        expect([expiresAt, response.status]).toEqual([expiresAt, 400]);
        expect(response.body).toEqual({ error: expect.stringMatching(/^expiresAt must be /) });
      }
      const never = await app.as(owner).post('/accounts/me/api-keys', { name: 'x', expiresAt: null });
      expect(never.body.expiresAt).toBeNull();
    },
  );
});

describe('a key', () => {
  verifies('key:shown-once', 'is in no response but the one that created it', async () => {
    const account = await app.account();
    const first = await createKey(account);
    const second = await createKey(account);
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const client = app.as(withKey(first, account));
    const answers = [
      await client.get('/accounts/me'),
      await client.get('/accounts/me/api-keys'),
      await app.as(app.operator).get(`/accounts/${account.id}/api-keys`),
      await app.as(app.operator).get('/accounts?pageSize=100'),
      await client.get('/namespaces'),
      await client.get(path),
      await client.get(`${path}/.tools`),
      await client.delete(`/accounts/me/api-keys/${second.id}`),
      await client.get('/connect/nobodys'),
      await app.as(withKey(second, account)).get(path),
    ];
    for (const { text, headers } of answers) {
      for (const { key } of [first, second, account]) {
        expect(text).not.toContain(key);
        expect(text).not.toContain(key.slice(12));
        expect(JSON.stringify(headers)).not.toContain(key.slice(12));
      }
      expect(text).not.toMatch(/"(key|hash)"/);
    }
    expect(upstream.requests.map(({ headers, raw }) => JSON.stringify(headers) + raw).join()).not.toContain('slipway_');
  });

  verifies('key:stored-hashed', 'is stored as its SHA-256 and its first characters only', async () => {
    const { id, key } = await createKey(owner);
    const [row] = await app.database.query('SELECT * FROM api_keys WHERE id = $1', [id]);
    expect(row.hash).toEqual(createHash('sha256').update(key).digest());
    expect(row.prefix).toBe(key.slice(0, 12));
    const tables = await app.database.query<{ name: string }[]>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
        WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    expect(tables.length).toBeGreaterThan(5);
    for (const { name } of tables) {
      for (const word of [key.slice(13), Buffer.from(key).toString('hex'), Buffer.from(key).toString('base64')]) {
        const found = await app.database.query(`SELECT 1 FROM ${name} t WHERE strpos(t::text, $1) > 0`, [word]);
        expect([name, found]).toEqual([name, []]);
      }
    }
  });

  verifies('key:last-used', 'has its last use updated within a second, on every endpoint', async () => {
    const account = await app.account();
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const doors: ((client: ReturnType<TestApp['as']>) => Promise<{ status: number }>)[] = [
      (client) => client.get('/accounts/me'),
      (client) => client.post(`${path}/.tools/echo`, { message: 'hi' }),
      (client) => client.post(`${path}/mcp`, { jsonrpc: '2.0', id: 1, method: 'ping' }),
    ];
    for (const door of doors) {
      const made = await createKey(account);
      const lastUsed = async () => {
        const { body } = await app.as(account).get('/accounts/me/api-keys');
        return (body.apiKeys as { id: string; lastUsedAt: string | null }[]).find(({ id }) => id === made.id)
          ?.lastUsedAt;
      };
      expect(await lastUsed()).toBeNull();
      const before = Date.now();
      expect((await door(app.as(withKey(made, account)))).status).toBe(200);
      const first = await until(lastUsed, 'the use is written');
      expect(first).toEqual(moment);
      expect(Date.parse(first)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(first)).toBeLessThanOrEqual(Date.now());
      await door(app.as(withKey(made, account)));
      await until(async () => (await lastUsed()) !== first, 'a later use moves it');
    }
  });

  verifies('key:last-used', 'has the address of its last use, which a trusted proxy names', async () => {
    const behind = await app.sibling({ TRUST_PROXY: '127.0.0.0/8' });
    try {
      const account = await app.account();
      const { id, key } = await createKey(account);
      const address = async () => {
        const { body } = await app.as(account).get('/accounts/me/api-keys');
        return (body.apiKeys as { id: string; lastAddress: string | null }[]).find((one) => one.id === id)?.lastAddress;
      };
      const use = (of: TestApp) =>
        of
          .as({ ...account, key })
          .get('/accounts/me')
          .set('x-forwarded-for', '203.0.113.7');
      expect(await address()).toBeNull();
      expect((await use(app)).status).toBe(200);
      expect(await until(address, 'the use is written')).toBe('127.0.0.1');
      expect((await use(behind)).status).toBe(200);
      await until(async () => (await address()) === '203.0.113.7', 'the use through the proxy is written');
    } finally {
      await behind.close();
    }
  });

  verifies('key:last-used', 'is not marked as used by a rejected request', async () => {
    const { id, key } = await createKey(owner);
    await app.database.query(`UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE id = $1`, [id]);
    expect((await app.as({ ...owner, key }).get('/accounts/me')).status).toBe(401);
    const used = await createKey(owner);
    await app.as(withKey(used)).get('/accounts/me');
    const written = async (keyId: string) => {
      const [row] = await app.database.query('SELECT last_used_at FROM api_keys WHERE id = $1', [keyId]);
      return row.last_used_at as Date | null;
    };
    await until(() => written(used.id), 'a use that came after it is written');
    expect(await written(id)).toBeNull();
  });
});

describe('GET /accounts/{id}/api-keys', () => {
  verifies('key:create', 'lists the account’s keys, newest first, with creation, expiry and last use', async () => {
    const account = await app.account();
    const expiresAt = '2099-01-01T00:00:00.000Z';
    const first = await createKey(account, { name: 'first', expiresAt });
    const second = await createKey(account, { name: 'second' });
    const response = await app.as(account).get(`/accounts/${account.id}/api-keys`);
    expect(response.status).toBe(200);
    const unused = { createdAt: moment, lastUsedAt: null, lastAddress: null };
    const same = { ...unused, scopes: null, replacedBy: null, madeBy: expect.any(String) };
    expect(response.body).toEqual({
      apiKeys: [
        { ...same, id: second.id, name: 'second', prefix: second.key.slice(0, 12), expiresAt: null },
        { ...same, id: first.id, name: 'first', prefix: first.key.slice(0, 12), expiresAt },
        expect.objectContaining({ name: 'test', prefix: account.key.slice(0, 12) }),
      ],
    });
    expect((await app.as(app.operator).get(`/accounts/${account.id}/api-keys`)).body.apiKeys).toHaveLength(3);
  });
});

describe('DELETE /accounts/{id}/api-keys/{keyId}', () => {
  verifies('auth:revoked-key', 'revokes that key on every endpoint immediately, and no other', async () => {
    const account = await app.account();
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const [doomed, kept] = [await createKey(account), await createKey(account)];
    const doors = (key: Key) => {
      const client = app.as(withKey(key, account));
      return Promise.all([
        client.get('/accounts/me'),
        client.get(path),
        client.post(`${path}/.tools/echo`, { message: 'hi' }),
        client.post(`${path}/mcp`, { jsonrpc: '2.0', id: 1, method: 'ping' }),
      ]).then((answers) => answers.map(({ status }) => status));
    };
    expect(await doors(doomed)).toEqual([200, 200, 200, 200]);
    const response = await app.as(account).delete(`/accounts/me/api-keys/${doomed.id}`);
    expect([response.status, response.body]).toEqual([200, { success: true, revoked: [doomed.id] }]);
    expect(await doors(doomed)).toEqual([401, 401, 401, 401]);
    expect(await doors(kept)).toEqual([200, 200, 200, 200]);
    const again = await app.as(account).delete(`/accounts/me/api-keys/${doomed.id}`);
    expect([again.status, again.body]).toEqual([404, { error: 'API key not found' }]);
    const listed = await app.as(account).get('/accounts/me/api-keys');
    expect(listed.body.apiKeys.map(({ id }: Key) => id)).not.toContain(doomed.id);
  });

  verifies('auth:revoked-key', 'revokes the key that sends the request', async () => {
    const key = await createKey(owner);
    expect((await app.as(withKey(key)).delete(`/accounts/me/api-keys/${key.id}`)).status).toBe(200);
    expect((await app.as(withKey(key)).get('/accounts/me')).status).toBe(401);
  });

  it('once revoked, is refused permanently, also with concurrent requests', async () => {
    const key = await createKey(owner);
    const client = app.as(withKey(key));
    const statuses: number[] = [];
    let isRevoked = false;
    const storm = async () => {
      while (!isRevoked || statuses.at(-1) !== 401) {
        const askedAfter = isRevoked;
        const { status } = await client.get('/accounts/me');
        statuses.push(status);
        if (askedAfter) expect(status).toBe(401);
      }
    };
    const running = [1, 2, 3, 4].map(storm);
    await until(() => statuses.length > 20, 'the storm is up');
    await app.as(owner).delete(`/accounts/me/api-keys/${key.id}`);
    isRevoked = true;
    await Promise.all(running);
    expect(statuses).toContain(200);
  });

  /** Uses a key in another process, then revokes it here while the clock of every cache stands still. */
  async function revokedElsewhere(elsewhere: TestApp): Promise<TestClient> {
    const key = await createKey(owner);
    const client = elsewhere.as(withKey(key));
    expect((await client.get('/accounts/me')).status).toBe(200);
    expect((await app.as(owner).delete(`/accounts/me/api-keys/${key.id}`)).status).toBe(200);
    return client;
  }

  verifies(
    'auth:revoked-key',
    'revokes it in another process by a message, before the cache of that process expires',
    async () => {
      const elsewhere = await app.sibling();
      const now = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
      try {
        const client = await revokedElsewhere(elsewhere);
        await until(async () => (await client.get('/accounts/me')).status === 401, 'the message arrives');
      } finally {
        now.mockRestore();
        await elsewhere.close();
      }
    },
  );

  verifies('auth:revoked-key', 'revokes it after 5 s in another process that the message does not reach', async () => {
    // The sibling listens on another channel, so it receives no message.
    const elsewhere = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
    const usedAt = performance.now();
    const now = jest.spyOn(performance, 'now').mockReturnValue(usedAt);
    try {
      const client = await revokedElsewhere(elsewhere);
      now.mockReturnValue(usedAt + CACHED_MS_MAX - 1);
      expect((await client.get('/accounts/me')).status).toBe(200);
      now.mockReturnValue(usedAt + CACHED_MS_MAX + 1);
      await until(async () => (await client.get('/accounts/me')).status === 401, 'it expires');
    } finally {
      now.mockRestore();
      await elsewhere.close();
    }
  });

  verifies('key:own', 'another account’s keys are not found, and stay', async () => {
    const { id, key } = await createKey(owner);
    const answers = [
      await app.as(other).post(`/accounts/${owner.id}/api-keys`, { name: 'mine now' }),
      await app.as(other).get(`/accounts/${owner.id}/api-keys`),
      await app.as(other).delete(`/accounts/${owner.id}/api-keys/${id}`),
      await app.as(other).get(`/accounts/${randomUUID()}/api-keys`),
    ];
    for (const { status, body } of answers) {
      expect([status, body]).toEqual([404, { error: 'Account not found' }]);
    }
    // Under one's own account the other's key id is unknown, as any other is.
    for (const keyId of [id, randomUUID(), 'none']) {
      const response = await app.as(other).delete(`/accounts/me/api-keys/${keyId}`);
      expect([response.status, response.body]).toEqual([404, { error: 'API key not found' }]);
    }
    expect((await app.as({ ...owner, key }).get('/accounts/me')).body.id).toBe(owner.id);
    const listed = await app.as(owner).get('/accounts/me/api-keys');
    expect(listed.body.apiKeys.map(({ name }: { name: string }) => name)).not.toContain('mine now');
  });

  verifies('auth:revoked-key', 'lets the operator revoke any account’s key, under that account only', async () => {
    const key = await createKey(owner);
    expect((await app.as(app.operator).delete(`/accounts/${other.id}/api-keys/${key.id}`)).status).toBe(404);
    expect((await app.as(withKey(key)).get('/accounts/me')).status).toBe(200);
    expect((await app.as(app.operator).delete(`/accounts/${owner.id}/api-keys/${key.id}`)).status).toBe(200);
    expect((await app.as(withKey(key)).get('/accounts/me')).status).toBe(401);
  });
});
