/**
 * A deployment of several processes on this machine: two `api`, a `worker` and a `host`, with a Postgres, a Redis (where
 * `redis-server` is on the PATH) and MCP servers of its own. Each part can be killed, paused and restarted.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort } from '../../bench/run.mjs';
import { root } from '../../scripts/lib.mjs';
import { randomFrom } from '../support/seed.mjs';
import { descendantsOf, isAlive, signal } from './processes.mjs';

/** The folder in which upstreams write what they carried out: not on a disk that an outage fills, which becomes `TMPDIR` later. */
const upstreamsFolder = tmpdir();

/** Time for a part to be ready after its start, and to end after SIGTERM. */
export const readyMaxMs = 120_000;
const stopMaxMs = 40_000;
const pollMs = 50;

/** A session of its own, as on a machine of its own: it has a share of the processor, and Ctrl-C reaches the run alone. */
const apart = { stdio: ['ignore', 'pipe', 'pipe'], detached: true };

/** Pause before a process that ended is started again. */
const superviseMs = 500;

/** Processes of each part with the role `api`, also in `rolling` and `outage`: `WORKERS=2 npm run lab chaos`. */
const workers = Number(process.env.WORKERS ?? 1);

/** Leases are short, so that pauses outlast them. */
const leaseMs = 3_000;
/** Pauses outlast the time limit of a call to an MCP server too. */
const callTimeoutMs = 4_000;
const wallMs = 15_000;

const random = randomFrom('worker to kill');
const children = new Set();
let isOver = false;
const folders = [];

/** Kills the processes that were reported to it when this one has ended, by SIGKILL too. Reads `+ pid` and `- pid`. */
const guardCode = `let text = '';
process.stdin.on('data', (chunk) => (text += chunk)).on('end', () => {
  const alive = new Set();
  for (const [, sign, pid] of text.matchAll(/([+-]) (\\d+)\\n/g)) sign === '+' ? alive.add(pid) : alive.delete(pid);
  for (const pid of alive) try { process.kill(Number(pid), 'SIGKILL'); } catch {}
});`;
const guard = spawn(process.execPath, ['-e', guardCode], { stdio: ['pipe', 'ignore', 'inherit'], detached: true });
guard.unref();
guard.stdin.unref();

/** Ends all processes at once and removes their files. */
export async function endEverything() {
  isOver = true;
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([...children].map(({ ended }) => ended));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

export async function until(isTrue, what, maxMs = readyMaxMs) {
  const deadline = Date.now() + maxMs;
  for (;;) {
    const value = await Promise.resolve(isTrue()).catch(() => false);
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`not within ${maxMs / 1000} s: ${what}`);
    await wait(pollMs);
  }
}

/** A part of the deployment: a program that runs as one process, with what it starts. */
export class Part {
  child = null;
  output = '';
  /** Exits that the run did not cause. */
  surprises = [];
  /** Processes that were seen below this part. */
  seen = [];
  isEnding = false;
  hasBeenReady = false;

  constructor(name, launch, isReady) {
    this.name = name;
    this.launch = launch;
    this.isReady = isReady;
  }

  get faults() {
    return ['kill', 'pause', 'restart'];
  }

