// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, jest } from '@jest/globals';
import type supertest from 'supertest';
import { ApiKeysService } from '../../../src/modules/auth/api-keys.service.js';
import { cloneDatabase, startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { startDatabaseRelay, type DatabaseRelay } from '../../support/database/database-relay.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { toolCall } from '../../support/mcp/calls.js';
import { tracker } from '../../support/special-upstreams/tracker.js';
import { query } from '../../support/database/query.js';
import { REDIS_SERVER, startRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Longer than any answer of a service whose database is away takes: 5 s are for connecting, the rest for a busy machine. */
const HONEST_MS_MAX = 30_000;

/** Body of `/ready` while nothing is wrong. */
const READY = { status: 'ok', database: 'ok', queue: 'ok', clock: 'ok', storage: 'ok' };

async function timed<T>(work: PromiseLike<T>): Promise<{ answer: T; ms: number }> {
  const startedAt = Date.now();
  return { answer: await work, ms: Date.now() - startedAt };
}

describe('a process with the worker role alone', () => {
  verifies('health:ready', 'answers health checks and serves nothing else', async () => {
    const app = await startApp({ ROLES: 'worker' });
    expect((await app.as().get('/ready')).status).toBe(200);
    for (const path of ['/accounts', '/namespaces', '/servers/acme', '/connect/acme']) {
      expect((await app.as(app.operator).get(path)).status).toBe(404);
    }
    await app.close();
  });
});

describe('a process of all roles', () => {
  verifies('queue:connections', 'starts with few Postgres connections for queues, and with none on Redis', async () => {
    const app = await startApp();
    const isSettled = async () => (await app.as().get('/ready')).status === 200;
    await until(isSettled, 'it is ready');
    const [{ count }] = await app.database.query<[{ count: number }]>(
      `SELECT count(*)::integer FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'slipway-queue'`,
    );
    const isOnRedis = process.env.TEST_REDIS_URL !== undefined;
    // One each for the workers of releases and logs and for messages, and those for the first queries.
    expect(count).toBeGreaterThanOrEqual(isOnRedis ? 0 : 3);
    expect(count).toBeLessThanOrEqual(isOnRedis ? 0 : 6);
    await app.close();
  });
});

describe('GET /health', () => {
  verifies('health:alive', 'answers {status, timestamp} without a key', async () => {
    const app = await startApp();
    const response = await app.as().get('/health');
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ status: 'ok', timestamp: expect.any(String) });
    expect(Math.abs(Date.parse(response.body.timestamp as string) - Date.now())).toBeLessThan(60_000);
    await app.close();
  });
});

