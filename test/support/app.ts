import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { DataSource } from 'typeorm';
import pg from 'pg';
import supertest from 'supertest';
import { createApp } from '../../src/app.setup.js';
import { loadEnv, type Env } from '../../src/config/env.js';
import { Tuning } from '../../src/config/tuning.js';
import { generateApiKey, hashApiKey, prefixOf } from '../../src/modules/auth/api-key.js';
import type { ExternalModule } from '../../src/platform/external-modules/load-external-modules.js';
import { databaseAvailability } from '../../src/platform/database/database-availability.js';
import { chooseQueueBackend } from '../../src/platform/queue/queue-backend.js';
import { createPino, PinoLoggerService } from '../../src/platform/telemetry/logger.js';
import { endAfterFile } from './jest/leftovers.mjs';
import { drawNumber } from './seed.mjs';
import { until } from './until.js';
import { freePort } from './upstream/upstream-net.js';

/** An account with one key, as tests use them. */
export interface TestAccount {
  id: string;
  name: string;
  key: string;
}

/** Requests with one key, or none. Paths are sent as they are written. */
export interface TestClient {
  get(path: string): supertest.Test;
  put(path: string, body?: object): supertest.Test;
  post(path: string, body?: object): supertest.Test;
  patch(path: string, body?: object): supertest.Test;
  delete(path: string): supertest.Test;
}

/** A whole service on a database of its own. */
export interface TestApp {
  /** `http://127.0.0.1:port` */
  url: string;
  env: Env;
  database: DataSource;
  /** The operator's account. */
  operator: TestAccount;
  /** Requests as this account; without one, without a key. */
  as(account?: Partial<TestAccount> & Pick<TestAccount, 'key'>): TestClient;
  /** Creates an account with a key, past the API. */
  account(overrides?: { kind?: 'user' | 'organization'; isOperator?: boolean }): Promise<TestAccount>;
  /** A service of the process, for what has no route. */
  get<T>(type: abstract new (...args: never[]) => T): T;
  /**
   * A second process on the same database, as far as a process can be one inside a test. Its role is `api` unless the
   * settings say otherwise: queues, hosting and sweeps of a process that only answers requests would cost a second start.
   */
  sibling(settings?: NodeJS.ProcessEnv, tuning?: Partial<Tuning>): Promise<TestApp>;
  close(): Promise<void>;
}

/** A name of a namespace, server or connection that no other of the test file has. It follows from the seed, and so does its place in a sorted list. */
export function uniqueName(prefix = 'test'): string {
  return `${prefix}-${Math.floor(drawNumber() * 2 ** 40)
    .toString(16)
    .padStart(10, '0')}`;
}

/** A database on the Postgres of the test run. The caller drops it. */
interface TestDatabase {
  url: string;
  drop: () => Promise<void>;
}

/** A new database with every table and no row, cloned from the template. */
export function cloneDatabase(): Promise<TestDatabase> {
  return createDatabase('slipway_template');
}

/** A new database without a table, as before the first start. */
export function emptyDatabase(): Promise<TestDatabase> {
  return createDatabase('template1');
}

