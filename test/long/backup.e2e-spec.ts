import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import supertest from 'supertest';
import { DatabaseSnapshot, loadDatabase, type TableOutline } from '../../src/platform/database/database-copy.js';
import { migrate } from '../../src/platform/database/migrations.js';
import { emptyDatabase, startApp, uniqueName, type TestAccount, type TestApp } from '../support/app.js';
import { query } from '../support/database/query.js';
import { createConnection, createNamespace } from '../support/factories.js';
import { bundled } from '../support/hosting/hosted-programs.js';
import { publishHosted, type HostedServer } from '../support/hosting/hosted-releases.js';
import { endAfterFile } from '../support/jest/leftovers.mjs';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { createSkill } from '../support/releases/skills.js';
import { startS3 } from '../support/s3.js';
import { until } from '../support/until.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

const KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

/** Counts in the session's store. */
const COUNTER = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export const stateful = true;
  export default function ({ session }) {
    const server = new McpServer({ name: 'counter', version: '1.0.0' });
    server.registerTool('count', {}, async () => {
      const stored = ((await session.get('count')) ?? 0) + 1;
      await session.set('count', stored);
      return { content: [{ type: 'text', text: String(stored) }] };
    });
    return server.server;
  }`;

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let counter: HostedServer;
let skill: string;
/** Paths of connections: with a secret header, and to the hosted server. */
let [secret, counted]: string[] = [];
let folder: string;
/** Rows of each table before and after the backup: what the call caused is written meanwhile. */
let [before, after]: Record<string, number>[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  app = await startApp({ DATA_DIR: await dataFolder() });
  owner = await app.account();
  const namespace = await createNamespace(app, owner);
  counter = await publishHosted(app, owner, await bundled(COUNTER), { stateful: true });
  const headers = { 'X-Key': 'canary-secret' };
  secret = (await createConnection(app, owner, { mcpUrl: upstream.url, headers }, { namespace })).path;
  counted = (await createConnection(app, owner, { server: counter.name }, { namespace })).path;
  skill = (await createSkill(app, owner, { namespace })).path;
  expect(await count(app)).toBe('1');
  await until(async () => (await rowsOf(app.env.databaseUrl ?? '')).invocations > 0, 'the call is in the log');
  before = await rowsOf(app.env.databaseUrl ?? '');
  folder = join(await dataFolder(), 'backup');
  const made = await slipway(settingsOf(app), 'backup', folder, '--with-keys');
  expect(made).toMatchObject({ code: 0, output: expect.stringMatching(/^Backed up to .*: \d+ rows, [1-9]\d* files/) });
  after = await rowsOf(app.env.databaseUrl ?? '');
}, SLOW_MS);
afterAll(async () => {
  await cleanUpPrograms();
}, SLOW_MS);

/** Runs a command to its end. */
async function slipway(
  settings: Record<string, string>,
  ...args: string[]
): Promise<{ code: unknown; output: string }> {
  const command = runProgram('cli/slipway.js', settings, { args });
  return { code: await command.ended, output: command.output() };
}

function settingsOf({ env }: TestApp): Record<string, string> {
  return { DATA_DIR: env.dataDir, DATABASE_URL: env.databaseUrl ?? '', ENCRYPTION_KEYS: KEYS };
}

/** An empty database and an empty data folder. */
async function emptyPlace(): Promise<{ DATA_DIR: string; DATABASE_URL: string; ENCRYPTION_KEYS: string }> {
  const { url, drop } = await emptyDatabase();
  endAfterFile(drop);
  return { DATA_DIR: await dataFolder(), DATABASE_URL: url, ENCRYPTION_KEYS: KEYS };
}

/** Number of rows of each table that outlives processes, partitions with their parent. */
async function rowsOf(url: string): Promise<Record<string, number>> {
  const tables = await query<{ name: string }>(
    url,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition AND relname NOT IN ('processes', 'uplink_tunnels') ORDER BY 1`,
  );
  const counts = tables.map(({ name }) => `SELECT '${name}' AS name, count(*)::int AS rows FROM ${name}`);
  const counted = await query<{ name: string; rows: number }>(url, counts.join(' UNION ALL '));
  return Object.fromEntries(counted.map(({ name, rows }) => [name, rows]));
}

