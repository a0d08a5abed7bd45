#!/usr/bin/env node
// `npm run lab bench`: what a call costs through Slipway, next to the same call straight to the server and through a bare
// pass-through; with --against also next to the same call through another build. Also holds what the other benches and
// the conformance run share.
//
// One load process lives as long as the bench. Rounds consist of a short slice of calls to each target in turn, so a slow
// second of the machine falls on every target alike; a ratio is taken inside its round first, then over the rounds.
//
//   npm run lab bench -- [--rounds 24] [--calls 1000] [--callers 1,16,64] [--quick] [--json]
//                    [--only direct,nginx,pass-through,rest,mcp,oauth,session,run,rest64k,rest1m] [--against <folder>]
//
// --against: the folder of another checkout of this repository that has been built; its service runs on a port and an
// embedded database of its own.

import { Blob } from 'node:buffer';
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as wait } from 'node:timers/promises';
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
    if (isLeaving) return; // failures caused by the stop of the children are expected
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

/** Starts a script of this folder that takes --port and reports when it listens. */
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

// Loaded into the service before its own code: it stops when the bench exits and reports its memory on request.
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

/**
 * Slipway as a user starts it, on a fresh data folder, with a key of our own.
 *
 * @param folder the checkout whose build is started; this one is built first when it has changed
 */
