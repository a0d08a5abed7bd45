import { createHash, randomBytes } from 'node:crypto';
import { chown, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buildFolder, removeAbandonedDrafts, sparePlace, type Installation } from './server-files.js';
import { readIfThere } from '../files/files.js';
import { EmbeddedPostgresError, explainFailure, mayUse, run, type Account } from './server-account.js';

/** The database, and the role that owns it. The role may create databases and is not a superuser, as in production. */
export const databaseName = 'slipway';

/** Inside the data directory, so that a cluster and its password cannot part. Mode 0600. */
const passwordFile = 'slipway.password';

/**
 * Where the data directory of `dataDir` lies, or will lie: where `<dataDir>/pg-location` says; else in `<dataDir>/pg`;
 * or, when `account` cannot enter `dataDir`, in {@link sparePlace} under a name made from the path of `dataDir`.
 * An existing directory is used, so that a later change of permissions does not start an empty database beside the real one.
 */
export async function locateDataDirectory(dataDir: string, account: Account | undefined): Promise<string> {
  const noted = await readIfThere(noteIn(dataDir));
  if (noted) return noted.split('\n')[0];
  const inside = join(dataDir, 'pg');
  if ((await readIfThere(join(inside, 'PG_VERSION'))) || (await mayUse(account, dataDir))) return inside;
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return join(await sparePlace(), `pg-${hash}`);
}

/** Leaves a note in `dataDir` when its data directory lies elsewhere. Written after the data directory exists. */
export async function noteLocation(dataDir: string, dataDirectory: string): Promise<void> {
  if (dirname(dataDirectory) === dataDir) return;
  const reason = 'The database of this folder lies there: the user Postgres runs as may not enter this folder.';
  await writeFile(noteIn(dataDir), `${dataDirectory}\n${reason}\n`);
}

/** Removes the data directory and the note on it. */
export async function removeDataDirectory(dataDir: string, dataDirectory: string): Promise<void> {
  await rm(dataDirectory, { recursive: true, force: true });
  await rm(noteIn(dataDir), { force: true });
}

/**
 * Makes sure that there is a data directory of our major version, with the role and database `slipway`. Returns
 * whether it was created now, by us, and the password of the role.
 *
 * @throws EmbeddedPostgresError for another major version, a folder with other content, a lost data directory, or
 *   when initdb fails.
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
    await refuseToReplace(dataDir, dataDirectory);
    created = await buildFolder(dataDirectory, 'PG_VERSION', (draft) => fillCluster(installation, draft, durable));
    version = await readIfThere(join(dataDirectory, 'PG_VERSION'));
  }
  if (version?.trim() !== installation.major) {
    throw new EmbeddedPostgresError(
      `${dataDirectory} was written by Postgres ${version?.trim()} and this is Postgres ${installation.major}: ` +
        'move its content with pg_dump of the old version, or set DATABASE_URL.',
    );
  }
  return { created, password: await readFile(join(dataDirectory, passwordFile), 'utf8') };
}

/** No data directory is the normal first start, unless a note says there was one, or something else lies there. */
async function refuseToReplace(dataDir: string, dataDirectory: string): Promise<void> {
  const entries = await readdir(dataDirectory).catch(() => undefined);
  if (entries?.length) {
    throw new EmbeddedPostgresError(
      `${dataDirectory} is not a Postgres data directory: move it away, or choose another data folder.`,
    );
  }
  if (await readIfThere(noteIn(dataDir))) {
    throw new EmbeddedPostgresError(
      `The database ${dataDirectory} is gone: bring it back, or delete ${noteIn(dataDir)} to start with an empty one.`,
    );
  }
}

/**
 * Fills an empty folder. Nothing waits for the disk until one sync at the end (0.15 s; syncing every step costs 0.7 s).
 * The builtin C.UTF-8 sorts the same on every platform. initdb's own superuser gets no password, so that nobody can
 * log in as it.
 */
async function fillCluster(installation: Installation, folder: string, durable: boolean): Promise<void> {
  const { initdb, postgres, account } = installation;
  const password = randomBytes(24).toString('base64url');
  const step = async (program: string, args: string[], input?: string) => {
    const { code, stderr } = await run(program, args, account, input);
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