/** Compares each table with what it had when the backup was made. */
async function expectAllRows(url: string): Promise<void> {
  const rows = await rowsOf(url);
  expect(Object.keys(rows)).toEqual(Object.keys(before));
  const isBetween = ([name, count]: [string, number]) => {
    const ends = [before[name], after[name]];
    return count >= Math.min(...ends) && count <= Math.max(...ends);
  };
  expect(Object.entries(rows).filter((entry) => !isBetween(entry))).toEqual([]);
}

/** Calls the hosted server; its session counts. */
async function count(service: TestApp): Promise<string> {
  const { body } = await service.as(owner).post(`${counted}/.tools/count`, {});
  return (body as { content: { text: string }[] }).content?.[0].text ?? JSON.stringify(body);
}

/** Starts a service there and uses what the backup holds. */
async function expectWhole(place: Record<string, string>): Promise<void> {
  expect(await slipway(place, 'migrate')).toMatchObject({ code: 0, output: 'The database is at this version.\n' });
  const service = await app.sibling({ ...place, ROLES: 'api,worker,host', QUEUE_PREFIX: uniqueName('queue') });
  try {
    expect(await count(service)).toBe('2');
    expect((await service.as(owner).post(`${secret}/.tools/echo`, { message: 'hi' })).status).toBe(200);
    expect(upstream.requests.at(-1)?.headers['x-key']).toBe('canary-secret');
    expect((await service.as(owner).get(skill)).status).toBe(200);
    const logs = await service.as(owner).get(`/servers/${encodeURIComponent(counter.name)}/logs`);
    expect(logs.body.invocations.length).toBeGreaterThan(0);
  } finally {
    await service.close();
  }
}