describe('while the database is unavailable', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let relay: DatabaseRelay;
  let app: TestApp;
  let owner: TestAccount;
  let upstream: Upstream;
  let path: string;
  let hasRedis: boolean;

  beforeAll(async () => {
    database = await cloneDatabase();
    relay = await startDatabaseRelay(database.url);
    upstream = await startUpstream();
    app = await startApp({ DATABASE_URL: relay.url }, { staleReadMs: 0 });
    hasRedis = app.env.redisUrl !== null;
    owner = await app.account();
    ({ path } = await createConnection(app, owner, { mcpUrl: upstream.url }));
  });
  // A test that failed must not fail the next one.
  beforeEach(() => relay.open());
  afterAll(async () => {
    await relay.open();
    await app.close();
    await relay.close();
    await database.drop();
    await upstream.close();
  });

  /** Requests of every kind of route and body. */
  async function askEverywhere(): Promise<supertest.Response[]> {
    const client = app.as(owner);
    return Promise.all([
      client.get('/namespaces'),
      client.put(`/namespaces/${uniqueName('ns')}`),
      client.get('/servers/acme'),
      client.get(path),
      client.put(path, { mcpUrl: upstream.url }),
      client.get(`${path}/.tools`),
      client.post(`${path}/.tools/echo`, { message: 'hi' }),
      client.post(`${path}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      app.as(app.operator).get('/accounts'),
    ]);
  }

  async function backToNormal(): Promise<void> {
    await until(async () => (await app.as().get('/ready')).status === 200, 'it is ready again');
    const statuses = (await askEverywhere()).map(({ status }) => status);
    expect(statuses).toEqual([200, 201, 404, 200, 200, 200, 200, 200, 200]);
    await app.database.query('SELECT 1');
  }

  function expectHonest(answer: supertest.Response): void {
    const sentence = 'The database does not answer right now: try again in a few seconds';
    expect([answer.status, answer.text]).toEqual([503, expect.stringContaining(sentence)]);
    expect(answer.headers['retry-after']).toBe('2');
    const url = new URL((answer.request as unknown as { url: string }).url).pathname;
    // No tool call is repeated by a client on its own; everything else may be.
    const isCall = url.includes('/.tools/') || url.endsWith('/mcp');
    expect(answer.headers['x-should-retry']).toBe(isCall ? 'false' : undefined);
    if (url.endsWith('/mcp')) {
      expect(answer.body).toEqual({ jsonrpc: '2.0', id: null, error: { code: -33503, message: sentence } });
    } else if (url.startsWith('/connect')) expect(answer.body).toEqual({ error: 'unavailable', message: sentence });
    else expect(answer.body).toEqual({ error: sentence });
  }

  verifies('health:ready', 'a database that only reads is unavailable, until it takes changes again', async () => {
    const name = new URL(database.url).pathname.slice(1);
    const setting = `ALTER DATABASE "${name}" SET default_transaction_read_only`;
    const reconnect = async () => {
      await relay.shut();
      await relay.open();
    };
    await query(database.url, `${setting} = on`);
    await reconnect();
    await until(async () => (await app.as().get('/ready')).status === 503, 'it is not ready');
    expectHonest(await app.as(owner).put(`/namespaces/${uniqueName('ns')}`));
    await query(database.url, `SET TRANSACTION READ WRITE; ${setting} = off`);
    await reconnect();
    await backToNormal();
  });

  verifies(
    'health:ready',
    'GET /ready returns 503 with the failed part, GET /health returns 200, and both recover',
    async () => {
      expect((await app.as().get('/ready')).body).toEqual(READY);
      await relay.shut();
      const { answer, ms } = await timed(app.as().get('/ready'));
      expect(ms).toBeLessThan(HONEST_MS_MAX);
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({
        ...READY,
        status: 'unavailable',
        database: 'down',
        queue: hasRedis ? 'ok' : 'down',
      });
      expect((await app.as().get('/health')).status).toBe(200);
      await relay.open();
      await backToNormal();
    },
  );

  longVerifies('health:ready', 'a dead network is noticed too, without a hang', async () => {
    relay.freeze();
    const { answer, ms } = await timed(app.as().get('/ready'));
    expect([answer.status, answer.body.database]).toEqual([503, 'down']);
    expect(ms).toBeLessThan(HONEST_MS_MAX);
    expect((await app.as().get('/health')).status).toBe(200);
    await relay.open();
    await backToNormal();
  });

  verifies(
    'health:ready',
    'requests return 503 with a message and Retry-After, and succeed again afterwards',
    async () => {
      await relay.shut();
      // The service needs the database when its cached keys and owners have expired.
      const answers = await until(async () => {
        const all = await askEverywhere();
        return all.every(({ status }) => status !== 200 && status !== 201) && all;
      }, 'every request needs the database');
      answers.forEach(expectHonest);
      const { ms } = await timed(askEverywhere());
      expect(ms).toBeLessThan(HONEST_MS_MAX);
      const calls = upstream.count('tools/call');
      expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(503);
      expect(upstream.count('tools/call')).toBe(calls);
      await relay.open();
      await backToNormal();
    },
  );

  longVerifies(
    'health:ready',
    'connections that the server ends are replaced, and no request is left hanging',
    async () => {
      for (let i = 0; i < 3; i += 1) {
        await query(
          database.url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()`,
        );
        const { answer: answers, ms } = await timed(askEverywhere());
        expect(ms).toBeLessThan(HONEST_MS_MAX);
        for (const answer of answers) if (answer.status >= 500) expectHonest(answer);
        await backToNormal();
      }
    },
  );

  longVerifies(
    ['health:ready', 'auth:revoked-key'],
    'a revoked key is published to other processes again afterwards',
    async () => {
      const sibling = await app.sibling();
      await relay.shut();
      await relay.open();
      await backToNormal();
      await until(async () => (await sibling.as().get('/ready')).status === 200, 'the other one is ready');
      const told = async () => {
        const made = await app.as(owner).post('/accounts/me/api-keys', { name: 'x' });
        const client = sibling.as({ ...owner, key: made.body.key as string });
        expect((await client.get('/accounts/me')).status).toBe(200);
        await app.as(owner).delete(`/accounts/me/api-keys/${made.body.id}`);
        const revokedAt = Date.now();
        await until(async () => (await client.get('/accounts/me')).status === 401, 'the key is refused');
        // Sooner than what a process remembers grows old: it was told.
        return Date.now() - revokedAt < 3_000;
      };
      await until(told, 'messages arrive again', 120_000);
      await sibling.close();
    },
  );
});