export async function startService({ env = {}, tuning = null, nodeArgs = [], folder = path('..') } = {}) {
  if (folder === path('..')) await ensureBuilt();
  const main = join(folder, 'dist/src/main.js');
  if (!existsSync(main)) throw new Error(`no build in ${folder}`);
  const port = await freePort();
  const key = `slipway_${randomBytes(32).toString('base64url')}`;
  const tuned = tuning ? ['--tuning', JSON.stringify(tuning)] : [];
  const child = start('slipway', ['--max-semi-space-size=16', ...nodeArgs, '--import', companion, main, ...tuned], {
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

/** Queries a process that `start` started; its reply is a message with the question as its key; see inside.mjs. */
export async function ask(child, question) {
  child.send(question);
  for (;;) {
    const [message] = await once(child, 'message');
    if (question in message) return message[question];
  }
}

/** A hosted MCP server with the tool `echo`, without packages; its text differs by name, so that each is a new module. */
export const echoModule = (name) => `const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: '${name}', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [{ name: 'echo', description: 'Answers', inputSchema: { type: 'object' } }] }),
  'tools/call': ({ arguments: { message } }) => ({ content: [{ type: 'text', text: message }] }),
};
export default { async fetch(request) {
  const { id, method, params } = await request.json().catch(() => ({}));
  if (id === undefined) return new Response(null, { status: request.method === 'POST' ? 202 : 405 });
  const result = results[method]?.(params);
  return Response.json({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'No such method' } }) });
} };`;

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

/** Logs in at an MCP endpoint as a client that knows its address only, for the holder of the key; gives the access token. */
export async function logIn({ url, key }, resource) {
  const cookies = new Map();
  const browse = async (address, form) => {
    const response = await fetch(new URL(address, url), {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      body: form && new URLSearchParams(form),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    return { next: response.headers.get('location'), text: await response.text() };
  };
  const field = (text, name) => new RegExp(`name="${name}" value="([^"]+)"`).exec(text)?.[1] ?? '';
  const redirectUri = 'http://127.0.0.1:43110/callback';
  const verifier = randomBytes(32).toString('base64url');
  const registered = await fetch(`${url}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'bench', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }),
  });
  const { client_id: client } = await registered.json();
  const page = await browse('/login');
  await browse('/login', { 'form-token': field(page.text, 'form-token'), key });
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const asked = { client_id: client, response_type: 'code', redirect_uri: redirectUri, resource };
  const proof = { code_challenge: challenge, code_challenge_method: 'S256' };
  const { next: consent } = await browse(`/authorize?${new URLSearchParams({ ...asked, ...proof })}`);
  const { text } = await browse(consent);
  const answer = { 'form-token': field(text, 'form-token'), account: field(text, 'account'), answer: 'allow' };
  const { next: resume } = await browse(consent, answer);
  const code = new URL((await browse(resume)).next).searchParams.get('code');
  const exchange = { grant_type: 'authorization_code', client_id: client, redirect_uri: redirectUri, code };
  const body = new URLSearchParams({ ...exchange, code_verifier: verifier });
  const tokens = await (await fetch(`${url}/token`, { method: 'POST', body })).json();
  if (!tokens.access_token) throw new Error(`no token: ${JSON.stringify(tokens)}`);
  return tokens.access_token;
}

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
  return { parent: Number(fields[1]), cpuUs: runUsOf(pid), endedUs: us(13) + us(14) };
};

/** CPU time of all threads of a process, in µs: nanoseconds of the scheduler, not ticks of 10 ms. */
export function runUsOf(pid) {
  const tasks = `/proc/${pid}/task`;
  const nanoseconds = (id) => Number(readFileSync(`${tasks}/${id}/schedstat`, 'utf8').split(' ')[0]);
  return readdirSync(tasks).reduce((sum, id) => sum + nanoseconds(id), 0) / 1000;
}

/** CPU time used so far: of the process itself, and of everything below it, such as the embedded database, ended or not. */
export function cpuUsOf(pid) {
  if (!existsSync('/proc/self/schedstat')) return { own: NaN, below: NaN };
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

/** The value below which this share of all is, between neighbours by their distance. */
export const quantile = (values, share) => {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return sorted.length === 0 ? NaN : low + (high - low) * (at - Math.floor(at));
};
export const median = (values) => quantile(values, 0.5);
export const shown = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits) : '-');
export const loadAverage = () => shown(loadavg()[0]);

export function integerOption(name, text, lowest, highest) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= lowest && value <= highest) return value;
  console.error(`--${name} must be a whole number from ${lowest} to ${highest}`);
  process.exit(2);
}

// ---- The bench itself.

let loader;

/**
 * Calls a target. @param target url, mode, headers, and, where they differ from the default, era, session and bytes, as
 * load.mjs takes them, and the server whose process is measured
 */
export async function load({ server, label, ...target }, callers, calls) {
  loader ??= start('load', [path('./load.mjs')]);
  const { pid } = server.child;
  const idle = idleOf.get(pid) ?? { own: 0, below: 0 };
  const belowUs = cpuUsOf(pid).below;
  const startedAt = performance.now();
  loader.send({ ...target, callers, calls, pid });
  const { figures, error } = await new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`the load ended: ${loader.output.trim()}`));
    loader.once('exit', onExit);
    loader.once('message', (message) => {
      loader.off('exit', onExit);
      resolve(message);
    });
  });
  if (error) throw new Error(`${label}: ${error}`);
  if (figures.done > 0 && writesLater.includes(target.name)) {
    const ownUs = cpuUsOf(pid).own;
    await wait(settleMs);
    figures.cpuUs += Math.max(0, cpuUsOf(pid).own - ownUs - idle.own * settleMs) / figures.done;
  }
  const idleBelowUs = idle.below * (performance.now() - startedAt);
  const cpuBelowUs = Math.max(0, cpuUsOf(pid).below - belowUs - idleBelowUs) / (figures.done + figures.failed);
  return { ...figures, cpuBelowUs, rssMb: rssMbOf(pid) };
}

/** µs of CPU a ms that idle processes take, by pid: what is billed after a slice is without them. */
const idleOf = new Map();
const idleMs = 10_000;

/** Measures the idle processes of these targets. */
async function measureIdle(targets) {
  const pids = [...new Set(targets.map(({ server }) => server.child.pid))];
  const before = pids.map(cpuUsOf);
  const startedAt = performance.now();
  await wait(idleMs);
  const ms = performance.now() - startedAt;
  for (const [at, pid] of pids.entries()) {
    const after = cpuUsOf(pid);
    idleOf.set(pid, { own: (after.own - before[at].own) / ms, below: (after.below - before[at].below) / ms });
  }
}

/** Targets whose slice is followed by the writing of its logs, which is billed to them. */
const writesLater = ['run', 'session'];
const settleMs = 1_200;

const payloads = [
  { name: 'rest64k', size: '64 KB', bytes: 64 * 1024, share: 0.2 },
  { name: 'rest1m', size: '1 MB', bytes: 1024 * 1024, share: 0.02 },
];
/** Calls to each target before the rounds: V8 has then compiled what all processes do. */
const warmCalls = 3000;
const always = ['direct', 'nginx', 'pass-through', 'rest', 'mcp', 'session', 'run'];

/**
 * Starts what is wanted, by the names that --only takes, and gives the targets. `yardstick`: the label of the target that
 * the others of the same calls are held to. `share`: part of a slice's calls, for calls that take long.
 *
 * @param options of `startService`, for each build
 */
export async function setUp(wanted, ...builds) {
  const targets = [];
  const add = (name, label, server, url, more) =>
    targets.push({ name, label, server, url, mode: 'mcp', headers: [], yardstick: 'pass-through', share: 1, ...more });
  const echo = await startEcho();
  if (wanted('direct')) add('direct', 'direct', echo, `${echo.url}/mcp`);
  if (wanted('nginx')) {
    const nginx = await startNginx(echo.url);
    if (nginx) add('nginx', 'nginx', nginx, `${nginx.url}/mcp`);
    else console.log('nginx is not installed: its row is left out.');
  }
  const sized = payloads.filter(({ name }) => wanted(name));
  if (wanted('pass-through') || sized.length > 0) {
    const bare = await startServer('pass-through', './pass-through.mjs', ['--upstream', echo.url]);
    if (wanted('pass-through')) add('pass-through', 'pass-through', bare, `${bare.url}/mcp`);
    for (const { size, bytes, share } of sized) {
      const label = `pass ${size}`;
      add('pass-through', label, bare, `${bare.url}/mcp`, { yardstick: label, bytes, share });
    }
  }
  // Has sessions, so that the client's session is not made up by the service.
  const stateful = wanted('session') ? await startEcho('--sessions') : null;
  if (![...always.slice(3), 'oauth', ...payloads.map(({ name }) => name)].some(wanted)) return targets;
  for (const [at, build] of (builds.length > 0 ? builds : [{}]).entries()) {
    const service = await startService(build);
    await service.request('PUT', '/namespaces/bench');
    await service.connect('bench', 'echo', `${echo.url}/mcp`);
    const connection = `${service.url}/connect/bench/echo`;
    const headers = [`Authorization: Bearer ${service.key}`];
    const addOurs = (name, label, url, more) =>
      add(name, `${at === 0 ? 'slipway' : 'old'} ${label}`, service, url, { headers, build: at, ...more });
    if (wanted('rest')) addOurs('rest', 'REST', `${connection}/.tools/echo`, { mode: 'rest' });
    if (wanted('mcp')) addOurs('mcp', 'MCP', `${connection}/mcp`);
    if (wanted('oauth')) {
      const token = await logIn(service, `${connection}/mcp`);
      const more = { headers: [`Authorization: Bearer ${token}`], yardstick: 'slipway MCP' };
      addOurs('oauth', 'MCP, OAuth', `${connection}/mcp`, more);
    }
    if (stateful) {
      await service.connect('bench', 'sessions', `${stateful.url}/mcp`);
      addOurs('session', 'session', `${service.url}/connect/bench/sessions/mcp`, { session: true });
    }
    if (wanted('run')) {
      const url = await service.publish('bench/echo', { type: 'external', upstreamUrl: `${echo.url}/mcp` });
      addOurs('run', 'run', url);
    }
    for (const { name, size, bytes, share } of sized) {
      const more = { mode: 'rest', yardstick: `pass ${size}`, bytes, share };
      addOurs(name, size, `${connection}/.tools/echo`, more);
    }
  }
  return targets;
}

/** The median with the quartiles. */
const spreadOf = (values) => ({ median: median(values), lower: quantile(values, 0.25), upper: quantile(values, 0.75) });
const shownSpread = ({ median: middle, lower, upper }) => `${shown(middle)} (${shown(lower)} - ${shown(upper)})`;

/** The pass-through's CPU of a call on a quiet machine with 16 callers, in µs, and how far its quartiles are apart there. */
const quietUsMax = 130;
const quietSpreadMax = 1.1;

/** Why the machine is too busy for a figure; undefined when it is quiet, or the pass-through is not among the targets. */
function busyReason(callers, rounds) {
  const values = rounds.map((round) => round.get('pass-through')?.cpuUs);
  const { median: us, lower, upper } = spreadOf(values);
  const figures = `the pass-through takes ${shown(us, 0)} µs of CPU a call (${shown(lower, 0)} - ${shown(upper, 0)})`;
  if (callers >= 16 && us > quietUsMax) return `${figures}, more than ${quietUsMax} µs`;
  return upper / lower > quietSpreadMax ? `${figures}, and its quartiles differ by more than 10 %` : undefined;
}

/** One line per target. The yardstick, the direct call and the other build of the same round are what a round is held to. */
function summarize(targets, rounds) {
  return targets.map(({ name, label, yardstick, bytes, build }) => {
    const of = (pick) => rounds.map((round) => pick(round.get(label), round));
    const timesOf = (other, figure) => spreadOf(of((run, round) => run[figure] / (round.get(other)?.[figure] ?? NaN)));
    const old = build === 0 ? targets.find((target) => target.build === 1 && target.name === name) : undefined;
    const cpuUs = median(of((run) => run.cpuUs));
    const calls = of((run) => run.done + run.failed);
    return {
      target: label,
      cpuUs,
      cpuRatio: timesOf(yardstick, 'cpuUs'),
      perSecond: median(of((run) => run.perSecond)),
      ratio: timesOf(yardstick, 'perSecond'),
      p50: median(of((run) => run.p50)),
      p99: median(of((run) => run.p99)),
      addedP50: median(of((run, round) => run.p50 - (round.get('direct')?.p50 ?? NaN))),
      cpuBelowUs:
        of((run) => run.cpuBelowUs).reduce((sum, us, at) => sum + us * calls[at], 0) / calls.reduce((a, b) => a + b),
      rssMb: rounds.at(-1).get(label).rssMb,
      failed: of((run) => run.failed).reduce((sum, count) => sum + count, 0),
      errors: Object.assign({}, ...of((run) => run.errors)),
      ...(bytes && { cpuMsPerMb: cpuUs / 1000 / (bytes / 2 ** 20) }),
      ...(old && { newOverOld: { cpu: timesOf(old.label, 'cpuUs'), perSecond: timesOf(old.label, 'perSecond') } }),
    };
  });
}

function table(heads, rows) {
  const widths = heads.map((head, at) => Math.max(head.length, ...rows.map((row) => row[at].length)));
  const line = (cells) =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  console.log([line(heads), line(rule), ...rows.map(line)].join('\n'));
}

function print(callers, lines) {
  console.log(`\n${callers} caller${callers === 1 ? '' : 's'} (load average ${loadAverage()})\n`);
  const heads = [
    'target',
    'CPU µs',
    'CPU ratio',
    'calls/s',
    'calls/s ratio',
    'p50 ms',
    'p99 ms',
    'added p50',
    'below µs',
    'RSS MB',
    'failed',
  ];
  const cells = lines.map((line) => [
    line.target,
    shown(line.cpuUs, 0),
    shownSpread(line.cpuRatio),
    shown(line.perSecond, 0),
    shownSpread(line.ratio),
    shown(line.p50, 3),
    shown(line.p99, 3),
    shown(line.addedP50, 3),
    shown(line.cpuBelowUs, 0),
    shown(line.rssMb, 0),
    String(line.failed),
  ]);
  table(heads, cells);
  for (const { target, failed, errors } of lines) if (failed > 0) console.log(`${target}: ${JSON.stringify(errors)}`);
  for (const { target, cpuMsPerMb } of lines)
    if (cpuMsPerMb !== undefined) console.log(`${target}: ${shown(cpuMsPerMb)} ms of CPU per MB`);
  const compared = lines.filter(({ newOverOld }) => newOverOld);
  if (compared.length === 0) return;
  console.log('\nThis build over the other one:\n');
  table(
    ['target', 'CPU', 'calls/s'],
    compared.map(({ target, newOverOld: { cpu, perSecond } }) => [target, shownSpread(cpu), shownSpread(perSecond)]),
  );
}

async function main() {
  const { values: options } = parseArgs({
    options: {
      rounds: { type: 'string' },
      calls: { type: 'string' },
      callers: { type: 'string', default: '1,16,64' },
      only: { type: 'string' },
      against: { type: 'string' },
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      busy: { type: 'boolean', default: false },
    },
  });
  const roundCount = integerOption('rounds', options.rounds ?? (options.quick ? 6 : 24), 1, 100);
  const calls = integerOption('calls', options.calls ?? (options.quick ? 500 : 1000), 100, 50_000);
  const levels = options.callers.split(',').map((text) => integerOption('callers', text, 1, 1000));
  const names = [...always, 'oauth', ...payloads.map(({ name }) => name)];
  const only = options.only?.split(',') ?? always;
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`--only takes: ${names.join(', ')}`);
  const builds = options.against ? [{}, { folder: resolve(options.against) }] : [{}];
  const targets = await setUp((name) => only.includes(name), ...builds);
  // Two builds next to each other: a ratio of neighbours suffers least from what the machine does meanwhile.
  targets.sort((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
  const slice = (target, callers) => load(target, callers, Math.ceil(calls * target.share));

  const summary = {};
  console.log(
    `${roundCount} rounds of ${calls} calls a target, medians; ${availableParallelism()} cores shared by all.`,
  );
  console.log(`Node ${process.version}, load average ${loadAverage()} before.`);
  for (const target of targets) await load(target, 16, Math.ceil(warmCalls * target.share));
  await measureIdle(targets);
  for (const callers of levels) {
    const rounds = [];
    for (let index = 0; index < roundCount; index += 1) {
      const round = new Map();
      // No target is always first, or always before another.
      const first = index % targets.length;
      const order = [...targets.slice(first), ...targets.slice(0, first)];
      for (const target of index % 2 === 0 ? order : order.reverse()) {
        round.set(target.label, await slice(target, callers));
      }
      rounds.push(round);
    }
    const reason = busyReason(callers, rounds);
    if (reason !== undefined && !options.busy) {
      console.log(`\n${callers} callers: machine busy, no figure: ${reason}.`);
      continue;
    }
    summary[callers] = summarize(targets, rounds);
    print(callers, summary[callers]);
    if (summary[callers].some((line) => line.failed > 0)) process.exitCode = 1;
  }
  if (options.json) console.log(JSON.stringify(summary));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runBench(main, { maxMs: 60 * 60_000 });
