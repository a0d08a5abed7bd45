import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import supertest from 'supertest';
import { loadEnv } from '../../../src/config/env.js';
import { startInfrastructure } from '../../../src/infrastructure.js';
import { startEmbeddedPostgres } from '../../../src/platform/embedded/embedded-postgres.js';
import { generateApiKey, hashApiKey } from '../../../src/modules/auth/api-key.js';
import { emptyDatabase } from '../../support/app.js';
import {
  cleanUpPrograms,
  dataFolder,
  isAlive,
  postgresOf,
  runProgram,
  usedDataFolder,
  type Program,
} from '../../support/program.js';
import { startDatabaseRelay } from '../../support/database/database-relay.js';
import { query } from '../../support/database/query.js';
import { openBrowser } from '../../support/people/browser-session.js';
import { REDIS_SERVER, startRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { longIt } from '../../support/jest/globals.mjs';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

/** Advisory lock of the migrations, which processes that start together wait for. */
const MIGRATION_LOCK = 7_265_017;

const vaultKey = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

afterAll(cleanUpPrograms, SLOW_MS);

function bearer(key: string | null): [string, string] {
  return ['authorization', `Bearer ${key}`];
}

describe('the first start', () => {
  longVerifies(
    ['start:first-key', 'stop:graceful'],
    'prints a key that works, once; the second start prints none, and the data and the key are still there',
    async () => {
      const dataDir = await dataFolder();
      const first = runProgram('main.js', { DATA_DIR: dataDir, LOG_FORMAT: 'pretty' });
      const url = await first.url();
      const key = await first.key();
      expect(key).toMatch(/^slipway_[A-Za-z0-9_-]{43}$/);
      expect(first.output().split(key as string)).toHaveLength(2);
      expect(first.output()).toContain(`${url}/docs`);
      const me = await supertest(url)
        .get('/accounts/me')
        .set(...bearer(key));
      expect(me.body).toMatchObject({ name: 'operator', isOperator: true });
      expect(
        (
          await supertest(url)
            .put('/namespaces/kept')
            .set(...bearer(key))
        ).status,
      ).toBe(201);
      const postgres = (await postgresOf(dataDir)) as number;
      first.kill('SIGTERM');
      expect(await first.ended).toBe(0);
      expect(isAlive(postgres)).toBe(false);
      expect(await postgresOf(dataDir)).toBeNull();

      // On a database that has an operator, the setting for the first key changes nothing.
      const later = generateApiKey();
      const second = runProgram('main.js', { DATA_DIR: dataDir, BOOTSTRAP_API_KEY: later, LOG_FORMAT: 'json' });
      const again = await second.url();
      expect((await supertest(again).get('/ready')).status).toBe(200);
      expect(await second.key()).toBeNull();
      expect(second.output()).not.toContain('slipway_');
      const refused = await supertest(again)
        .get('/namespaces')
        .set(...bearer(later));
      expect(refused.status).toBe(401);
      const list = await supertest(again)
        .get('/namespaces')
        .set(...bearer(key));
      expect(list.body.namespaces).toMatchObject([{ name: 'kept' }]);
      // For a reload by a supervisor of processes, which starts it again.
      second.kill('SIGHUP');
      expect(await second.ended).toBe(0);
      // With this format a collector of lines reads every one of them.
      expect(second.logs()).toHaveLength(second.output().trimEnd().split('\n').length);
      const third = runProgram('main.js', { DATA_DIR: dataDir, PORT: 'none', LOG_FORMAT: 'json' });
      expect(await third.ended).toBe(1);
      expect(third.logs()).toMatchObject([{ level: 'fatal', reason: expect.stringContaining('PORT ') }]);
    },
    SLOW_MS,
  );

  verifies(
    'start:first-key',
    'takes the operator’s key from BOOTSTRAP_API_KEY on an empty database, and prints it nowhere',
    async () => {
      const given = generateApiKey();
      const database = await emptyDatabase();
      const settings = { DATABASE_URL: database.url, ENCRYPTION_KEYS: vaultKey };
      const service = runProgram('main.js', { ...settings, BOOTSTRAP_API_KEY: given, LOG_LEVEL: 'trace' });
      const url = await service.url();
      expect(await service.key()).toBeNull();
      expect(
        (
          await supertest(url)
            .get('/accounts')
            .set(...bearer(given))
        ).status,
      ).toBe(200);
      expect(service.output()).not.toContain(given);
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
      await database.drop();
    },
    SLOW_MS,
  );

  longVerifies(
    'stop:graceful',
    'ends in order while it starts, the embedded Postgres too',
    async () => {
      const { dataDir } = await usedDataFolder();
      const holder = await startEmbeddedPostgres({ dataDir, log: () => undefined });
      const lock = new pg.Client(holder.url);
      lock.on('error', () => undefined);
      await lock.connect();
      await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
      const shared = runProgram('main.js', { DATA_DIR: dataDir });
      const isWaiting = async (url: string) =>
        (await query(url, `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'`)).length > 0;
      await until(() => isWaiting(holder.url), 'it waits in the middle of its start');
      shared.kill('SIGTERM');
      expect(await shared.ended).toBe(0);
      await lock.end();
      await holder.stop();

      const own = runProgram('main.js', { DATA_DIR: dataDir });
      const postgres = await until(() => postgresOf(dataDir), 'its Postgres runs');
      own.kill('SIGTERM');
      expect(await own.ended).toBe(0);
      expect(own.output()).not.toContain('did not start');
      expect([isAlive(postgres), await postgresOf(dataDir)]).toEqual([false, null]);
    },
    SLOW_MS,
  );

  longVerifies(
    'start:first-key',
    'creates one operator with one key for two processes on one empty database, and both come up',
    async () => {
      const database = await emptyDatabase();
      const settings = { DATABASE_URL: database.url, ENCRYPTION_KEYS: vaultKey, LOG_FORMAT: 'pretty' };
      // Both wait for the lock of the migrations, so that they begin at the same moment.
      const lockHolder = new pg.Client(database.url);
      await lockHolder.connect();
      await lockHolder.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
      const services = [1, 2].map(() => runProgram('main.js', settings));
      const waiting = `SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`;
      await until(async () => (await lockHolder.query(waiting)).rowCount === 2, 'both wait');
      await lockHolder.end();
      const keys = await Promise.all(services.map((service) => service.key()));
      const [key, ...others] = keys.filter((found) => found !== null);
      expect(others).toEqual([]);
      for (const service of services) {
        const response = await supertest(await service.url())
          .get('/accounts')
          .set(...bearer(key ?? null));
        expect(response.body.accounts).toMatchObject([{ name: 'operator', isOperator: true }]);
      }
      expect(await query(database.url, 'SELECT count(*)::int AS keys FROM api_keys')).toEqual([{ keys: 1 }]);
      for (const service of services) service.kill('SIGTERM');
      expect(await Promise.all(services.map((service) => service.ended))).toEqual([0, 0]);
      await database.drop();
    },
    SLOW_MS,
  );
});

describe('the link of the first start', () => {
  verifies(
    'start:sign-in-link',
    'signs the operator in once, within 15 minutes, and is printed once, also for containers',
    async () => {
      const database = await emptyDatabase();
      const settings = { DATABASE_URL: database.url, ENCRYPTION_KEYS: vaultKey, HOST: '0.0.0.0' };
      const first = runProgram('main.js', settings);
      const url = await first.url();
      const link = String(first.logs().find(({ msg }) => msg === 'Slipway listens')?.signInUrl);
      // A log that is stored has the link, which ends, and no key.
      expect(first.output()).not.toContain('slipway_');
      expect(link.startsWith(`${url}/invite?token=`)).toBe(true);
      const minutes = 'SELECT ceil(extract(epoch FROM expires_at - now()) / 60)::int AS minutes FROM invitations';
      expect(await query(database.url, minutes)).toEqual([{ minutes: 15 }]);
      const browser = openBrowser({ url });
      const path = link.slice(url.length);
      await query(database.url, `UPDATE invitations SET expires_at = expires_at - interval '15 minutes'`);
      expect((await browser.get(path)).status).toBe(410);
      await query(database.url, `UPDATE invitations SET expires_at = expires_at + interval '15 minutes'`);
      const password = 'three words are enough';
      const used = await browser.submit(path, { password, repeated: password });
      expect([used.status, used.headers.location]).toEqual([303, './ui/']);
      expect((await browser.get('/ui/')).text).toContain('Signed in as <strong>operator</strong>');
      expect((await openBrowser({ url }).get(path)).status).toBe(410);
      first.kill('SIGTERM');
      expect(await first.ended).toBe(0);
      const second = runProgram('main.js', settings);
      await second.url();
      expect(second.output()).not.toContain('/invite?');
      second.kill('SIGTERM');
      await second.ended;
      await database.drop();
    },
  );
});

describe('npm run keys', () => {
  longVerifies(
    'start:first-key',
    'creates keys that work, before the first start, while the service runs and while it does not',
    async () => {
      const dataDir = await dataFolder();
      const make = async (...args: string[]) => {
        const command = runProgram('cli/slipway.js', { DATA_DIR: dataDir }, { args: ['keys', ...args] });
        expect(await command.ended).toBe(0);
        return /^slipway_\S+$/m.exec(command.output())?.[0] ?? null;
      };
      const first = await make();
      expect(await postgresOf(dataDir)).toBeNull();

      const service = runProgram('main.js', { DATA_DIR: dataDir });
      const url = await service.url();
      expect(await service.key()).toBeNull();
      const second = await make('--name', 'made while it runs');
      for (const key of [first, second]) {
        expect(
          (
            await supertest(url)
              .get('/accounts')
              .set(...bearer(key))
          ).status,
        ).toBe(200);
      }
      const list = await supertest(url)
        .get('/accounts/me/api-keys')
        .set(...bearer(first));
      // No key was made that nobody has seen.
      expect(list.body.apiKeys.map(({ name }: { name: string }) => name)).toEqual(['made while it runs', 'first key']);

      const limited = await make('--scopes', 'read,call:acme');
      const access = await supertest(url)
        .get('/accounts/me/access')
        .set(...bearer(limited));
      expect(access.body.scopes).toEqual(['read', 'call:acme']);
      const wrong = runProgram('cli/slipway.js', { DATA_DIR: dataDir }, { args: ['keys', '--scopes', 'write'] });
      expect(await wrong.ended).toBe(1);
      expect(wrong.output()).toMatch(/"write" is not a scope: the scopes are read, call, publish, manage, each/);

      const unknown = runProgram('cli/slipway.js', { DATA_DIR: dataDir }, { args: ['keys', '--account', 'nobody'] });
      expect(await unknown.ended).toBe(1);
      expect(unknown.output()).toBe(
        'There is no account named "nobody": the operator makes one with POST /accounts.\n',
      );
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
    SLOW_MS,
  );
});

describe('a start that cannot succeed', () => {
  /** Reasons that the process printed, without the line before them. */
  async function reasons(settings: Record<string, string>, uid?: number): Promise<string[]> {
    const service = runProgram('main.js', settings, { uid });
    expect(await service.ended).toBe(1);
    const [introduction, ...lines] = service.output().trimEnd().split('\n');
    expect(introduction).toBe('Slipway did not start.');
    return lines;
  }

  verifies('start:bad-setting', 'warns of --tuning, and refuses a member that does not exist', async () => {
    const settings = { DATA_DIR: await dataFolder(), REDIS_URL: 'redis://127.0.0.1:1', LOG_FORMAT: 'json' };
    const start = (tuning: object) => runProgram('main.js', settings, { tuning });
    const [tuned, unknown] = [start({ releaseKeep: 1 }), start({ releaseKept: 1 })];
    expect(await Promise.all([tuned.ended, unknown.ended])).toEqual([1, 1]);
    expect(tuned.logs()[0]).toMatchObject({ level: 'warn', msg: expect.stringContaining('--tuning') });
    expect(unknown.logs()).toMatchObject([
      { level: 'fatal', reason: expect.stringMatching(/^--tuning: releaseKept is not a known name/) },
    ]);
  });

  verifies('start:bad-setting', 'names every problem in a message of its own, and repeats no value', async () => {
    const dataDir = join(await dataFolder(), 'data');
    const settings = {
      DATA_DIR: dataDir,
      PORT: '70000',
      DATABASE_URL: 'mysql://me:canary-password@127.0.0.1/x',
      LOG_LEVEL: 'loud',
      EGRESS_ALLOW: '10.0.0.7/8',
      BOOTSTRAP_API_KEY: 'slipway_canary-key',
      UPSTREAM_CONNECT_TIMEOUT_MS: '60000',
    };
    const lines = await reasons(settings);
    expect(lines).toEqual([
      'PORT must be a whole number from 0 to 65535.',
      'DATABASE_URL must be a URL that starts with postgres: or postgresql://.',
      'BOOTSTRAP_API_KEY must be "slipway_" and 32 random bytes in base64url (43 characters).',
      'UPSTREAM_CONNECT_TIMEOUT_MS must be a whole number from 100 to 54000.',
      'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal.',
      'ENCRYPTION_KEYS must be set with DATABASE_URL: make one with `echo "k1:$(openssl rand -base64 32)"`.',
      expect.stringMatching(/^EGRESS_ALLOW: "10\.0\.0\.7\/8" has bits set after the prefix; .*\.$/),
    ]);
    expect(lines.join()).not.toContain('canary');
    await expect(readdir(dataDir)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  verifies('start:secret-file', 'names a secret that is given twice or whose file cannot be read', async () => {
    const dataDir = await dataFolder();
    const file = join(dataDir, 'token');
    await writeFile(file, 'canary-token-of-16-characters');
    const settings = {
      DATABASE_URL_FILE: join(dataDir, 'missing'),
      ENCRYPTION_KEYS_FILE: file,
      METRICS_TOKEN: 'canary-token-of-16-characters',
      METRICS_TOKEN_FILE: file,
    };
    expect(await reasons(settings)).toEqual([
      'DATABASE_URL must be in the file that DATABASE_URL_FILE names, which cannot be read (ENOENT).',
      'ENCRYPTION_KEYS must be a list of id:key where key is 32 bytes in base64.',
      'METRICS_TOKEN must not be set together with METRICS_TOKEN_FILE: remove one of them.',
    ]);
  });

  verifies('start:bad-setting', 'names the port and what to do, and has started nothing', async () => {
    const dataDir = join(await dataFolder(), 'data');
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    expect(await reasons({ DATA_DIR: dataDir, PORT: String(port) })).toEqual([
      `Port ${port} on 127.0.0.1 is in use: stop what listens there, or set PORT.`,
    ]);
    await expect(readdir(dataDir)).rejects.toMatchObject({ code: 'ENOENT' });
    other.close();
  });

  longVerifies('start:bad-setting', 'reports an address that this machine does not have', async () => {
    const [line, ...more] = await reasons({ DATA_DIR: await dataFolder(), HOST: 'no-such-host.invalid', PORT: '3999' });
    expect(line).toMatch(/^Cannot listen on no-such-host\.invalid:3999 \(\w+\): check HOST and PORT\.$/);
    expect(more).toEqual([]);
  });

  describe('in a folder that cannot be written', () => {
    const refuses =
      (...names: string[]) =>
      async () => {
        const folder = await dataFolder();
        await mkdir(join(folder, 'closed'));
        await chmod(join(folder, 'closed'), 0o555);
        await writeFile(join(folder, 'file'), '');
        const unprivileged = process.getuid?.() === 0 ? 65_534 : undefined;
        for (const name of names) {
          const [line, ...more] = await reasons({ DATA_DIR: join(folder, name) }, unprivileged);
          expect(line).toContain(`The files of the service cannot be kept in ${join(folder, name)} (`);
          expect(line).toMatch(/: give the folder to the user .*, or choose another one in DATA_DIR\.$/);
          expect(more).toEqual([]);
        }
      };

    verifies('start:bad-setting', 'names the folder and what to do', refuses('closed/below', 'file'));
    longVerifies('start:bad-setting', 'names it in the other cases', refuses('closed', 'file/below'));
  });

  longVerifies('start:bad-setting', 'is refused immediately where the file system takes no directories', async () => {
    const [line, ...more] = await reasons({ DATA_DIR: '/proc/slipway/below' });
    expect(line).toContain('The database cannot be kept in /proc/slipway/below ');
    expect(more).toEqual([]);
  });

  longVerifies('start:bad-setting', 'reports that REDIS_URL cannot be reached, without its password', async () => {
    const lines = await reasons({ DATA_DIR: await dataFolder(), REDIS_URL: 'redis://:canary-password@127.0.0.1:1' });
    expect(lines).toEqual(['Redis cannot be used (connect ECONNREFUSED 127.0.0.1:1): check REDIS_URL.']);
  });

  longVerifies('start:bad-setting', 'reports that DATABASE_URL cannot be reached, without its password', async () => {
    const url = 'postgres://me:canary-password@127.0.0.1:1/x';
    const lines = await reasons({ DATABASE_URL: url, ENCRYPTION_KEYS: vaultKey });
    expect(lines).toEqual(['The database cannot be used (connect ECONNREFUSED 127.0.0.1:1): check DATABASE_URL.']);
  });

  verifies('start:bad-setting', 'reports a damaged file of encryption keys', async () => {
    const dataDir = await dataFolder();
    await writeFile(join(dataDir, 'encryption-keys'), '');
    const service = runProgram('main.js', { DATA_DIR: dataDir });
    expect(await service.ended).toBe(1);
    expect(service.output()).toMatch(
      /^Slipway did not start\.\n\S+encryption-keys does not hold encryption keys .*\.\n$/,
    );
    expect(await readFile(join(dataDir, 'encryption-keys'), 'utf8')).toBe('');
    expect(await postgresOf(dataDir)).toBeNull();
  });

  longVerifies('start:bad-setting', 'reports an older database, with MIGRATE=off', async () => {
    const database = await emptyDatabase();
    const settings = { DATABASE_URL: database.url, ENCRYPTION_KEYS: vaultKey, MIGRATE: 'off' };
    expect(await reasons(settings)).toEqual(['The database is older than this version: run `npm run migrate` first.']);
    const migration = runProgram('cli/slipway.js', settings, { args: ['migrate'] });
    expect(await migration.ended).toBe(0);
    const key = /^slipway_\S+$/m.exec(migration.output())?.[0] ?? '';
    expect(await query(database.url, 'SELECT hash FROM api_keys')).toEqual([{ hash: hashApiKey(key) }]);
    const { firstKey } = await startInfrastructure(loadEnv(settings));
    expect(firstKey).toBeNull();
    await database.drop();
  });
});

describe('one process with the embedded Postgres, open to the network', () => {
  let service: Program;
  let url: string;
  let dataDir: string;
  let key: string;

  beforeAll(async () => {
    ({ dataDir, key } = await usedDataFolder());
    const settings = { HOST: '0.0.0.0', DRAIN_MS: '60000', ACCESS_LOG: 'true', ROLES: 'api' };
    service = runProgram('main.js', { DATA_DIR: dataDir, ...settings });
    url = await service.url();
  }, SLOW_MS);

  const get = (path: string) =>
    supertest(url)
      .get(path)
      .set(...bearer(key));

  longVerifies('start:open-host', 'links begin with localhost, and a warning states that', () => {
    expect(url).toMatch(/^http:\/\/localhost:\d+$/);
    const warned = service.logs().filter(({ msg }) => String(msg).startsWith('PUBLIC_URL is not set'));
    expect(warned).toMatchObject([{ level: 'warn', msg: expect.stringContaining(url) }]);
  });

  longVerifies(
    'health:embedded-restart',
    'Postgres that is killed is started again, and the process works on',
    async () => {
      process.kill((await postgresOf(dataDir)) as number, 'SIGKILL');
      await until(async () => (await get('/ready')).body.database !== 'ok', 'it is noticed');
      await until(async () => (await get('/ready')).body.database === 'ok', 'it is back', 60_000);
      expect((await get('/namespaces')).status).toBe(200);
      const warned = service.logs().filter(({ msg }) => String(msg).includes('ended by itself'));
      expect(warned).toMatchObject([{ level: 'warn', msg: expect.stringContaining('it is started again') }]);
    },
    SLOW_MS,
  );

  longVerifies('stop:drain', 'serves after the signal while /ready is 503, and a second signal stops it', async () => {
    const kept = async () => (await fetch(`${await service.url()}/health`)).headers.get('connection');
    expect(await kept()).toBe('keep-alive');
    service.kill('SIGTERM');
    await until(async () => (await get('/ready')).status === 503, 'it is not ready any more');
    expect((await get('/ready')).body).toMatchObject({ status: 'stopping', database: 'ok' });
    expect((await get('/namespaces')).status).toBe(200);
    expect(await kept()).toBe('close');
    service.kill('SIGTERM');
    expect(await service.ended).toBe(1);
  });
});

describe('the end', () => {
  let dataDir: string;
  let key: string;
  /** The process that started after the one that was killed, and which is stopped in order. */
  let service: Program;

  longVerifies(
    'stop:killed',
    'after SIGKILL no Postgres stays behind, and the next start has the data',
    async () => {
      ({ dataDir, key } = await usedDataFolder());
      const killed = runProgram('main.js', { DATA_DIR: dataDir });
      expect(
        (
          await supertest(await killed.url())
            .put('/namespaces/kept')
            .set(...bearer(key))
        ).status,
      ).toBe(201);
      const postgres = (await postgresOf(dataDir)) as number;
      killed.kill('SIGKILL');
      expect(await killed.ended).toBe('SIGKILL');
      await until(() => !isAlive(postgres), 'Postgres has ended');

      service = runProgram('main.js', { DATA_DIR: dataDir });
      const list = await supertest(await service.url())
        .get('/namespaces')
        .set(...bearer(key));
      expect(list.body.namespaces).toMatchObject([{ name: 'kept' }]);
    },
    SLOW_MS,
  );

  longVerifies(
    'stop:graceful',
    'a stop signal lets a running call finish, closes the upstream session and stops Postgres, waits for no silent client, and exits 0',
    async () => {
      const upstream = await startUpstream({ sessions: true });
      const url = await service.url();
      await supertest(url)
        .put('/connect/kept/c1')
        .set(...bearer(key))
        .send({ mcpUrl: upstream.url });
      const postgres = (await postgresOf(dataDir)) as number;

      const running = supertest(url)
        .post('/connect/kept/c1/.tools/hold')
        .set(...bearer(key))
        .send({})
        .then((response) => response);
      await upstream.waitFor((seen) => seen.count('tools/call') === 1);
      const silent = connect(Number(new URL(url).port), '127.0.0.1');
      await once(silent, 'connect');
      service.kill('SIGTERM');
      await until(() => service.output().includes('SIGTERM: finishing requests'), 'the signal is taken');
      const isRefused = () =>
        fetch(`${url}/health`).then(
          () => false,
          () => true,
        );
      await until(isRefused, 'nobody is let in any more');
      upstream.release();
      const response = await running;
      expect(response.status).toBe(200);
      expect(response.body.content).toEqual([{ type: 'text', text: 'released' }]);
      // Below the 60 s after which supervisors kill.
      await until(() => silent.destroyed, 'the silent connection is closed', 40_000);
      expect(await service.ended).toBe(0);
      expect(service.output()).toMatch(/stopped in \d+\.\d s/);
      expect(upstream.sessions.size).toBe(0);
      expect(upstream.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
      expect(isAlive(postgres)).toBe(false);
      expect(await postgresOf(dataDir)).toBeNull();
      await upstream.close();
    },
    SLOW_MS,
  );

  if (existsSync(REDIS_SERVER)) {
    verifies('stop:graceful', 'exits with code 0 while Redis is unavailable', async () => {
      const port = await freePort();
      const redis = await startRedis(port);
      const { url } = await emptyDatabase();
      const service = runProgram('main.js', {
        DATABASE_URL: url,
        REDIS_URL: `redis://127.0.0.1:${port}`,
        ENCRYPTION_KEYS: vaultKey,
      });
      await service.url();
      redis.kill('SIGKILL');
      await once(redis, 'exit');
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    });
  }

  longIt(
    'a second signal stops it immediately, with exit code 1 and without Postgres',
    async () => {
      const upstream = await startUpstream();
      const { dataDir, key } = await usedDataFolder();
      const service = runProgram('main.js', { DATA_DIR: dataDir });
      const url = await service.url();
      await supertest(url)
        .put('/namespaces/acme')
        .set(...bearer(key));
      await supertest(url)
        .put('/connect/acme/c1')
        .set(...bearer(key))
        .send({ mcpUrl: upstream.url });
      const postgres = (await postgresOf(dataDir)) as number;
      const running = expect(
        supertest(url)
          .post('/connect/acme/c1/.tools/hold')
          .set(...bearer(key))
          .send({}),
      ).rejects.toThrow();
      await upstream.waitFor((seen) => seen.count('tools/call') === 1);
      service.kill('SIGTERM');
      await until(() => service.output().includes('SIGTERM: finishing requests'), 'the signal is taken');
      service.kill('SIGTERM');
      expect(await service.ended).toBe(1);
      await running;
      await until(() => !isAlive(postgres), 'Postgres has ended');
      await upstream.close();
    },
    SLOW_MS,
  );
});

describe('the log', () => {
  verifies(
    ['log:redacted', 'log:request-id', 'error:internal', 'key:last-used'],
    'holds no credential at any level, and every line of a request has its id',
    async () => {
      const secret = 'zebra-header-value-7f3a';
      const password = 'walrus-basic-9c21';
      const needy = await startUpstream({ requireHeaders: { 'x-team-secret': `${secret}-right` } });
      const upstream = await startUpstream({ sessions: true });
      // The mirror returns every byte: its answers contain the headers of the connection and are no HTTP.
      const mirror = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
      await once(mirror, 'listening');
      const database = await emptyDatabase();
      const relay = await startDatabaseRelay(database.url);
      const key = generateApiKey();
      const service = runProgram('main.js', {
        DATABASE_URL: relay.url,
        ENCRYPTION_KEYS: vaultKey,
        LOG_LEVEL: 'trace',
        BOOTSTRAP_API_KEY: key,
      });
      const url = await service.url();
      const agent = supertest(url);
      const as = (method: 'get' | 'put' | 'post', path: string, id: string) => {
        const request = agent[method](path);
        return request.set(...bearer(key)).set('x-request-id', id);
      };

      await as('put', '/namespaces/acme', 'request-0001');
      const headers = { 'X-Team-Secret': secret, Authorization: `Basic ${password}` };
      const mcpUrls = {
        good: upstream.url,
        needy: needy.url,
        mirror: `http://127.0.0.1:${(mirror.address() as AddressInfo).port}/mcp`,
        refused: 'http://127.0.0.1:1/mcp',
      };
      for (const [id, mcpUrl] of Object.entries(mcpUrls)) {
        const made = await as('put', `/connect/acme/${id}`, `request-${id}`).send({ mcpUrl, headers });
        expect(made.status).toBe(201);
        await as('post', `/connect/acme/${id}/.tools/echo`, `call-of-${id}`).send({ message: 'hi' });
        await as('post', `/connect/acme/${id}/mcp`, `mcp-of-${id}`).send({ jsonrpc: '2.0', id: 1, method: 'ping' });
      }
      expect(upstream.requests.at(-1)?.headers['x-team-secret']).toBe(secret);

      // Refused requests: their credentials are no less secret.
      const unknown = generateApiKey();
      await supertest(url).get('/namespaces').set('authorization', `Bearer ${unknown}`);
      await supertest(url).get('/namespaces').set('authorization', `Digest ${password}`);
      // The message of the JSON parser quotes the broken place.
      const broken = await as('put', '/connect/acme/good', 'request-bad')
        .set('content-type', 'application/json')
        .send(`{"headers":{"x":${secret}}}`);
      expect([broken.status, broken.body.message]).toEqual([400, expect.stringContaining(secret.slice(0, 5))]);
      const made = await as('post', '/accounts/me/api-keys', 'request-key').send({ name: 'another' });

      // A failure nobody foresaw, in statements that carry a secret's hash and sealed headers.
      await query(database.url, 'ALTER TABLE connections RENAME TO elsewhere');
      const failed = await as('put', '/connect/acme/late', 'request-failed').send({ mcpUrl: upstream.url, headers });
      expect(failed.status).toBe(500);
      expect(failed.body).toEqual({ error: 'internal_error', message: 'Internal server error' });
      expect(failed.headers['x-request-id']).toBe('request-failed');
      await query(database.url, 'ALTER TABLE elsewhere RENAME TO connections');
      await relay.shut();
      expect((await as('get', '/connect/acme', 'request-away')).status).toBe(503);
      for (const name of ['a', 'b', 'c'])
        expect((await as('get', `/connect/${name}`, 'request-also')).status).toBe(503);
      await relay.open();
      await until(async () => (await as('get', '/connect/acme', 'request-back')).status === 200, 'it is back');
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
      // Buffered writes are flushed before the end.
      const written = 'SELECT last_used_at IS NOT NULL AS used FROM api_keys WHERE hash = $1';
      expect(await query(database.url, written, [hashApiKey(key)])).toEqual([{ used: true }]);

      const output = service.output();
      for (const word of [key, unknown, made.body.key as string, secret, password, new URL(database.url).password]) {
        expect(word.length).toBeGreaterThan(10);
        expect(output).not.toContain(word);
        expect(output).not.toContain(Buffer.from(word).toString('base64').slice(0, 12));
      }
      expect(output).not.toContain(secret.slice(0, 5));
      const others = output.split('\n').filter((line) => line.trim() !== '');
      expect(others.filter((line) => !line.startsWith('{"level":'))).toEqual([]);
      const byId = (id: string) => service.logs().filter(({ requestId }) => requestId === id);
      expect(byId('request-failed')).toMatchObject([
        { level: 'error', err: { message: expect.stringContaining('"connections" does not exist') } },
        { level: 'debug', msg: 'PUT /connect/acme/late 500' },
      ]);
      expect(byId('request-away')[0]).toMatchObject({
        level: 'warn',
        msg: 'requests are rejected with 503, since the database does not respond',
      });
      expect(byId('request-away')[1]).toMatchObject({ level: 'debug', msg: 'GET /connect/acme answered 503' });
      // The warnings of an outage are folded.
      expect(byId('request-also').filter(({ level }) => level !== 'debug')).toEqual([]);
      expect(byId('call-of-refused')[0]).toMatchObject({
        level: 'debug',
        reason: expect.stringContaining('Nothing listens'),
      });
      const ofRequests = service.logs().filter(({ context }) => context === 'http' || context === 'request');
      expect(ofRequests.length).toBeGreaterThan(6);
      for (const line of ofRequests) expect(line.requestId).toMatch(/^[A-Za-z0-9._-]{8,128}$/);
      mirror.close();
      await Promise.all([upstream.close(), needy.close(), relay.close()]);
      await database.drop();
    },
    SLOW_MS,
  );
});