/** Lifetime of the rows in the caches of calls. */
const ROWS_CACHED_MS = 5_000;

describe('while the database is unavailable, for a minute', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let relay: DatabaseRelay;
  let upstream: Upstream;
  let app: TestApp;

  beforeAll(async () => {
    database = await cloneDatabase();
    relay = await startDatabaseRelay(database.url);
    upstream = await startUpstream();
    app = await startApp({ DATABASE_URL: relay.url });
  });
  afterAll(async () => {
    await relay.open();
    await app.close();
    await relay.close();
    await database.drop();
    await upstream.close();
  });

  verifies(
    'health:stale-reads',
    'calls of every kind succeed that were made in the 5 s before, whatever the headers of the connection',
    async () => {
      const owner = await app.account();
      const namespace = await createNamespace(app, owner);
      const server = await createServer(app, owner, { namespace });
      await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
      const connect = async (body: object) => (await createConnection(app, owner, { ...body }, { namespace })).path;
      const plain = await connect({ mcpUrl: upstream.url });
      const paths = [
        plain,
        await connect({ mcpUrl: upstream.url, headers: { 'x-tenant': 'a' } }),
        await connect({ mcpUrl: upstream.url, headers: { authorization: 'Bearer a' } }),
        await connect({ server }),
      ];
      const mock = await connect({ server, mock: { enabled: true } });
      const rpc = (name: string, args: object) => toolCall(1, name, args);
      const client = app.as(owner);
      const echo = { message: 'hi' };
      const calls = [
        ...paths.map((path) => () => client.post(`${path}/.tools/echo`, echo)),
        ...paths.map((path) => () => client.post(`${path}/mcp`, rpc('echo', echo))),
        () => client.post(`/connect/${namespace}/.mcp`, rpc(`${plain.split('/').at(-1)}__echo`, echo)),
        () => client.post(`/run/${server.replace('/', '--')}`, rpc('echo', echo)),
      ];
      const all = async () => {
        const answers = await Promise.all(calls.map((call) => call()));
        return answers.map(({ status, text }) => (status === 200 ? 200 : `${status} ${text}`));
      };
      const good = calls.map(() => 200);
      expect(await all()).toEqual(good);
      const readAt = performance.now();
      // Rows that are about to expire when the database goes.
      const calledAt = await until(async () => {
        if (performance.now() < readAt + ROWS_CACHED_MS - 1_000) return null;
        expect(await all()).toEqual(good);
        return performance.now();
      }, 'the rows are nearly expired');
      await until(() => performance.now() > readAt + ROWS_CACHED_MS + 500, 'the rows are expired');
      await relay.shut();
      expect(await all()).toEqual(good);
      await until(async () => {
        expect(await all()).toEqual(good);
        return performance.now() > calledAt + 2 * ROWS_CACHED_MS;
      }, 'no row is younger than the outage');
      // The answers of a simulated connection depend on its earlier calls, which are in the database.
      const simulated = await client.post(`${mock}/.tools/create_issue`, { title: 'a' });
      expect([simulated.status, simulated.headers['retry-after']]).toEqual([503, '2']);
      await relay.open();
      await until(async () => (await app.as().get('/ready')).body.database === 'ok', 'the database is back');
      expect(await all()).toEqual(good);
    },
  );

  verifies(
    'health:stale-reads',
    '/ready is degraded, a received revocation takes effect immediately, and the time ends',
    async () => {
      const [owner, other] = [await app.account(), await app.account()];
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const call = () => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
      expect((await call()).status).toBe(200);
      expect((await app.as(other).get('/namespaces')).status).toBe(200);
      await relay.shut();
      expect((await call()).status).toBe(200);
      const { status, body } = await app.as().get('/ready');
      expect([status, body]).toEqual([200, expect.objectContaining({ status: 'ok', database: 'degraded' })]);
      // A message of another process arrives through Redis, without the database.
      const [{ id }] = await query<{ id: string }>(database.url, 'SELECT id FROM api_keys WHERE account_id = $1', [
        owner.id,
      ]);
      (app.get(ApiKeysService) as unknown as { forget(id: string): void }).forget(id);
      expect((await call()).status).toBe(503);
      const [steady, wall] = [performance.now.bind(performance), Date.now];
      jest.spyOn(performance, 'now').mockImplementation(() => steady() + 70_000);
      jest.spyOn(Date, 'now').mockImplementation(() => wall() + 70_000);
      expect((await app.as().get('/ready')).status).toBe(503);
      expect((await app.as(other).get('/namespaces')).status).toBe(503);
      jest.restoreAllMocks();
    },
  );
});

