import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { migrate } from '../../../src/platform/database/migrations.js';
import { dataSourceOptions, poolOf } from '../../../src/platform/database/data-source-options.js';
import { isDatabaseUnreachable } from '../../../src/platform/database/postgres-errors.js';
import { openClient, UNLIMITED } from '../../../src/platform/database/session.js';
import { QueueConnection } from '../../../src/platform/queue/queue-backend.js';
import { cloneDatabase, emptyDatabase, startApp, type TestApp } from '../../support/app.js';
import { startEndingPostgres, type EndingPostgres } from '../../support/database/ending-postgres.js';
import { query } from '../../support/database/query.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

describe('a session of Postgres', () => {
  verifies(
    'database:sessions:settings',
    'has the settings of the service, whatever the URL and the database say, and keeps the others of the URL',
    async () => {
      const { url, drop } = await emptyDatabase();
      await query(url, 'CREATE SCHEMA app');
      const database = new URL(url).pathname.slice(1);
      for (const name of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) {
        await query(url, `ALTER DATABASE ${database} SET ${name} = '100ms'`);
      }
      const relay = await startEndingPostgres(url);
      const given = `${relay.url}?options=${encodeURIComponent('-c search_path=app,public -c work_mem=5MB')}`;
      await migrate(given, async (source) => {
        await source.query('SELECT pg_sleep(0.3)');
        await source.query(
          `DO $$ BEGIN ASSERT current_schema() = 'app' AND to_regclass('app.api_keys') IS NOT NULL; END $$`,
        );
      });
      const asked = `SELECT current_setting('statement_timeout') AS "time", current_setting('search_path') AS "path",
                            current_setting('work_mem') AS "memory"`;
      const source = await new DataSource(dataSourceOptions(given, 1)).initialize();
      expect(await source.query(asked)).toEqual([{ time: '30s', path: 'app,public', memory: '5MB' }]);
      await source.destroy();
      const queue = new QueueConnection({ redisUrl: null, databaseUrl: given } as never);
      const pool = queue.option as unknown as Pool;
      expect((await pool.query(asked)).rows).toMatchObject([{ path: 'bullmq', memory: '5MB' }]);
      await queue.onApplicationShutdown();
      const client = await openClient(given, 'test', { ...UNLIMITED, lock_timeout: 7 });
      expect((await client.query(asked)).rows).toEqual([{ time: '0', path: 'app,public', memory: '5MB' }]);
      await client.end();
      // PgBouncer refuses any other parameter but `options`, which is the URL's.
      const sent = new Set(relay.starts.flatMap((start) => Object.keys(start)));
      expect([...sent].sort()).toEqual(['application_name', 'client_encoding', 'database', 'options', 'user']);
      await relay.close();
      await drop();
    },
  );

  it('has a listener for errors while it is borrowed from either pool', async () => {
    const { url, drop } = await cloneDatabase();
    const source = await new DataSource(dataSourceOptions(url, 1)).initialize();
    const queue = new QueueConnection({ redisUrl: null, databaseUrl: url } as never);
    for (const pool of [poolOf(source), queue.option as unknown as Pool]) {
      const client = await pool.connect();
      expect(client.listenerCount('error')).toBe(1);
      client.release();
    }
    await source.destroy();
    await queue.onApplicationShutdown();
    await drop();
  });

  it('is not given to the queue once Postgres has closed it, and the next one is', async () => {
    const { url, drop } = await cloneDatabase();
    const queue = new QueueConnection({ redisUrl: null, databaseUrl: url } as never);
    const pool = queue.option as unknown as Pool;
    // As node-postgres marks a client whose connection ends between the pool and the listener of BullMQ.
    pool.once('acquire', (client) => void Object.assign(client, { _queryable: false }));
    await expect(pool.connect()).rejects.toThrow(/^Connection terminated/);
    expect(pool.totalCount).toBe(0);
    const client = await pool.connect();
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    client.release();
    await queue.onApplicationShutdown();
    await drop();
  });

  it('fails with an error of the client where Postgres closes it in the packet that opens it', async () => {
    const { url, drop } = await cloneDatabase();
    const relay = await startEndingPostgres(url);
    relay.ending.test = 1;
    const error = await openClient(relay.url, 'test', UNLIMITED).catch((thrown: unknown) => thrown);
    expect(isDatabaseUnreachable(error)).toBe(true);
    const client = await openClient(relay.url, 'test', UNLIMITED);
    await client.end();
    await relay.close();
    await drop();
  });
});

describe('a service whose Postgres ends connections as it opens them', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let relay: EndingPostgres;
  let app: TestApp;

  beforeAll(async () => {
    database = await cloneDatabase();
    relay = await startEndingPostgres(database.url);
    app = await startApp({ DATABASE_URL: relay.url, REDIS_URL: '' });
  });
  afterAll(async () => {
    await app.close();
    await relay.close();
    await database.drop();
  });

  verifies('database:sessions:ended', 'lives, and answers again with either pool', async () => {
    Object.assign(relay.ending, { slipway: 6, 'slipway-queue': 6 });
    relay.cut();
    const ask = () =>
      app.database.query('SELECT 1').then(
        () => true,
        () => false,
      );
    await until(async () => {
      await ask();
      return relay.ending.slipway === 0 && relay.ending['slipway-queue'] === 0;
    }, 'six connections of each pool have ended');
    const ready = await until(async () => {
      const { status, body } = await app.as().get('/ready');
      return status === 200 && body.database === 'ok' && body.queue === 'ok' && body;
    }, 'the service is ready again');
    expect(ready).toMatchObject({ status: 'ok' });
  });
});
