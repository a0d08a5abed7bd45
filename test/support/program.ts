import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Tuning } from '../../src/config/tuning.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { cloneDatabase } from './app.js';
import { builtFile } from './built.js';
import { endAfterFile } from './jest/leftovers.mjs';
import { until } from './until.js';

/** A built program of this repository in a process of its own. */
export interface Program {
  pid: number;
  /** Everything it wrote so far, on both outputs. */
  output(): string;
  /** Its log lines, as objects. */
  logs(): Record<string, unknown>[];
  /** `http://127.0.0.1:port` once it listens. */
  url(): Promise<string>;
  /** The operator's key it printed, with `LOG_FORMAT=pretty`; null when it listens and printed none. */
  key(): Promise<string | null>;
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals>;
}

const running = new Set<ChildProcess>();
const folders: string[] = [];
const drops: (() => Promise<void>)[] = [];

/** How long a start may take on a busy machine; an ordinary one takes under two seconds. */
const START_MS_MAX = 150_000;

/**
 * Runs a built program with these settings and no others.
 *
 * @param program below `dist/src`
 * @param uid who runs it; only root may choose
 */
export function runProgram(
  program: 'main.js' | 'cli/slipway.js',
  settings: Record<string, string>,
  { args = [], uid, tuning }: { args?: string[]; uid?: number; tuning?: Partial<Tuning> } = {},
): Program {
  const tuned = tuning ? ['--tuning', JSON.stringify(tuning)] : [];
  const child = spawn(process.execPath, [builtFile(`src/${program}`), ...args, ...tuned], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    uid,
    gid: uid,
  });
  running.add(child);
  const forget = endAfterFile(() => child.kill('SIGKILL'));
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (written += text));
  }
  let isOver = false;
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      running.delete(child);
      forget();
      isOver = true;
      resolve(code ?? (signal as NodeJS.Signals));
    });
  });
  const greeting = async () => {
    const greetingIn = () =>
      /listens on {2}(\S+)[^]*?\n\n/.exec(written) ?? /"msg":"Slipway listens","url":"([^"]+)".*\n/.exec(written);
    await until(() => greetingIn() ?? isOver, 'the service listens', START_MS_MAX);
    const greeted = greetingIn();
    if (!greeted) throw new Error(`The service ended instead of listening:\n${written}`);
    return greeted;
  };
  return {
    pid: child.pid as number,
    output: () => written,
    logs: () =>
      written
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    url: async () => (await greeting())[1],
    key: async () => /Operator API key\s+([\w-]+)/.exec((await greeting())[0])?.[1] ?? null,
    kill: (signal) => child.kill(signal),
    ended,
  };
}

/** A new empty folder that the account of the embedded Postgres may enter. */
export async function dataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-program-'));
  await chmod(folder, 0o777);
  folders.push(folder);
  return folder;
}

/** A data folder and the key of its operator. */
export interface UsedDataFolder {
  dataDir: string;
  key: string;
}

let template: Promise<UsedDataFolder> | undefined;

/**
 * A data folder as a first start leaves it, for tests of anything else: a copy of one that is made once per test
 * file, without the 4 s of CPU time that `initdb` and the migrations take.
 */
export async function usedDataFolder(): Promise<UsedDataFolder> {
  template ??= firstStart();
  const { dataDir: from, key } = await template;
  const dataDir = await dataFolder();
  // Not fs.cp: Postgres starts only on files of its own account.
  await promisify(execFile)('cp', ['-a', `${from}/.`, dataDir]);
  return { dataDir, key };
}

async function firstStart(): Promise<UsedDataFolder> {
  const [dataDir, key] = [await dataFolder(), generateApiKey()];
  const migration = runProgram('cli/slipway.js', { DATA_DIR: dataDir, BOOTSTRAP_API_KEY: key }, { args: ['migrate'] });
  if ((await migration.ended) !== 0) throw new Error(`The data folder was not made:\n${migration.output()}`);
  return { dataDir, key };
}

/** Settings of a service on a new database of the test run, with an operator who has this key: what starts fastest. */
export async function readySettings(key: string): Promise<Record<string, string>> {
  const { url, drop } = await cloneDatabase();
  drops.push(drop);
  return {
    DATA_DIR: await dataFolder(),
    DATABASE_URL: url,
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    BOOTSTRAP_API_KEY: key,
  };
}

/** Where the embedded Postgres of a data folder keeps its files. */
async function databaseFolder(dataDir: string): Promise<string> {
  const note = await readFile(join(dataDir, 'pg-location'), 'utf8').catch(() => null);
  return note?.split('\n')[0] ?? join(dataDir, 'pg');
}

/** The process id of the embedded Postgres on a data folder; null when none runs. */
export async function postgresOf(dataDir: string): Promise<number | null> {
  const lock = await readFile(join(await databaseFolder(dataDir), 'postmaster.pid'), 'utf8').catch(() => null);
  return lock === null ? null : Number(lock.split('\n')[0]);
}

/** The URL of the embedded Postgres that runs on a data folder. */
export async function databaseUrlOf(dataDir: string): Promise<string> {
  const folder = await databaseFolder(dataDir);
  const password = await readFile(join(folder, 'slipway.password'), 'utf8');
  const port = (await readFile(join(folder, 'postmaster.pid'), 'utf8')).split('\n')[3];
  return `postgres://slipway:${password}@127.0.0.1:${port}/slipway`;
}

/** True while a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Ends what still runs and removes what it left. Call it after all tests of a file. */
export async function cleanUpPrograms(): Promise<void> {
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(drops.splice(0).map((drop) => drop()));
  template = undefined;
  for (const folder of folders.splice(0)) {
    const pid = await postgresOf(folder);
    if (pid !== null) await until(() => !isAlive(pid), `the Postgres of ${folder} has ended`);
    await rm(await databaseFolder(folder), { recursive: true, force: true, maxRetries: 20 });
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  }
}
