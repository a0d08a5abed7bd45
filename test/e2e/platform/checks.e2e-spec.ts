import { afterAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnv } from '../../../src/config/env.js';
import { faultsOf, type Fault } from '../../../src/platform/checks/check.js';
import { postgresFactChecks, type PostgresFacts } from '../../../src/platform/checks/postgres-checks.js';
import { redisFactChecks } from '../../../src/platform/checks/redis-checks.js';
import { examine, type Part } from '../../../src/platform/checks/surroundings.js';
import { cloneDatabase, emptyDatabase } from '../../support/app.js';
import { catalogOf } from '../../support/database/catalog.js';
import { query } from '../../support/database/query.js';
import { startPooler } from '../../support/database/transaction-pooler.js';
import { endAfterFile } from '../../support/jest/leftovers.mjs';
import { cleanUpPrograms, dataFolder, readySettings, runProgram } from '../../support/program.js';
import { REDIS_SERVER } from '../../support/redis.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

afterAll(cleanUpPrograms);

const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

async function found(part: Part, settings: Record<string, string>): Promise<Fault[]> {
  const [{ faults }] = await examine(loadEnv({ ENCRYPTION_KEYS, ...settings }), [part]);
  return faults;
}

/** What is said of a database after these statements, where `$db` is its name and `$me` the role. Its schema stays as it is. */
async function foundAfter(statements: string[], database = emptyDatabase, change = (url: URL) => void url) {
  const { url, drop } = await database();
  const { pathname, username } = new URL(url);
  for (const sql of statements) {
    await query(url, sql.replaceAll('$db', pathname.slice(1)).replaceAll('$me', username));
  }
  const changed = new URL(url);
  change(changed);
  const before = await catalogOf(url).catch(() => null);
  const faults = await found('postgres', { DATABASE_URL: changed.href });
  expect(await catalogOf(url).catch(() => null)).toEqual(before);
  for (const { text } of faults) expect(text).not.toContain(new URL(url).password);
  await drop();
  return faults;
}

