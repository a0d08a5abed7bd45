/**
 * The service on Debian's Postgres and PgBouncer: a cluster and a pooler of its own in a temporary folder, which run as the
 * account `postgres` where the tests run as root. Skipped where one of the two is not installed.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { loadEnv } from '../../src/config/env.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { examine } from '../../src/platform/checks/surroundings.js';
import { query } from '../support/database/query.js';
import { endAfterFile } from '../support/jest/leftovers.mjs';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { REDIS_SERVER, startRedis } from '../support/redis.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { until } from '../support/until.js';

const SLOW_MS = 120_000;
const key = generateApiKey();
const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

const idOf = (kind: '-u' | '-g') => Number(execFileSync('id', [kind, 'postgres'], { encoding: 'utf8' }));
const account = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};

let folder: string;
let bin: string;
/** URL of the cluster as the role of the service, which owns nothing but its database. */
let direct: string;

/** Runs a program of Postgres to its end. */
const run = (program: string, args: string[]) =>
  promisify(execFile)(join(bin, program), args, {
    ...account,
    cwd: '/',
    env: { PATH: process.env.PATH, PGPASSWORD: 'pw' },
  });

/** Starts a program that runs until the tests are over. */
function start(program: string, args: string[]): void {
  const child = spawn(program, args, { ...account, cwd: '/', stdio: 'ignore' });
  endAfterFile(() => child.kill('SIGKILL'));
}

/** Resolves once a Postgres or a pooler lets clients in. @returns its URL */
async function answering(port: number, role = 'slipway', database = 'slipway'): Promise<string> {
  const url = `postgres://${role}:pw@127.0.0.1:${port}/${database}`;
  await until(async () => {
    const client = new pg.Client(url);
    client.on('error', () => undefined);
    const isIn = await client.connect().then(
      () => true,
      () => false,
    );
    await client.end();
    return isIn;
  }, `port ${port} lets clients in`);
  return url;
}

/** Starts a Postgres on a data folder. @returns its port */
async function startPostgres(data: string): Promise<number> {
  const port = await freePort();
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  start(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]);
  return port;
}

/** Starts PgBouncer with its default configuration but for the mode. @returns the URL through it */
async function startPgBouncer(mode: 'session' | 'transaction' | 'statement'): Promise<string> {
  const port = await freePort();
  const users = join(folder, 'users.txt');
  await writeFile(users, '"slipway" "pw"\n');
  const lines = ['[databases]', `slipway = host=127.0.0.1 port=${new URL(direct).port}`, '[pgbouncer]'];
  lines.push('listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =');
  lines.push(`auth_file = ${users}`, `pool_mode = ${mode}`);
  const file = join(folder, `${mode}.ini`);
  await writeFile(file, lines.join('\n'));
  start('/usr/sbin/pgbouncer', ['-q', file]);
  return mode === 'session' ? answering(port) : direct.replace(`:${new URL(direct).port}`, `:${port}`);
}

const faultsOf = async (url: string) => {
  const [{ faults }] = await examine(loadEnv({ ENCRYPTION_KEYS, DATABASE_URL: url }), ['postgres']);
  return faults;
};

beforeAll(async () => {
  const versions = await readdir('/usr/lib/postgresql');
  bin = `/usr/lib/postgresql/${versions.sort().at(-1)}/bin`;
  folder = await mkdtemp(join(tmpdir(), 'slipway-pgbouncer-'));
  await chmod(folder, 0o777);
  await writeFile(join(folder, 'password'), 'pw');
  const options = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${join(folder, 'password')}`, '-E', 'UTF8', '-N'];
  await run('initdb', ['-D', join(folder, 'primary'), ...options]);
  const port = await startPostgres(join(folder, 'primary'));
  const admin = await answering(port, 'postgres', 'postgres');
  await query(admin, `CREATE ROLE slipway LOGIN PASSWORD 'pw'`);
  await query(admin, `CREATE DATABASE slipway OWNER slipway ENCODING 'UTF8' TEMPLATE template0`);
  direct = await answering(port);
}, SLOW_MS);

afterAll(async () => {
  await cleanUpPrograms();
  if (folder) await rm(folder, { recursive: true, force: true, maxRetries: 20 });
}, SLOW_MS);

describe('PgBouncer with its default configuration', () => {
  it.each([['without Redis', false], ...(existsSync(REDIS_SERVER) ? [['with Redis', true] as const] : [])] as const)(
    'in session mode carries the service, which empties its queue, %s',
    async (_, hasRedis) => {
      const settings: Record<string, string> = { DATABASE_URL: await startPgBouncer('session'), ENCRYPTION_KEYS };
      if (hasRedis) {
        const port = await freePort();
        await startRedis(port);
        settings.REDIS_URL = `redis://127.0.0.1:${port}`;
      }
      const service = runProgram('main.js', {
        ...settings,
        DATA_DIR: await dataFolder(),
        BOOTSTRAP_API_KEY: key,
        QUEUE_PREFIX: hasRedis ? 'redis' : 'postgres',
      });
      const url = await service.url();
      const ask = async (method: string, path: string, body?: object) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const answer = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) });
        const text = await answer.text();
        expect([path, answer.status < 300, text]).toEqual([path, true, text]);
        return text;
      };
      expect(JSON.parse(await ask('GET', '/ready'))).toMatchObject({ database: 'ok', queue: 'ok' });
      await ask('PUT', '/namespaces/acme');
      await ask('PUT', '/servers/acme/weather', {});
      const record = { timestamp: new Date().toISOString(), logs: [{ message: `passed ${hasRedis}` }] };
      await ask('POST', '/servers/acme%2Fweather/logs', [record]);
      const read = () => ask('GET', '/servers/acme%2Fweather/logs');
      await until(async () => (await read()).includes(`passed ${hasRedis}`), 'the worker writes the record');
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
    SLOW_MS,
  );

  it.each(['transaction', 'statement'] as const)('in %s mode is refused in one sentence', async (mode) => {
    const url = await startPgBouncer(mode);
    const text = expect.stringMatching(
      /^The pooler in front of Postgres gives a session to other clients .*session`\)/,
    );
    await until(async () => !/ECONNREFUSED/.test((await faultsOf(url))[0]?.text), 'PgBouncer listens');
    expect(await faultsOf(url)).toEqual([{ text, isFatal: true }]);
  });
});

it(
  'a standby is refused',
  async () => {
    const standby = join(folder, 'standby');
    await run('pg_basebackup', [
      '-d',
      `postgres://postgres:pw@127.0.0.1:${new URL(direct).port}/`,
      '-D',
      standby,
      '-R',
      '-c',
      'fast',
    ]);
    const url = await answering(await startPostgres(standby));
    const text = 'Postgres is a standby, which takes no writes: name the primary in DATABASE_URL.';
    expect((await faultsOf(url)).map((fault) => fault.text)).toContain(text);
  },
  SLOW_MS,
);
