#!/usr/bin/env node
// `npm run bench`: what a call costs through Slipway, next to the same call straight to the server and through a
// bare pass-through. Rounds are interleaved, so a slow minute of the machine falls on every target alike; a ratio
// is taken inside its round first, then over the rounds. Also holds what the other benches and the conformance run share.
//
//   npm run bench -- [--rounds 5] [--calls 5000] [--callers 1,16,64] [--quick] [--only direct,nginx,pass-through,rest,mcp,session,run] [--json]

import { Blob } from 'node:buffer';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';

const runMaxMs = 20 * 60_000;
const readyMaxMs = 120_000;
const stopMaxMs = 15_000;
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

// ---- Processes: every child is in one set, and leaves with the bench however that ends.

const children = new Set();
const folders = new Set();
const exitOf = (child) =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', resolve));

export function start(label, args, env = {}, program = process.execPath) {
  const child = spawn(program, args, {
    cwd: path('..'),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child.label = label;
  child.output = '';
  const keep = (chunk) => (child.output = (child.output + chunk).slice(-4000));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

export async function stop(child) {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMaxMs);
  await exitOf(child);
  clearTimeout(timer);
}

/** A folder that goes when the bench goes; open to the account the embedded database takes when root runs the bench. */
export function tempFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-bench-'));
  chmodSync(folder, 0o755);
  folders.add(folder);
  return folder;
}

/** Runs `main` with a time limit; on success, failure, time-out and Ctrl-C every child stops, then `cleanUp` runs. */
export async function runBench(main, { maxMs = runMaxMs, cleanUp = async () => {} } = {}) {
  let isLeaving = false;
  const leave = async (code, message) => {
    if (isLeaving) return; // what fails because the children stop is no news
    isLeaving = true;
    if (message) console.error(message);
    await Promise.all([...children].map(stop));
    await cleanUp().catch((error) => console.error(error));
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    process.exit(code);
  };
  process.once('SIGINT', () => leave(130, 'interrupted'));
  process.once('SIGTERM', () => leave(143, 'interrupted'));
  process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));
  setTimeout(() => leave(1, `gave up after ${maxMs / 60_000} minutes`), maxMs).unref();
  try {
    await main();
    await leave(process.exitCode ?? 0);
  } catch (error) {
    await leave(1, error.stack ?? String(error));
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export async function until(child, maxMs, isReady) {
  const deadline = Date.now() + maxMs;
  while (!(await isReady().catch(() => false))) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      throw new Error(`${child.label} did not come up:\n${child.output.trim()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Starts a script of this folder that takes --port and says so when it listens. */
export async function startServer(label, file, args, env) {
  const port = await freePort();
  const child = start(label, [path(file), '--port', String(port), ...args], env);
  await until(child, 10_000, async () => child.output.includes(`:${port}`));
  return { label, child, url: `http://127.0.0.1:${port}` };
}

/** nginx as a proxy that keeps its upstream connections, in one process; null where it is not installed. */
async function startNginx(upstream) {
  if (spawnSync('nginx', ['-v']).error) return null;
  const [folder, port] = [tempFolder(), await freePort()];
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr;
    events { worker_connections 1024; }
    http {
      access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      keepalive_requests 1000000000;
      upstream echo { server ${new URL(upstream).host}; keepalive 256; keepalive_requests 1000000000; }
      server {
        listen 127.0.0.1:${port};
        location / { proxy_pass http://echo; proxy_http_version 1.1; proxy_set_header Connection ""; }
      }
    }`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  const child = start('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {}, 'nginx');
  const url = `http://127.0.0.1:${port}`;
  await until(child, 10_000, async () => (await fetch(url)).status > 0);
  return { label: 'nginx', child, url };
}

export const startEcho = (...args) => startServer('echo server', './echo-server.mjs', args);

export async function ensureBuilt() {
  const lib = path('../scripts/lib.mjs');
  if (existsSync(lib)) await (await import(lib)).ensureBuilt?.();
  if (!existsSync(path('../dist/src/main.js'))) throw new Error('the service is not built: npm run build');
}

// Loaded into the service before its own code: it stops when the bench is gone and tells its memory when asked.
const companion = `data:text/javascript,${encodeURIComponent(
  `if (process.ppid === ${process.pid} && process.channel) {
    process.on('message', (ask) => {
      if (ask === 'gc') globalThis.gc?.();
      process.send({ ...process.memoryUsage(), handles: process.getActiveResourcesInfo().length });
    });
    process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
    process.channel.unref();
  }`,
)}`;

/** Slipway as a user starts it, on a fresh data folder, with a key of our own. */
export async function startService({ env = {}, nodeArgs = [] } = {}) {
  await ensureBuilt();
  const port = await freePort();
  const key = `slipway_${randomBytes(32).toString('base64url')}`;
  const child = start('slipway', [...nodeArgs, '--import', companion, path('../dist/src/main.js')], {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(port),
    DATA_DIR: tempFolder(),
    DATABASE_URL: '',
    REDIS_URL: '',
    BOOTSTRAP_API_KEY: key,
    LOG_LEVEL: 'warn',
    EGRESS_ALLOW: 'loopback',
    // One key sends what many would.
    ACCOUNT_LIMITS:
      'requestsPerMinute=1000000000,keyRequestsPerMinute=1000000000,namespaces=1000000,connections=1000000000,connectionsPerNamespace=1000000000',
    ...env,
  });
  const url = `http://127.0.0.1:${port}`;
  await until(child, readyMaxMs, async () => (await fetch(`${url}/ready`)).ok);
  return { label: 'slipway', child, url, key, ...apiOf({ child, url, key }) };
}

/** Requests to a service as the holder of a key. */
export function apiOf({ child, url, key }) {
  const request = async (method, route, body) => {
    const response = await fetch(`${url}${route}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  const connect = async (namespace, id, mcpUrl) => {
    const connection = await request('PUT', `/connect/${namespace}/${id}`, { mcpUrl });
    if (connection.status?.state !== 'connected') throw new Error(`not connected: ${JSON.stringify(connection)}`);
  };
  /** Makes a server with a release; gives its MCP address. */
  const publish = async (name, payload, module) => {
    const server = `/servers/${encodeURIComponent(name)}`;
    await request('PUT', server);
    const form = new FormData();
    form.set('payload', JSON.stringify(payload));
    if (module) form.set('module', new Blob([module]), 'module.js');
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}${server}/releases`, { method: 'PUT', headers, body: form });
    const { mcpUrl } = await response.json();
    let release;
    await until(child, readyMaxMs, async () => {
      release = await request('GET', `${server}/releases/latest`);
      return ['SUCCESS', 'FAILURE'].includes(release.status);
    });
    if (release.status === 'FAILURE') throw new Error(`${name}: ${JSON.stringify(release).slice(0, 2000)}`);
    return mcpUrl;
  };
  return { request, connect, publish };
}

const localResults = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1' },
  },
  'tools/call': { content: [{ type: 'text', text: 'here' }] },
};

/** Pairs a local server that answers; resolves when it was greeted. */
export function pairUplink({ url, key }, address) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${address}`, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  });
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', (code, reason) => reject(new Error(`closed with ${code} ${reason}`)));
    socket.on('message', (data) => {
      const { id, method } = JSON.parse(data.toString());
      if (id !== undefined) socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: localResults[method] }));
      else if (method === 'notifications/initialized') resolve(socket);
    });
  });
}

// ---- Figures of a process, from /proc; without it (not Linux) they are left out.

const statOf = (pid) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const us = (field) => Number(fields[field]) * 10_000;
  return { parent: Number(fields[1]), cpuUs: us(11) + us(12), endedUs: us(13) + us(14) };
};

/** CPU time used so far: of the process itself, and of everything below it, such as the embedded database, ended or not. */
export function cpuUsOf(pid) {
  if (!existsSync('/proc/self/stat')) return { own: NaN, below: NaN };
  const stats = new Map();
  for (const name of readdirSync('/proc')) {
    try {
      if (/^\d+$/.test(name)) stats.set(Number(name), statOf(name));
    } catch {
      // ended meanwhile
    }
  }
  const isBelow = (stat) => stat !== undefined && (stat.parent === pid || isBelow(stats.get(stat.parent)));
  let below = stats.get(pid)?.endedUs ?? NaN;
  for (const stat of stats.values()) if (isBelow(stat)) below += stat.cpuUs + stat.endedUs;
  return { own: stats.get(pid)?.cpuUs ?? NaN, below };
}

export function rssMbOf(pid) {
  if (!existsSync('/proc/self/status')) return NaN;
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

export const median = (values) => {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length === 0 ? NaN : (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
};
export const shown = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits) : '-');
export const loadAverage = () => shown(loadavg()[0]);

export function integerOption(name, text, lowest, highest) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= lowest && value <= highest) return value;
  console.error(`--${name} must be a whole number from ${lowest} to ${highest}`);
  process.exit(2);
}

// ---- The bench itself.

export async function load(target, callers, calls) {
  const before = cpuUsOf(target.server.child.pid);
  const warmup = Math.min(1000, calls); // lets the load's own code get compiled
  const era = target.era ? ['--era', target.era] : [];
  const args = [
    '--url',
    target.url,
    '--mode',
    target.mode,
    ...era,
    ...target.headers.flatMap((line) => ['--header', line]),
    ...(target.more ?? []),
  ];
  const bounds = ['--concurrency', String(callers), '--calls', String(calls), '--warmup', String(warmup)];
  const child = start(`load on ${target.label}`, [path('./load.mjs'), ...args, ...bounds]);
  await exitOf(child);
  let figures;
  try {
    figures = JSON.parse(child.output);
  } catch {
    throw new Error(`${child.label}: ${child.output.trim()}`);
  }
  const after = cpuUsOf(target.server.child.pid);
  const count = figures.done + figures.failed + warmup;
  return {
    ...figures,
    cpuUs: (after.own - before.own) / count,
    cpuBelowUs: (after.below - before.below) / count,
    rssMb: rssMbOf(target.server.child.pid),
  };
}

/**
 * Starts what is wanted, by the names that --only takes, and gives the targets.
 *
 * @param options of `startService`
 */
export async function setUp(wanted, options) {
  const targets = [];
  const add = (name, label, server, url, more) =>
    targets.push({ name, label, server, url, mode: 'mcp', headers: [], ...more });
  const echo = await startEcho();
  if (wanted('direct')) add('direct', 'direct', echo, `${echo.url}/mcp`);
  if (wanted('nginx')) {
    const nginx = await startNginx(echo.url);
    if (nginx) add('nginx', 'nginx', nginx, `${nginx.url}/mcp`);
    else console.log('nginx is not installed: its row is left out.');
  }
  if (wanted('pass-through')) {
    const bare = await startServer('pass-through', './pass-through.mjs', ['--upstream', echo.url]);
    add('pass-through', 'pass-through', bare, `${bare.url}/mcp`);
  }
  if (['rest', 'mcp', 'session', 'run'].some(wanted)) {
    const service = await startService(options);
    await service.request('PUT', '/namespaces/bench');
    await service.connect('bench', 'echo', `${echo.url}/mcp`);
    const headers = [`Authorization: Bearer ${service.key}`];
    const connection = `${service.url}/connect/bench/echo`;
    if (wanted('rest')) add('rest', 'slipway REST', service, `${connection}/.tools/echo`, { mode: 'rest', headers });
    if (wanted('mcp')) add('mcp', 'slipway MCP', service, `${connection}/mcp`, { headers });
    // Its server has sessions too, so that the client's session is not made up by the service.
    if (wanted('session')) {
      const stateful = await startEcho('--sessions');
      await service.connect('bench', 'sessions', `${stateful.url}/mcp`);
      const url = `${service.url}/connect/bench/sessions/mcp`;
      add('session', 'MCP session', service, url, { headers, more: ['--session'] });
    }
    if (wanted('run')) {
      const url = await service.publish('bench/echo', { type: 'external', upstreamUrl: `${echo.url}/mcp` });
      add('run', 'slipway run', service, url, { headers });
    }
  }
  return targets;
}

/** One line per target. Direct's p50 and the pass-through's calls/s of the same round are what a round is held to. */
function summarize(targets, rounds) {
  return targets.map(({ label }) => {
    const of = (pick) => rounds.map((round) => pick(round.get(label), round));
    const ratios = of((run, round) => run.perSecond / (round.get('pass-through')?.perSecond ?? NaN));
    return {
      target: label,
      perSecond: median(of((run) => run.perSecond)),
      ratio: median(ratios),
      ratioMin: Math.min(...ratios),
      ratioMax: Math.max(...ratios),
      p50: median(of((run) => run.p50)),
      p99: median(of((run) => run.p99)),
      addedP50: median(of((run, round) => run.p50 - (round.get('direct')?.p50 ?? NaN))),
      cpuUs: median(of((run) => run.cpuUs)),
      cpuBelowUs: median(of((run) => run.cpuBelowUs)),
      rssMb: rounds.at(-1).get(label).rssMb,
      failed: of((run) => run.failed).reduce((sum, count) => sum + count, 0),
      errors: Object.assign({}, ...of((run) => run.errors)),
    };
  });
}

function print(callers, lines) {
  console.log(`\n${callers} caller${callers === 1 ? '' : 's'} (load average ${loadAverage()})\n`);
  console.log(
    '| target       | calls/s | ratio (min - max)  | p50 ms | p99 ms | added p50 | CPU µs | below µs | RSS MB | failed |',
  );
  console.log(
    '|--------------|--------:|-------------------:|-------:|-------:|----------:|-------:|---------:|-------:|-------:|',
  );
  for (const line of lines) {
    const cells = [
      line.target.padEnd(12),
      shown(line.perSecond, 0).padStart(7),
      `${shown(line.ratio)} (${shown(line.ratioMin)} - ${shown(line.ratioMax)})`.padStart(18),
      shown(line.p50, 3).padStart(6),
      shown(line.p99, 3).padStart(6),
      shown(line.addedP50, 3).padStart(9),
      shown(line.cpuUs, 0).padStart(6),
      shown(line.cpuBelowUs, 0).padStart(8),
      shown(line.rssMb, 0).padStart(6),
      String(line.failed).padStart(6),
    ];
    console.log(`| ${cells.join(' | ')} |`);
    if (line.failed > 0) console.log(`  ${JSON.stringify(line.errors)}`);
  }
}

async function main() {
  const { values: options } = parseArgs({
    options: {
      rounds: { type: 'string' },
      calls: { type: 'string' },
      callers: { type: 'string', default: '1,16,64' },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const roundCount = integerOption('rounds', options.rounds ?? (options.quick ? 2 : 5), 1, 20);
  const calls = integerOption('calls', options.calls ?? (options.quick ? 1500 : 5000), 1, 50_000);
  const levels = options.callers.split(',').map((text) => integerOption('callers', text, 1, 1000));
  const only = options.only?.split(',');
  const targets = await setUp((name) => only === undefined || only.includes(name));
  if (targets.length === 0) throw new Error('--only takes: direct, nginx, pass-through, rest, mcp, session, run');

  const summary = {};
  console.log(
    `${roundCount} rounds of ${calls} calls a target, medians; ${availableParallelism()} cores shared by all.`,
  );
  console.log(`Node ${process.version}, load average ${loadAverage()} before.`);
  for (const callers of levels) {
    const rounds = [];
    for (let index = 0; index < roundCount; index += 1) {
      const round = new Map();
      const first = index % targets.length; // nobody is always first
      for (const target of [...targets.slice(first), ...targets.slice(0, first)]) {
        round.set(target.label, await load(target, callers, calls));
      }
      rounds.push(round);
    }
    summary[callers] = summarize(targets, rounds);
    print(callers, summary[callers]);
    if (summary[callers].some((line) => line.failed > 0)) process.exitCode = 1;
  }
  if (options.json) console.log(JSON.stringify(summary));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runBench(main);
