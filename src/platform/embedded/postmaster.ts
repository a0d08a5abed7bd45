import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, stat } from 'node:fs/promises';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { explainFailure, cannotRun, run, serverEnv } from './server-account.js';
import type { Installation } from './server-files.js';
import { setTimeout as wait } from 'node:timers/promises';

/** A server that this process started. */
export interface OwnServer {
  port: number;
  /** Resolves with a message when it ends without {@link stop}. */
  died: Promise<string>;
  /** Ends it in an orderly way and resolves when it has ended. May be called again. */
  stop(): Promise<void>;
}

/**
 * Runs Postgres as a child of a shell that also waits for the end of its own standard input, which is a pipe from us:
 * it ends when we close it or die in any way, SIGKILL included. SIGINT is Postgres' fast shutdown: it does not wait
 * for clients that stay connected. It is repeated, because one that arrives before Postgres listens to it is lost.
 *
 * All its processes hold a lock of the kernel on the file `$0`, where there is a `flock`: Postgres asks by process ids alone whether
 * another server runs, and those of another container on the same data say nothing.
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

/** File in the data directory that the processes of its server lock. */
const LOCK = 'slipway.lock';

/** Longer than a server that starts leaves its lock file blank. */
const BLANK_MS = 100;

/** The server is ours to start later: another process holds the folder, is ending in it, or took the port first. */
const tryAgain =
  /lock file ".*" (?:already exists|is empty)|pre-existing shared memory block|could not create any TCP\/IP sockets/;

/**
 * Starts Postgres on a loopback port, a free one unless `portBefore` names one, and resolves when it accepts connections,
 * which may take long after a crash (it replays its log first). Resolves to undefined when it is worth trying again in a moment.
 *
 * `settings` are `name=value`. Its messages go to `log` once it runs.
 *
 * @throws StartError with the last lines it wrote, when it ends before it is ready.
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
  // Windows has no such shell: there the server outlives a killed process, and the next start shares it.
  const isWindows = process.platform === 'win32';
  const [file, fileArgs] = isWindows
    ? [postgres, args]
    : ['/bin/sh', ['-c', supervisor, join(dataDirectory, LOCK), postgres, ...args]];
  // A session of its own: Ctrl-C reaches us alone, and we stop the server after the requests in flight.
  const options = { cwd: '/', env: serverEnv, detached: !isWindows, windowsHide: true } as const;
  const child = spawn(file, fileArgs, { ...account, ...options, stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.on('error', () => undefined); // the server is gone already: 'close' tells
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
      // A running server alone does not keep our process alive; when we end, the server ends.
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
 * The port of the server that runs on the data directory: undefined when none runs, 'starting' while one starts or
 * ends. Removes the lock file of a server that is surely dead where Postgres would take it for a running one (a
 * zombie, or another program that has its process id now). That is safe: a second lock, the shared memory segment,
 * keeps Postgres from starting while anything of the old server lives.
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
  // A power cut leaves it empty or full of NUL bytes. A server that starts writes it right after it has made it.
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

/** True when a server runs on the data directory whose processes are not among ours, as that of another container. */
async function isLocked(dataDirectory: string): Promise<boolean> {
  const isFree = '[ ! -e "$0" ] || ! command -v flock >/dev/null || flock -n "$0" true';
  return (await run('/bin/sh', ['-c', isFree, join(dataDirectory, LOCK)], undefined)).code === 1;
}

/** True when a server takes connections on a port of loopback. */
async function isAnswering(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isAnswered = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isAnswered;
}

/** A Postgres server changes into its data directory before it locks it. A zombie has no directory any more. */
async function worksIn(pid: string, directory: string): Promise<boolean> {
  const expected = await stat(directory);
  try {
    const actual = await stat(`/proc/${pid}/cwd`);
    return actual.ino === expected.ino && actual.dev === expected.dev;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