  async start() {
    this.isEnding = false;
    this.hasBeenReady = false;
    const child = await this.launch();
    this.child = child;
    children.add(child);
    guard.stdin.write(`+ ${child.pid}\n`);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => (this.output += text));
    }
    child.ended = new Promise((resolve) => child.once('exit', (code, name) => resolve(code ?? name)));
    child.once('exit', (code, name) => {
      children.delete(child);
      guard.stdin.write(`- ${child.pid}\n`);
      if (!this.isEnding) void this.supervise(child, code ?? name);
    });
  }

  /** Starts the part again as an operator's supervisor would. A start without a database fails; nothing else may end it. */
  async supervise(child, code) {
    if (this.hasBeenReady) this.surprises.push(`${this.name} ended by itself with ${code}`);
    await wait(superviseMs);
    if (!this.isEnding && this.child === child && !isOver) await this.start();
  }

  /** Remembers what runs below this part, to find it if it is left over. */
  look() {
    if (!this.child) return;
    const recorded = new Set(this.seen.map(({ pid, startedAt }) => `${pid} ${startedAt}`));
    this.seen.push(
      ...descendantsOf(this.child.pid).filter(({ pid, startedAt }) => !recorded.has(`${pid} ${startedAt}`)),
    );
  }

  /** Processes that a pause stops. */
  pids() {
    return [this.child.pid];
  }

  /** Resolves when the part does its work. Rejects with the end of its output after {@link readyMaxMs}. */
  async ready() {
    await until(() => this.isReady(), `${this.name} is ready`).catch((error) => {
      throw new Error(`${error.message}\n${this.output.slice(-2_000)}`);
    });
    this.hasBeenReady = true;
  }

  async kill(goneMs) {
    this.look();
    this.isEnding = true;
    const { ended } = this.child;
    for (const pid of this.pids()) signal(pid, 'SIGKILL');
    await ended;
    await wait(goneMs);
    await this.start();
  }

  async pause(goneMs) {
    const pids = this.pids();
    for (const pid of pids) signal(pid, 'SIGSTOP');
    await wait(goneMs);
    for (const pid of pids) signal(pid, 'SIGCONT');
  }

  async restart(goneMs) {
    await this.stop();
    await wait(goneMs);
    await this.start();
  }

  /** Ends in order. @returns the exit code or signal */
  async stop() {
    this.look();
    this.isEnding = true;
    const { child } = this;
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.surprises.push(`${this.name} did not end within ${stopMaxMs / 1000} s of SIGTERM`);
      child.kill('SIGKILL');
    }, stopMaxMs);
    const code = await child.ended;
    clearTimeout(timer);
    if (code !== 0 && code !== 'SIGTERM') this.surprises.push(`${this.name} ended with ${code} at SIGTERM`);
    return code;
  }

  leftovers() {
    return this.seen.filter(isAlive).map(({ pid, name }) => `${this.name}: ${name} (${pid})`);
  }
}

/** A process of the service, or a supervisor and its workers, each of which can be killed alone. */
class Service extends Part {
  get faults() {
    return this.workers > 1 ? [...super.faults, 'worker'] : super.faults;
  }

  workerPids() {
    return descendantsOf(this.child.pid)
      .filter(({ name, parent }) => name === 'node' && parent === this.child.pid)
      .map(({ pid }) => pid);
  }

  pids() {
    return [this.child.pid, ...(this.workers > 1 ? this.workerPids() : [])];
  }

  async worker() {
    this.look();
    const pids = this.workerPids();
    if (pids.length === 0) return;
    const { length } = this.output;
    signal(pids[Math.floor(random() * pids.length)], 'SIGKILL');
    // Until then the supervisor hands connections to it, which are lost.
    await until(() => this.output.slice(length).includes('ended (SIGKILL)'), `${this.name} misses its worker`);
  }
}

/** The programs of the host: they are not started by us, but by the next call. */
class HostedPrograms extends Part {
  constructor(host) {
    super('programs', null, () => true);
    this.host = host;
  }

  get faults() {
    return ['kill', 'pause'];
  }

  pids() {
    return descendantsOf(this.host.child.pid)
      .filter(({ name }) => name === 'workerd')
      .map(({ pid }) => pid);
  }

  async kill() {
    this.host.look();
    for (const pid of this.pids()) signal(pid, 'SIGKILL');
  }

  look() {}
}

/** Postgres, whose backends are processes too. */
class Postgres extends Part {
  pids() {
    const postmaster = Number(readFileSync(join(this.folder, 'postmaster.pid'), 'utf8').split('\n')[0]);
    return [postmaster, ...descendantsOf(postmaster).map(({ pid }) => pid)];
  }
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy()).on('connect', () => socket.destroy());
  });
}

const dist = (file) => import(new URL(`../../dist/src/${file}`, import.meta.url));