describe('slipway backup and restore', () => {
  verifies(
    'backup:restore',
    'bring rows, files, sessions and secrets to an empty place',
    async () => {
      expect((await stat(folder)).isDirectory()).toBe(true);
      await promisify(execFile)('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder });
      const target = await emptyPlace();
      expect(await slipway(target, 'restore', folder)).toMatchObject({ code: 0 });
      await expectAllRows(target.DATABASE_URL);
      const sequence = 'SELECT last_value FROM connections_seq_seq';
      expect(await query(target.DATABASE_URL, sequence)).toEqual([{ last_value: '2' }]);
      await expectWhole(target);
      const again = await slipway({ ...target, DATA_DIR: await dataFolder() }, 'restore', folder);
      expect(again).toEqual({
        code: 1,
        output: expect.stringMatching(
          /^slipway restore failed: The database is not empty, it has rows in \w+: use another/,
        ),
      });
      const full = await slipway(target, 'restore', folder);
      expect(full.output).toMatch(/^slipway restore failed: \S+ is not empty, it has blobs, hosting: set DATA_DIR/);
    },
    SLOW_MS,
  );

  verifies('backup:restore', 'keep the version of an earlier database, whose next start migrates it', async () => {
    const [old, target] = [(await emptyPlace()).DATABASE_URL, (await emptyPlace()).DATABASE_URL];
    const all = await query<{ name: string }>(app.env.databaseUrl ?? '', 'SELECT name FROM migrations ORDER BY id');
    const names = all.map(({ name }) => name);
    await migrate(old, undefined, [], names.slice(0, 3));
    await query(old, `INSERT INTO accounts (name, kind) VALUES ('early', 'user')`);
    const snapshot = await DatabaseSnapshot.open(old);
    const read = (table: TableOutline) => snapshot.read(table);
    await loadDatabase(target, await snapshot.outline(), [], read, () => Promise.resolve());
    await snapshot.close();
    expect(await query(target, 'SELECT name FROM migrations ORDER BY id')).toEqual(all.slice(0, 3));
    await migrate(target);
    expect(await query(target, 'SELECT name FROM migrations ORDER BY id')).toEqual(all);
    expect(await query(target, 'SELECT name FROM accounts')).toEqual([{ name: 'early' }]);
  });

  verifies(
    'backup:damaged',
    'refuse a damaged, incomplete or newer backup and name its file',
    async () => {
      const target = await emptyPlace();
      const refusal = async (change: (copy: string) => Promise<void>) => {
        const copy = join(await dataFolder(), 'copy');
        await promisify(execFile)('cp', ['-a', folder, copy]);
        await change(copy);
        const { code, output } = await slipway(target, 'restore', copy);
        expect(code).toBe(1);
        return output;
      };
      const damaged = (file: string) => async (copy: string) => {
        const content = await readFile(join(copy, file));
        content[content.length - 2] ^= 1;
        await writeFile(join(copy, file), content);
      };
      expect(await refusal(damaged('tables/accounts.gz'))).toContain('failed: tables/accounts.gz is damaged');
      expect(await refusal(damaged('manifest.json'))).toContain('failed: manifest.json is damaged');
      expect(await refusal((copy) => rm(join(copy, 'tables/servers.gz')))).toContain(
        'failed: tables/servers.gz is damaged',
      );
      expect(await refusal((copy) => rm(join(copy, 'SHA256SUMS')))).toContain(
        'is not a complete backup: SHA256SUMS is missing',
      );
      const newer = await refusal(async (copy) => {
        const manifest = await readFile(join(copy, 'manifest.json'), 'utf8');
        await writeFile(
          join(copy, 'manifest.json'),
          manifest.replace('"migrations": [', '"migrations": ["AddWings1999",'),
        );
        await promisify(execFile)(
          'sh',
          ['-c', 'sed -i /manifest.json/d SHA256SUMS; sha256sum manifest.json >> SHA256SUMS'],
          { cwd: copy },
        );
      });
      expect(newer).toMatch(
        /failed: manifest\.json is of another version, Slipway .*: .* has no migration AddWings1999/,
      );
      expect(await rowsOf(target.DATABASE_URL).catch(() => ({}))).toEqual({});
    },
    SLOW_MS,
  );

  verifies(
    'backup:keys',
    'exclude the keys by default, and the restore names the missing ones',
    async () => {
      const bare = join(await dataFolder(), 'bare');
      const made = await slipway(settingsOf(app), 'backup', bare);
      expect(made.output).toContain('A restore also needs the keys k1 of ');
      expect(await promisify(execFile)('grep', ['-rlF', KEYS.slice(3), bare]).catch((e: unknown) => e)).toMatchObject({
        code: 1,
      });
      const embedded = { DATA_DIR: await dataFolder() };
      expect((await slipway(embedded, 'restore', bare)).output).toContain(
        `put the file encryption-keys that belongs to it into ${embedded.DATA_DIR}, or set ENCRYPTION_KEYS`,
      );
      const other = { ...(await emptyPlace()), ENCRYPTION_KEYS: `k9:${Buffer.alloc(32, 9).toString('base64')}` };
      expect((await slipway(other, 'restore', bare)).output).toContain('ENCRYPTION_KEYS lacks k1');
      // A key of the same name that is another one, and then the right one in the same place.
      const sameName = { ...embedded, ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 9).toString('base64')}` };
      expect(await slipway(sameName, 'restore', bare)).toMatchObject({
        code: 1,
        output: expect.stringContaining('a key of the same name is another one'),
      });
      expect(await slipway({ ...embedded, ENCRYPTION_KEYS: KEYS }, 'restore', bare)).toMatchObject({ code: 0 });
    },
    SLOW_MS,
  );
});

describe('slipway move', () => {
  verifies(
    'move:counts',
    'copies the embedded database and files to Postgres and S3, with equal counts',
    async () => {
      const s3 = await startS3();
      const DATA_DIR = await dataFolder();
      expect(await slipway({ DATA_DIR }, 'restore', folder)).toMatchObject({ code: 0 });
      expect(await readFile(join(DATA_DIR, 'encryption-keys'), 'utf8')).toBe(`${KEYS}\n`);
      const target = { ...(await emptyPlace()), DATA_DIR, BLOB_URL: s3.blobUrl };
      const access = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
      const service = runProgram('main.js', { DATA_DIR });
      const url = await service.url();
      expect((await slipway({ ...target, ...access }, 'move')).output).toContain(
        'The service is running: stop it first.',
      );
      expect((await supertest(url).get('/ready')).status).toBe(200);
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
      const moved = await slipway({ ...target, ...access }, 'move');
      expect(moved).toMatchObject({
        code: 0,
        output: expect.stringMatching(/each table and [1-9]\d* files of releases\.\n$/),
      });
      await expectAllRows(target.DATABASE_URL);
      const again = runProgram('main.js', { DATA_DIR });
      expect(await again.ended).toBe(1);
      expect(again.output()).toMatch(/was moved to .* set DATABASE_URL to it\. To go back .* delete .*pg-moved\./);
      await rm(join(DATA_DIR, 'blobs'), { recursive: true });
      await expectWhole(target);
      await s3.close();
    },
    SLOW_MS,
  );
});
