import { afterAll, describe, expect } from '@jest/globals';
import { Tuning } from '../../src/config/tuning.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { Vault } from '../../src/platform/vault/vault.js';
import { query } from '../support/database/query.js';
import {
  cleanUpPrograms,
  dataFolder,
  postgresOf,
  readySettings,
  runProgram,
  usedDataFolder,
} from '../support/program.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

afterAll(cleanUpPrograms, SLOW_MS);

/** Lines of `slipway doctor` as `level name`, its output and its exit code. */
async function doctor(settings: Record<string, string>, tuning?: Partial<Tuning>) {
  const command = runProgram('cli/slipway.js', settings, { args: ['doctor'], tuning });
  const code = await command.ended;
  const output = command.output();
  const lines = output.trimEnd().split('\n');
  return { code, output, levels: lines.map((line) => line.replace(/^(\w+) +(open files|API keys|\w+).*/, '$1 $2')) };
}

const all = [
  'settings',
  'names',
  'defaults',
  'folders',
  'database',
  'postgres',
  'migrations',
  'keys',
  'address',
  'login',
  'API keys',
  'secrets',
  'events',
  'namespaces',
  'queue',
  'clock',
  'storage',
  'files',
  'open files',
  'egress',
];

describe('slipway doctor', () => {
  verifies(
    'doctor:checks',
    'prints ok for each check of a service, and stops the database that it started',
    async () => {
      const { dataDir } = await usedDataFolder();
      const { code, levels } = await doctor({ DATA_DIR: dataDir, ROLES: 'api' }, { httpConnectionsMax: 100 });
      expect(levels).toEqual(all.map((name) => `${name === 'API keys' ? 'warning' : 'ok'} ${name}`));
      expect(code).toBe(0);
      expect(await postgresOf(dataDir)).toBeNull();
      const printed = runProgram('cli/slipway.js', {}, { args: ['doctor', '--tuning'] });
      expect([await printed.ended, JSON.parse(printed.output())]).toEqual([0, { ...new Tuning() }]);
      const fresh = await doctor({ DATA_DIR: await dataFolder() });
      expect(fresh.output).toMatch(/^ok +database +none in .*: the first start makes it$/m);
      expect(fresh.output).toMatch(/^(ok|warning) +isolation /m);
    },
    SLOW_MS,
  );

  verifies(
    'doctor:checks',
    'fails with the next step where a part is wrong, and repeats no secret',
    async () => {
      const settings = await readySettings(generateApiKey());
      const url = settings.DATABASE_URL;
      const sealed = new Vault([{ id: 'k9', secret: Buffer.alloc(32, 9) }]).seal('value', 'owner');
      await query(
        url,
        `INSERT INTO oauth_clients (issuer, redirect_uri, kind, client_id, sealed_secret) VALUES ('a', 'b', 'registered', 'c', '${sealed}')`,
      );
      const redis = { REDIS_URL: 'redis://:canary@127.0.0.1:1', EGRESS_ALLOW: 'loopback', HOST: '0.0.0.0' };
      const s3 = {
        BLOB_URL: 's3://files?endpoint=http://127.0.0.1:1',
        AWS_ACCESS_KEY_ID: 'id',
        AWS_SECRET_ACCESS_KEY: 'canary',
      };
      const wrong = await doctor({ ...settings, ...redis, ...s3, ROLES: 'api' });
      expect(wrong.code).toBe(1);
      expect(wrong.output).toMatch(/^failed +keys +ENCRYPTION_KEYS lacks the key "k9"/m);
      expect(wrong.output).toMatch(/^failed +redis +Redis cannot be used \(.+\): check REDIS_URL\.$/m);
      expect(wrong.output).toMatch(/^failed +queue +down: check REDIS_URL/m);
      expect(wrong.output).toMatch(/^failed +files +BLOB_URL cannot be used \(.+\): check it/m);
      expect(wrong.output).toMatch(/^warning +egress +EGRESS_ALLOW opens 127\.0\.0\.1 to every account/m);
      expect(wrong.levels).toEqual(expect.arrayContaining(['ok clock', 'ok storage']));

      // Two processes run, one has ended, and the next one starts.
      await query(
        url,
        `INSERT INTO processes (id, roles, details, lease_until)
         SELECT gen_random_uuid(), '{api}', '{}', now() + n * interval '1 hour' FROM unnest(ARRAY[1, 1, -1]) n`,
      );
      const many = await doctor({ ...settings, DATABASE_POOL_MAX: '400', ROLES: 'api' });
      expect(many.output).toMatch(
        /^warning +postgres +3 processes of the service can open 1224 connections, and Postgres has -?\d+ for them: lower/m,
      );

      await query(url, `INSERT INTO migrations (timestamp, name) VALUES (1999, 'AddWings1999')`);
      const newer = await doctor(settings);
      expect(newer.output).toMatch(/^failed +migrations +The database is newer .* AddWings1999: start the version/m);
      const gone = await doctor({ ...settings, DATABASE_URL: 'postgres://me:canary@127.0.0.1:1/x' });
      expect(gone.output).toMatch(/^failed +postgres +The database cannot be used \(.*\): check DATABASE_URL\.$/m);
      const bad = await doctor({ ...settings, PORT: 'canary' });
      expect(bad).toMatchObject({ code: 1, levels: ['failed settings'] });
      const secrets = ['canary', settings.ENCRYPTION_KEYS.slice(3), sealed];
      for (const { output } of [wrong, newer, gone, bad]) {
        for (const secret of secrets) expect(output).not.toContain(secret);
      }
    },
    SLOW_MS,
  );

  verifies(
    'doctor:login',
    'says whether clients log in by URL and why not, and names namespaces whose short form is a Slipway path',
    async () => {
      const settings = await readySettings(generateApiKey());
      const run = async (more: Record<string, string>) => (await doctor({ ...settings, ROLES: 'api', ...more })).output;
      const published = await run({ PUBLIC_URL: 'https://slipway.example' });
      expect(published).toMatch(/^ok +login +clients log in by URL at https:\/\/slipway\.example$/m);
      expect(published).toMatch(/^ok +namespaces +each is reached/m);

      await query(
        settings.DATABASE_URL,
        `WITH owner AS (INSERT INTO accounts (name, kind) VALUES ('ann', 'user') RETURNING id)
         INSERT INTO namespaces (name, account_id) SELECT unnest(ARRAY['jwks', 'authorize', 'acme']), id FROM owner`,
      );
      const plain = await run({ PUBLIC_URL: 'http://slipway.example' });
      expect(plain).toMatch(/^ok +login +clients need an API key, .*: PUBLIC_URL is not https: /m);
      expect(plain).toMatch(/^warning +namespaces +The short form .* does not reach authorize, jwks: .*\/connect\//m);
    },
    SLOW_MS,
  );
});