describe('the checks of Postgres', () => {
  it.each([
    [
      'read-only',
      ['ALTER DATABASE $db SET default_transaction_read_only = on'],
      /^Transactions of the role "\w+" are read-only: `ALTER DATABASE/,
    ],
    [
      'without a schema',
      ['ALTER DATABASE $db SET search_path = nowhere'],
      /^The `search_path` of the role "\w+" names no schema/,
    ],
    [
      'of another program',
      ['CREATE TABLE accounts (id int)'],
      /^The schema "public" of the database "\w+" has tables of another program \(accounts\)/,
    ],
    [
      'with foreign migrations',
      ['CREATE TABLE migrations (version int)'],
      /tables of another program \(migrations\): use a database of its own/,
    ],
    [
      'without the right to make tables',
      ['REVOKE CREATE ON SCHEMA public FROM pg_database_owner'],
      /cannot create tables in the schema "public": `GRANT CREATE ON SCHEMA "public"/,
    ],
    [
      'without a free connection',
      ['ALTER DATABASE $db CONNECTION LIMIT 0'],
      /^Postgres has no connection left for the service \(too many connections/,
    ],
  ] as const)('refuse one %s', async (_, statements, text) => {
    expect(await foundAfter([...statements])).toEqual([{ text: expect.stringMatching(text), isFatal: true }]);
  });

  verifies('checks:postgres', 'accept an empty database, and one of this service', async () => {
    expect(await foundAfter([])).toEqual([]);
    expect(await foundAfter([], cloneDatabase)).toEqual([]);
  });

  it('name each right that is missing', async () => {
    const texts = (await foundAfter(['REVOKE CREATE ON DATABASE $db FROM $me'])).map(({ text }) => text);
    expect(texts).toEqual([
      expect.stringMatching(
        /cannot create the schema "bullmq" of the queue: `GRANT CREATE ON DATABASE "\w+" TO "\w+"`\.$/,
      ),
      expect.stringMatching(
        /cannot add the extensions btree_gin, pg_trgm to the database: .*`CREATE EXTENSION btree_gin;/,
      ),
    ]);
    const revoked = ['REVOKE INSERT ON servers FROM $me', 'REVOKE USAGE ON SCHEMA bullmq FROM $me'];
    expect(await foundAfter(revoked, cloneDatabase)).toEqual([
      { isFatal: true, text: expect.stringMatching(/cannot use the schema "bullmq"/) },
      { isFatal: true, text: expect.stringMatching(/cannot read and write all tables of the service \(servers\)/) },
    ]);
  });

  it('warn of few connections', async () => {
    const [fault, ...more] = await foundAfter(['ALTER DATABASE $db CONNECTION LIMIT 9'], cloneDatabase);
    expect(fault).toEqual({
      isFatal: false,
      text: expect.stringMatching(
        /^1 processes of the service can open \d+ connections, and Postgres has 9 for them: lower/,
      ),
    });
    expect(more).toEqual([]);
  });

  it('refuse another encoding', async () => {
    const { url, drop } = await emptyDatabase();
    const name = `${new URL(url).pathname.slice(1)}_latin`;
    await query(url, `CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`);
    const latin = new URL(url);
    latin.pathname = `/${name}`;
    const text = expect.stringMatching(/^The encoding of the database is LATIN1: .*ENCODING 'UTF8' TEMPLATE template0/);
    expect(await found('postgres', { DATABASE_URL: latin.href })).toEqual([{ text, isFatal: true }]);
    await query(url, `DROP DATABASE ${name}`);
    await drop();
  });

  it.each([
    [
      'a wrong password',
      (url: URL) => void (url.password = 'canary'),
      /^Postgres refuses the user or the password of DATABASE_URL \(password auth/,
    ],
    [
      'no password',
      (url: URL) => void (url.password = ''),
      /^Postgres refuses the user or the password of DATABASE_URL \(SASL/,
    ],
    [
      'a missing database',
      (url: URL) => void (url.pathname = '/none'),
      /^The database of DATABASE_URL cannot be used \(database "none" does not exist\): create/,
    ],
    [
      'TLS',
      (url: URL) => void (url.search = 'sslmode=verify-full'),
      /^Postgres offers no TLS, which DATABASE_URL requires: turn on/,
    ],
    [
      'a missing file',
      (url: URL) => void (url.search = 'sslrootcert=/none.pem'),
      /^DATABASE_URL names a file or a socket that cannot be opened \(ENOENT/,
    ],
    [
      'a dead address',
      (url: URL) => void (url.port = '1'),
      /^The database cannot be used \(connect ECONNREFUSED .*\): check DATABASE_URL\.$/,
    ],
  ])('refuse a URL with %s', async (_, change, text) => {
    expect(await foundAfter([], emptyDatabase, change)).toEqual([{ text: expect.stringMatching(text), isFatal: true }]);
  });

  verifies('checks:pooler', 'refuse a pooler that shares sessions', async () => {
    const { url, drop } = await emptyDatabase();
    for (const mode of ['transaction', 'statement'] as const) {
      const pooler = await startPooler(url, mode);
      const text = expect.stringMatching(/^The pooler in front of Postgres gives a session to other clients between/);
      expect(await found('postgres', { DATABASE_URL: pooler.url })).toEqual([{ text, isFatal: true }]);
      await pooler.close();
    }
    await drop();
  });

  it.each([
    [{ isStandby: true, isReadOnly: true }, /^Postgres is a standby, .*: name the primary/],
    [
      { notOwned: ['servers'] },
      /^Tables of the service do not belong to the role "me", .*\(servers\): `REASSIGN OWNED/,
    ],
    [{ missing: ['pg_trgm'] }, /^Postgres has no extension pg_trgm: install the package/],
    [{ notOwned: ['servers'], isWorker: false }, null],
  ] as [Partial<PostgresFacts>, RegExp | null][])('say of %j', (more, text) => {
    const well: PostgresFacts = {
      ...{ role: 'me', database: 'slipway', schema: 'public', version: '18.4', encoding: 'UTF8', isStandby: false },
      ...{
        isReadOnly: false,
        mayMakeSchemas: true,
        mayMakeTables: true,
        isOurs: true,
        hasQueue: true,
        mayUseQueue: true,
      },
      ...{ foreign: [], refused: [], notOwned: [], missing: [], notAllowed: [], keepsSessions: true, processes: 1 },
      ...{ wanted: 24, usable: 97, isWorker: true },
    };
    const faults = faultsOf(postgresFactChecks, { ...well, ...more });
    expect(faults).toEqual(text === null ? [] : [{ text: expect.stringMatching(text), isFatal: true }]);
  });
});

describe('the checks of Redis', () => {
  if (existsSync(REDIS_SERVER)) {
    it.each([
      [
        'evicts',
        ['--maxmemory-policy', 'allkeys-lru'],
        '',
        false,
        /can evict waiting jobs: its `maxmemory-policy` is allkeys-lru: `redis-cli/,
      ],
      ['lacks the database', [], '/99', true, /^Redis has no database 99: end REDIS_URL/],
      ['is a replica', ['--replicaof', '127.0.0.1', '1'], '', true, /^Redis is not a primary, its role is "slave"/],
      [
        'is a cluster',
        ['--cluster-enabled', 'yes'],
        '',
        true,
        /^Redis is a cluster, which is not supported: unset REDIS_URL/,
      ],
    ] as const)('say that it %s', async (_, options, database, isFatal, text) => {
      const port = await freePort();
      const folder = await mkdtemp(join(tmpdir(), 'slipway-redis-'));
      const child = spawn(REDIS_SERVER, ['--port', String(port), '--bind', '127.0.0.1', '--save', '', ...options], {
        cwd: folder,
      });
      endAfterFile(() => child.kill('SIGKILL'));
      let said = '';
      child.stdout.setEncoding('utf8').on('data', (line: string) => (said += line));
      await until(() => said.includes('Ready to accept connections'), 'Redis is up');
      const faults = await found('redis', { REDIS_URL: `redis://127.0.0.1:${port}${database}` });
      expect(faults).toEqual([{ text: expect.stringMatching(text), isFatal }]);
      child.kill('SIGKILL');
      await rm(folder, { recursive: true });
    });
  }
  it('refuse one that is too old', () => {
    const found = faultsOf(redisFactChecks, { info: { redis_version: '6.0.16' }, database: '0', hasDatabase: true });
    expect(found).toEqual([{ text: 'Redis 6.0.16 is too old: use 6.2 or newer.', isFatal: true }]);
  });
});

describe('a start and a doctor with several problems', () => {
  verifies('checks:together', 'name all of them in the same words, and leave nothing behind', async () => {
    const { DATABASE_URL, DATA_DIR } = await readySettings('unused');
    const { url, drop } = await emptyDatabase();
    await query(url, 'CREATE TABLE accounts (id int)');
    const before = await catalogOf(url);
    const file = join(DATA_DIR, 'file');
    await writeFile(file, '');
    const settings = {
      ENCRYPTION_KEYS,
      DATABASE_URL: url,
      DATA_DIR: file,
      REDIS_URL: 'redis://:canary@127.0.0.1:1',
      TMPDIR: join(await dataFolder(), 'none'),
    };
    expect(DATABASE_URL).not.toBe(url);
    const start = runProgram('main.js', settings);
    const doctor = runProgram('cli/slipway.js', settings, { args: ['doctor'] });
    expect(await Promise.all([start.ended, doctor.ended])).toEqual([1, 1]);
    const [introduction, ...lines] = start.output().trimEnd().split('\n');
    expect([introduction, lines.length]).toEqual(['Slipway did not start.', 4]);
    const failed = doctor.output().match(/^failed +(folders|redis|postgres) .*$/gm) ?? [];
    expect(failed.map((line) => line.replace(/^failed +\w+ +/, ''))).toEqual(lines);
    expect(start.output() + doctor.output()).not.toContain('canary');
    expect(await catalogOf(url)).toEqual(before);
    await drop();
  });
});