describe('a clock that is off', () => {
  verifies('health:clock', 'is named in /ready and in the metrics', async () => {
    const app = await startApp({ ROLES: 'worker', METRICS_TOKEN: 'open' });
    const now = Date.now;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
    try {
      const { status, body } = await app.as().get('/ready');
      expect([status, body.clock]).toEqual([200, '3600 s ahead of the database']);
      expect((await app.as().get('/metrics')).text).toMatch(/slipway_clock_offset_seconds 3(599|600)/);
    } finally {
      clock.mockRestore();
    }
    await app.close();
  });
});

describe('while the queue is unavailable', () => {
  verifies('health:ready', 'GET /ready stays 200 and names the queue, with the queue in Postgres', async () => {
    // Without a worker: one that misses its tables asks for them without a pause, and nothing else gets a turn.
    const app = await startApp({ REDIS_URL: '', ROLES: 'api' });
    await app.database.query('ALTER SCHEMA bullmq RENAME TO elsewhere');
    const { status, body } = await app.as().get('/ready');
    expect([status, body]).toEqual([200, { ...READY, queue: 'down' }]);
    const owner = await app.account();
    expect((await app.as(owner).get('/namespaces')).status).toBe(200);
    await app.database.query('ALTER SCHEMA elsewhere RENAME TO bullmq');
    await until(async () => (await app.as().get('/ready')).body.queue === 'ok', 'the queue is back');
    await app.close();
  });

  if (existsSync(REDIS_SERVER)) {
    verifies('health:ready', 'GET /ready stays 200 and names the queue, with the queue in Redis', async () => {
      const port = await freePort();
      let redis = await startRedis(port);
      const app = await startApp({ REDIS_URL: `redis://127.0.0.1:${port}` });
      expect((await app.as().get('/ready')).body).toEqual(READY);
      redis.kill('SIGKILL');
      await once(redis, 'exit');
      await until(async () => (await app.as().get('/ready')).body.queue === 'down', 'the queue is known to be away');
      const { answer, ms } = await timed(app.as().get('/ready'));
      expect([answer.status, answer.body]).toEqual([200, { ...READY, queue: 'down' }]);
      expect(ms).toBeLessThan(1_000);

      // A request that uses the queue only to inform other processes works without it.
      const owner = await app.account();
      const made = await app.as(owner).post('/accounts/me/api-keys', { name: 'x' });
      const revoked = await timed(app.as(owner).delete(`/accounts/me/api-keys/${made.body.id}`));
      expect(revoked.answer.status).toBe(200);
      expect(revoked.ms).toBeLessThan(HONEST_MS_MAX);

      redis = await startRedis(port);
      await until(async () => (await app.as().get('/ready')).body.queue === 'ok', 'the queue is back');
      await app.close();
      redis.kill('SIGKILL');
      await once(redis, 'exit');
    });
  }
});