/** A Postgres on a new cluster. @returns the part, and its URL */
async function makePostgres() {
  const [{ findRunningServer }, { chooseAccount, serverEnv }, files] = await Promise.all(
    ['postmaster', 'server-account', 'server-files'].map((name) => dist(`platform/embedded/${name}.js`)),
  );
  const folder = newFolder();
  const account = await chooseAccount(await files.locateDataDirectory(folder, undefined));
  const dataDirectory = await files.locateDataDirectory(folder, account);
  const installation = await files.findInstallation(account);
  const { password } = await files.ensureCluster(installation, folder, dataDirectory, false);
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', 'fsync=off'];
  const args = [`port=${port}`, ...settings].flatMap((setting) => ['-c', setting]);
  const url = `postgres://${files.databaseName}:${password}@127.0.0.1:${port}/${files.databaseName}`;
  const launch = async () => {
    // Removes the lock file of a killed server whose process id is taken again.
    await until(async () => (await findRunningServer(dataDirectory)) === undefined, 'the last Postgres has ended');
    return spawn(installation.postgres, ['-D', dataDirectory, ...args], {
      ...installation.account,
      cwd: '/',
      env: serverEnv,
      ...apart,
    });
  };
  const isReady = async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  const part = new Postgres('postgres', launch, isReady);
  part.folder = dataDirectory;
  // SIGINT is the shutdown that does not wait for clients.
  part.stop = async () => {
    part.isEnding = true;
    part.child.kill('SIGINT');
    return part.child.ended;
  };
  return { part, url };
}

/** Redis as production must have it: it keeps what it was sent. */
async function makeRedis() {
  const port = await freePort();
  const folder = newFolder();
  const settings = ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const args = [...settings, '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'].map(String);
  const launch = () => spawn('redis-server', args, apart);
  return { part: new Part('redis', launch, () => isListening(port)), url: `redis://127.0.0.1:${port}` };
}

/** A folder that goes with {@link endEverything}. */
export function newFolder(parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, 'slipway-chaos-'));
  chmodSync(folder, 0o777);
  folders.push(folder);
  return folder;
}

const upstreamsFile = fileURLToPath(new URL('./upstreams.mjs', import.meta.url));

/** An MCP server of upstreams.mjs. */
function makeUpstream(kind, job) {
  const launch = () => spawn(process.execPath, [upstreamsFile, kind, JSON.stringify(job)], apart);
  return new Part(kind, launch, () => job.port === undefined || isListening(job.port));
}

/** Stands for the ledger on the internet, the only address that hosted programs may dial. It is not assigned. */
const ledgerHost = '[2d00::1]';

/** Loaded into the processes of the service before their own code: leads the address of the ledger to this machine. */
const detour = `data:text/javascript,${encodeURIComponent(
  `import { Socket } from 'node:net';
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (...args) {
    const [options] = Array.isArray(args[0]) ? args[0] : args;
    if (options?.host === '2d00::1') options.host = '127.0.0.1';
    return connect.apply(this, args);
  };`,
)}`;

/** The checkout whose build processes of the service run from their next start on. */
export const checkout = { folder: root };

/** A process of the service. One with the role `api` has `workers` of its own if they are several. */
function makeService(name, port, settings, tuning) {
  const count = settings.ROLES.includes('api') ? workers : 1;
  const url = `http://127.0.0.1:${port}`;
  const env = { PATH: process.env.PATH, PORT: String(port), ADVERTISE_URL: url, WORKERS: String(count), ...settings };
  const launch = () =>
    spawn(
      process.execPath,
      ['--import', detour, join(checkout.folder, 'dist/src/main.js'), '--tuning', JSON.stringify(tuning)],
      { cwd: tmpdir(), env, ...apart },
    );
  const isReady = async () => {
    const response = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(2_000) });
    const { database } = await response.json();
    return response.ok && database !== 'degraded';
  };
  const part = new Service(name, launch, isReady);
  part.url = url;
  part.workers = count;
  return part;
}

/** Settings with which a pause is noticed within seconds. */
const hasty = { MCP_CALL_TIMEOUT_MS: String(callTimeoutMs), RUNTIME_WALL_MS: String(wallMs) };

