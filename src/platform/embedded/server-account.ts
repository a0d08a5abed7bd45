import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, constants, readFile, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { StartError } from '../../config/env.js';

/** The packages are built against glibc 2.27; on musl the kernel finds no loader for them and says "not found". */
const needsGlibc =
  'The packaged Postgres needs glibc 2.27 or newer (so not Alpine): use a Debian-based image, or set DATABASE_URL.';

/** Returns true when a database was created for this data folder, here or at the location in `pg-location`. */
export function holdsDatabase(dataDir: string): boolean {
  return ['pg', 'pg-location'].some((name) => existsSync(resolve(dataDir, name)));
}

/** File next to a database that `slipway move` has copied elsewhere. */
const MOVED = 'pg-moved';

export async function noteMove(dataDir: string, databaseUrl: string): Promise<void> {
  const { host, pathname } = new URL(databaseUrl);
  await writeFile(resolve(dataDir, MOVED), `${host}${pathname} at ${new Date().toISOString()}\n`);
}

/** Rejects a start next to a moved database, since the two would diverge. @throws StartError when the database of a data directory was moved */
export async function requireUnmoved(dataDir: string): Promise<void> {
  const moved = await readFile(resolve(dataDir, MOVED), 'utf8').catch(() => null);
  if (moved === null) return;
  throw new StartError(
    `The database of ${dataDir} was moved to ${moved.trim()}: set DATABASE_URL to it. ` +
      `To go back to the database from before the move, delete ${resolve(dataDir, MOVED)}.`,
  );
}

/** The system account that Postgres runs as, if it is not that of this process: Postgres refuses to run as root. */
export interface Account {
  uid: number;
  gid: number;
}

/**
 * The environment of Postgres: no secrets of this service, no PG* variables, messages in English (they are parsed), and
 * a time zone, so that initdb does not search for one.
 */
export const serverEnv = { LC_ALL: 'C', TZ: 'UTC' };

/**
 * Returns undefined (the account of this process) unless that is root. Root takes the owner of the existing data directory,
 * else `postgres`, else `nobody`; it creates no account.
 *
 * @throws StartError when root finds none of them.
 */
export async function chooseAccount(dataDirectory: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(dataDirectory).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const entry = /^postgres:.*$/m.exec(accounts) ?? /^nobody:.*$/m.exec(accounts);
  if (!entry) {
    throw new StartError(
      'Postgres refuses to run as root and there is no user "postgres" or "nobody": run as another user, or set DATABASE_URL.',
    );
  }
  const [, , uid, gid] = entry[0].split(':').map(Number);
  return { uid, gid };
}

/**
 * Returns variables for the account. Some programs reject a user without a name, common on container platforms: nss_wrapper (Debian's libnss-wrapper)
 * gives it one, if it is installed.
 *
 * @param passwdFile is written when the user has no name
 */
export async function namedEnv(account: Account | undefined, passwdFile: string): Promise<NodeJS.ProcessEnv> {
  const uid = account?.uid ?? process.getuid?.();
  const accounts = await readFile('/etc/passwd', 'utf8').catch(() => '');
  if (uid === undefined || accounts.split('\n').some((line) => line.split(':')[2] === String(uid))) return serverEnv;
  await writeFile(passwdFile, `slipway:x:${uid}:${account?.gid ?? process.getgid?.()}::/:/bin/false\n`);
  const wrapper = { LD_PRELOAD: 'libnss_wrapper.so', NSS_WRAPPER_PASSWD: passwdFile, NSS_WRAPPER_GROUP: '/etc/group' };
  return { ...serverEnv, ...wrapper };
}

/**
 * Returns true if `account` can execute the file, or enter the directory, at `path`; undefined is the account of this process.
 */
export async function mayUse(account: Account | undefined, path: string): Promise<boolean> {
  if (account) return (await run('/bin/sh', ['-c', 'test -x "$0"', path], account)).code === 0;
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/**
 * Runs a program. `input` is the standard input, and `env` the complete environment. A failing exit code is a result.
 *
 * @throws StartError when the program cannot be executed at all.
 */
export function run(
  program: string,
  args: string[],
  account: Account | undefined,
  { input = '', env = serverEnv }: { input?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<{ code: number | null; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...account, cwd: '/', env, stdio: ['pipe', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('close', (code) => resolve({ code, stderr }));
    child.once('error', (error: NodeJS.ErrnoException) => reject(cannotRun(program, error)));
    child.stdin.on('error', () => undefined); // EPIPE when it exits early: its exit code gives the reason
    child.stdin.end(input);
  });
}

/** Returns the error for a program that cannot run. ENOENT on an existing file means that its loader is missing: no glibc. */
export function cannotRun(program: string, cause: NodeJS.ErrnoException): StartError {
  if (cause.code === 'ENOENT' && existsSync(program)) return new StartError(needsGlibc, { cause });
  return new StartError(`Cannot run ${program} (${cause.message}): allow it, or set DATABASE_URL.`, { cause });
}

/** Returns a message for known causes, else the last lines. `step` names the step, for example "Postgres did not start". */
export function explainFailure(step: string, stderr: string): StartError {
  const nameless = /could not look up effective user ID (\d+)/.exec(stderr);
  if (nameless) {
    return new StartError(
      `Postgres cannot create a database as user ${nameless[1]}, who has no entry in /etc/passwd: ` +
        'run as a named user, install libnss-wrapper, or set DATABASE_URL.',
    );
  }
  if (/GLIBC_\d|: not found$/m.test(stderr)) return new StartError(needsGlibc);
  const lastLines = stderr.trim().split('\n').slice(-8).join(' | ');
  return new StartError(`${step}; repair that or set DATABASE_URL. It said: ${lastLines || 'nothing'}`);
}