async function createDatabase(template: string): Promise<TestDatabase> {
  const server = process.env.TEST_DATABASE_URL;
  if (!server) throw new Error('Run the tests with `npm test`: the global setup starts their database.');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const run = async (sql: string) => {
    const client = new pg.Client(server);
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  // The default strategy writes each page of the template to the log as well.
  await run(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const drop = async () => {
    await run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    return true;
  };
  // Again, when it is being vacuumed: only a superuser may end that.
  return { url: url.href, drop: () => until(drop, `${name} is dropped`).then(() => undefined) };
}

function clientOf(url: string, key: string | undefined): TestClient {
  const agent = supertest(url);
  const keyed = (test: supertest.Test) => (key === undefined ? test : test.set('authorization', `Bearer ${key}`));
  return {
    get: (path) => keyed(agent.get(path)),
    put: (path, body) => keyed(agent.put(path)).send(body),
    post: (path, body) => keyed(agent.post(path)).send(body),
    patch: (path, body) => keyed(agent.patch(path)).send(body),
    delete: (path) => keyed(agent.delete(path)),
  };
}

async function addAccount(
  database: DataSource,
  { kind = 'user', isOperator = false }: { kind?: string; isOperator?: boolean } = {},
): Promise<TestAccount> {
  const account = { id: randomUUID(), name: uniqueName('account'), key: generateApiKey() };
  await database.query('INSERT INTO accounts (id, name, kind, is_operator) VALUES ($1, $2, $3, $4)', [
    account.id,
    account.name,
    kind,
    isOperator,
  ]);
  await database.query('INSERT INTO api_keys (account_id, name, prefix, hash) VALUES ($1, $2, $3, $4)', [
    account.id,
    'test',
    prefixOf(account.key),
    hashApiKey(account.key),
  ]);
  return account;
}

/** Another test took the port in between, or the machine was too busy to connect to its own database in 5 s. */
function isPassing(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'EADDRINUSE' || /connection timeout/.test(message);
}

/** Starts it, again where what went wrong passes. */
async function startOn(...parameters: Parameters<typeof startOnce>): Promise<TestApp> {
  for (let triesLeft = 2; ; triesLeft -= 1) {
    try {
      return await startOnce(...parameters);
    } catch (error) {
      if (triesLeft === 0 || !isPassing(error)) throw error;
    }
  }
}

async function startOnce(
  databaseUrl: string,
  settings: NodeJS.ProcessEnv,
  tuning: Partial<Tuning>,
  modules: ExternalModule[],
  operator: TestAccount | null,
  afterClose: () => Promise<void>,
): Promise<TestApp> {
  const env = loadEnv({
    PORT: String(await freePort()),
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_MAX: '5',
    REDIS_URL: process.env.TEST_REDIS_URL,
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    EGRESS_ALLOW: 'loopback',
    // Nothing listens there: no test calls the registry itself.
    OFFICIAL_REGISTRY_URL: 'http://127.0.0.1:9',
    LOG_LEVEL: 'fatal',
    // Tests send many wrong keys from one address.
    AUTH_FAILURES_MAX: '100000',
    ACCOUNT_LIMITS: 'namespaces=100000,apiKeys=100000,servers=100000',
    ...settings,
  });
  chooseQueueBackend(env);
  const logger = new PinoLoggerService(createPino(env));
  const app = await createApp(env, { logger, modules }, new Tuning(tuning));
  try {
    await app.listen(env.port, '127.0.0.1');
  } catch (error) {
    await app.close();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= app.close().then(afterClose).finally(forget));
  const forget = endAfterFile(close);
  // Of the process: the database of an earlier file may have gone away.
  databaseAvailability.markAvailable();
  const url = `http://127.0.0.1:${env.port}`;
  const database = app.get(DataSource);
  const owner = operator ?? (await addAccount(database, { isOperator: true }));
  return {
    url,
    env,
    database,
    operator: owner,
    as: (account) => clientOf(url, account?.key),
    account: (overrides) => addAccount(database, overrides),
    get: (type) => app.get(type as Type, { strict: false }),
    sibling: (more = {}, tuned = {}) =>
      startOn(
        databaseUrl,
        { ...settings, ROLES: 'api', ...more },
        { ...tuning, ...tuned },
        modules,
        owner,
        async () => undefined,
      ),
    close,
  };
}

/**
 * Starts the service as `main.ts` does, on a database of its own; `close` ends both, at the latest when the test file is
 * over. `settings` are environment variables on top of the tests' own, and `tuning` replaces fixed values, and
 * `modules` are loaded as those of SLIPWAY_MODULES. The queue is on Redis when TEST_REDIS_URL is set.
 * Uploaded files are in an S3 server of its own when TEST_FILES is `s3`.
 */
export async function startApp(
  settings: NodeJS.ProcessEnv = {},
  tuning: Partial<Tuning> = {},
  modules: ExternalModule[] = [],
): Promise<TestApp> {
  const database = await cloneDatabase();
  const s3 = process.env.TEST_FILES === 's3' ? await (await import('./s3.js')).startS3() : null;
  const defaults = {
    QUEUE_PREFIX: `queue-${randomUUID()}`,
    DATA_DIR: await mkdtemp(join(tmpdir(), 'slipway-data-')),
    BLOB_URL: s3?.blobUrl,
  };
  return startOn(database.url, { ...defaults, ...settings }, tuning, modules, null, async () => {
    await s3?.close();
    await database.drop();
    await rm(defaults.DATA_DIR, { recursive: true, force: true });
  });
}

/** The service of all tests of the file that calls this; its members can be used from the first hook or test on. */
export function testApp(...started: Parameters<typeof startApp>): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => void Object.assign(app, await startApp(...started)));
  return app;
}

/** An account of that service, with a key; its members can be used from the first hook or test on. */
export function testAccount(app: TestApp, overrides?: Parameters<TestApp['account']>[0]): TestAccount {
  const account = {} as TestAccount;
  beforeAll(async () => void Object.assign(account, await app.account(overrides)));
  return account;
}