/** Goes with `hasty`. */
const hastyTuning = {
  upstreamCallTimeoutMs: callTimeoutMs,
  runtimeLeaseMs: leaseMs,
  uplinkLeaseMs: leaseMs,
  releaseLeaseMs: leaseMs,
  uplinkPingMs: 2_000,
};

const chaosRoles = { 'api 1': 'api', 'api 2': 'api', worker: 'worker', host: 'host' };

/**
 * Starts everything.
 *
 * @param roles of each process of the service, two with the role `api` first
 * @param more settings of the processes, or a function that makes them of the URL of Postgres
 * @param proxyPort of a proxy before the `api` processes, through which the local server dials
 * @returns the parts by name, and what callers need
 */
export async function startDeployment(roles = chaosRoles, more = hasty, proxyPort = undefined) {
  const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
  const [postgres, redis] = await Promise.all([makePostgres(), hasRedis ? makeRedis() : null]);
  await Promise.all([postgres.part.start(), redis?.part.start()]);
  await Promise.all([postgres.part.ready(), redis?.part.ready()]);
  const key = `slipway_${randomBytes(32).toString('base64url')}`;
  const names = Object.keys(roles);
  const [ports, dataDir] = [await Promise.all(Array.from({ length: names.length + 3 }, freePort)), newFolder()];
  const [sessions, modern, ledger, ...servicePorts] = ports;
  const settings = {
    DATA_DIR: dataDir,
    DATABASE_URL: postgres.url,
    ...(redis && { REDIS_URL: redis.url }),
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    BOOTSTRAP_API_KEY: key,
    PUBLIC_URL: `http://127.0.0.1:${proxyPort ?? servicePorts[0]}`,
    DATABASE_POOL_MAX: '8',
    EGRESS_ALLOW: 'loopback',
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'warn',
    METRICS_TOKEN: 'open',
    ACCOUNT_LIMITS: 'requestsPerMinute=1000000000,keyRequestsPerMinute=1000000000,connections=1000000',
    ...(typeof more === 'function' ? await more(postgres.url) : more),
  };
  const tuning = more === hasty ? hastyTuning : {};
  const services = names.map((name, n) =>
    makeService(name, servicePorts[n], { ...settings, ROLES: roles[name] }, tuning),
  );
  const files = newFolder(upstreamsFolder);
  const fileOf = (kind) => join(files, kind);
  const urls = services.slice(0, 2).map(({ url }) => url);
  const dialed = proxyPort ? [`http://127.0.0.1:${proxyPort}`] : urls;
  const upstreams = [
    makeUpstream('sessions', { port: sessions, file: fileOf('sessions') }),
    makeUpstream('modern', { port: modern, file: fileOf('modern') }),
    makeUpstream('local', { file: fileOf('local'), urls: dialed, path: '/chaos/local', key }),
  ];
  const ledgerPart = makeUpstream('ledger', { port: ledger, file: fileOf('ledger') });
  const parts = [...services, ...upstreams, ledgerPart];
  await Promise.all(parts.map((part) => part.start()));
  await Promise.all(parts.map((part) => part.ready()));
  return {
    services,
    /** Parts that may be disturbed: all but the ledger. */
    parts: [
      ...services,
      postgres.part,
      ...(redis ? [redis.part] : []),
      ...upstreams,
      new HostedPrograms(services.at(-1)),
    ],
    all: [...parts, postgres.part, ...(redis ? [redis.part] : [])],
    urls,
    key,
    databaseUrl: postgres.url,
    upstreamUrl: { sessions: `http://127.0.0.1:${sessions}/mcp`, modern: `http://127.0.0.1:${modern}/mcp` },
    ledgerUrl: `http://${ledgerHost}:${ledger}`,
    /** How often each token was executed. */
    executions: () => {
      const counts = new Map();
      for (const kind of ['sessions', 'modern', 'local', 'ledger']) {
        let text = '';
        try {
          text = readFileSync(fileOf(kind), 'utf8');
        } catch {
          // Nothing was executed there.
        }
        for (const token of text.split('\n')) if (token) counts.set(token, (counts.get(token) ?? 0) + 1);
      }
      return counts;
    },
  };
}
