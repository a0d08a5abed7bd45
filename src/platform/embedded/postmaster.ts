import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, stat } from 'node:fs/promises';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { explainFailure, cannotRun, run, serverEnv } from './server-account.js';
import type { Installation } from './server-files.js';
import { setTimeout as wait } from 'node:timers/promises';

export interface OwnServer {
  port: number;
  /** Resolves with a message when the server exits without {@link stop}. */
  died: Promise<string>;
  /** Resolves when the server has exited. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Runs Postgres as a child of a shell that also waits for its standard input to close, a pipe from this process: it
 * closes even if this process is killed. SIGINT is Postgres' fast shutdown: it does not wait for connected clients. It
 * is repeated, because one that arrives too early is lost.
 *
 * All its processes hold a lock of the kernel on the file `$0`, if `flock` exists: Postgres detects another server only
 * by process ids, which do not work for another container on the same data.
 */
const supervisor = `
exec 3<&0 </dev/null
if command -v flock >/dev/null; then
  exec 4>>"$0"
  flock -n 4
  [ $? -ne 1 ] || { echo "lock file \\"$0\\" already exists" >&2; exit 1; }
fi
"$@" 3<&- & postgres=$!
{ exec 4>&-; read -r nothing <&3; while kill -INT $postgres; do sleep 1; done; } >/dev/null 2>&1 & watcher=$!
exec 3<&-
wait $postgres; status=$?
kill $watcher 2>/dev/null
exit $status`;

/** File in the data directory that the processes of a server lock. */
const LOCK = 'slipway.lock';

/** Time longer than a starting server leaves its lock file blank. */
const BLANK_MS = 100;

/** The server can be started later: another process holds the folder, is stopping in it, or took the port first. */
const tryAgain =
  /lock file ".*" (?:already exists|is empty)|pre-existing shared memory block|could not create any TCP\/IP sockets/;

/**
 * Uses a loopback port, a free one unless `portBefore` names one. Resolves when the server accepts connections, which
 * may take long after a crash (it replays its log first), or to undefined if the caller should try again shortly.
 *
 * `settings` are `name=value`. Messages of the server go to `log` once it runs.
 *
 * @throws StartError with the last lines it wrote, when it exits before it is ready.
 */
export async function startServer(
  installation: Installation,
  dataDirectory: string,
  settings: string[],
  log: (line: string) => void,
  portBefore?: number,
): Promise<OwnServer | undefined> {
  let port = portBefore;
  if (port === undefined) {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    ({ port } = probe.address() as AddressInfo);
    probe.close();
    await once(probe, 'close');
  }
  const network = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
  const args = ['-D', dataDirectory, ...[...network, ...settings].flatMap((setting) => ['-c', setting])];
  const { postgres, account } = installation;
  // Windows has no such shell: there the server survives a killed process, and the next start shares it.
  const isWindows = process.platform === 'win32';
  const [file, fileArgs] = isWindows
    ? [postgres, args]
    : ['/bin/sh', ['-c', supervisor, join(dataDirectory, LOCK), postgres, ...args]];
  // Its own session: Ctrl-C reaches only this process, which stops the server after the requests in flight.
  const options = { cwd: '/', env: serverEnv, detached: !isWindows, windowsHide: true } as const;
  const child = spawn(file, fileArgs, { ...account, ...options, stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.on('error', () => undefined); // the server has already exited: 'close' reports it
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const ended = once(child, 'exit');
    if (isWindows) {
      await run(
        postgres.replace(/postgres\.exe$/, 'pg_ctl.exe'),
        ['stop', '-D', dataDirectory, '-m', 'fast'],
        undefined,
      );
    }
    child.stdin.end();
    await ended;
  };
  let die: (sentence: string) => void = () => undefined;
  const died = new Promise<string>((resolve) => (die = resolve));
  return new Promise((resolve, reject) => {
    let isReady = false;
    let output = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (isReady && !isStopping) log(`Postgres: ${line}`);
      if (!isReady) output += `${line}\n`;
      if (isReady || !line.includes('database system is ready to accept connections')) return;
      isReady = true;
      // A running server alone does not keep this process alive; the server stops when this process exits.
      child.unref();
      for (const stream of [child.stdin, child.stderr]) if (stream instanceof Socket) stream.unref();
      resolve({ port, died, stop });
    });
    child.once('exit', () => child.stdin.destroy());
    child.once('error', (error) => reject(cannotRun(child.spawnfile, error)));
    child.once('close', (code) => {
      if (isReady) {
        if (!isStopping) die(`The embedded Postgres ended by itself (exit code ${code})`);
      } else if (tryAgain.test(output)) resolve(undefined);
      else reject(explainFailure('The embedded Postgres did not start', output));
    });
  });
}

/**
 * Returns undefined when no server runs on the data directory, 'starting' while one starts or stops. Removes the lock file of a
 * dead server that Postgres would consider running (a zombie, or another program that now has its process id). That is
 * safe: a second lock, the shared memory segment, prevents Postgres from starting while any process of the old server
 * lives.
 */
export async function findRunningServer(dataDirectory: string): Promise<number | 'starting' | undefined> {
  const lockFile = join(dataDirectory, 'postmaster.pid');
  const content = await readFile(lockFile, 'utf8').catch(() => undefined);
  if (content === undefined) return undefined;
  const remove = async () => {
    if (await isLocked(dataDirectory)) return 'starting';
    if ((await readFile(lockFile, 'utf8').catch(() => undefined)) === content) await rm(lockFile, { force: true });
    return undefined;
  };
  // A power cut leaves it empty or full of NUL bytes. A starting server writes it right after creating it.
  if (/^\0*$/.test(content)) {
    await wait(BLANK_MS);
    const options = await readFile(join(dataDirectory, 'postmaster.opts'), 'utf8').catch(() => '');
    return (await isAnswering(Number(/port=(\d+)/.exec(options)?.[1] ?? 0))) ? 'starting' : remove();
  }
  const [pid, , , port, , , , status] = content.split('\n');
  if (process.platform !== 'linux') return (await isAnswering(Number(port))) ? Number(port) : undefined;
  if (!pid || (await worksIn(pid, dataDirectory))) return status?.trim() === 'ready' ? Number(port) : 'starting';
  return remove();
}

/**
 * Returns true when a server runs on the data directory whose processes are invisible here, such as that of another
 * container.
 */
async function isLocked(dataDirectory: string): Promise<boolean> {
  const isFree = '[ ! -e "$0" ] || ! command -v flock >/dev/null || flock -n "$0" true';
  return (await run('/bin/sh', ['-c', isFree, join(dataDirectory, LOCK)], undefined)).code === 1;
}

/** Returns true when a server takes connections on a port of loopback. */
async function isAnswering(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isAnswered = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isAnswered;
}

/** Returns true if the process works in the directory: Postgres changes into it before the lock, and a zombie no longer has one. */
async function worksIn(pid: string, directory: string): Promise<boolean> {
  const expected = await stat(directory);
  try {
    const actual = await stat(`/proc/${pid}/cwd`);
    return actual.ino === expected.ino && actual.dev === expected.dev;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
