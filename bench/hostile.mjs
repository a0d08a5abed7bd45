#!/usr/bin/env node
// `node bench/hostile.mjs`: a neighbour that sends 50 reads and 20 calls a second at a fixed rate, first alone and then next to
// hostile callers, in one run. Each kind of hostile caller, and the hostile tenant's MCP server, is a process at nice 10:
//
//   s1  8 callers without a key send 1 MB of nested JSON       s4  16 callers of a mock whose schema holds a slow pattern
//   s2  1,200 sockets without a key, 1 MB unfinished each      s5  40 unfinished bodies of 15 MB with one key
//   s3  15 MB bodies with a key, nested or of 900,000 keys     w7  6 callers of an MCP server that floods its responses
//   n1  4 callers without a key that send 500 requests for public documents concurrently
//   n2  12 callers of a mock whose tools have schemas of 59 KB
//   n5  8 callers of an MCP server that returns 3 MB, 20 responses a second in all
//   w4  24 callers of a tenant whose quotas and rates are used up, and of wrong keys: namespaces, keys, servers, releases,
//       connections, log records, concurrent calls, requests a minute. --unlimited lifts these limits, for comparison.
//   l1  64 sockets refresh one login and wait as required        l3  1,000 anonymous authorizations with a state of 2,000
//   l2  the same, and do not wait: compared with plain reads     l4  256 slow forms of four addresses, and a refresh of another
//   l5  443 consents of a client with a long name, and the page that lists them, 9 concurrent
//
// Exits with 1 when a bound is broken: p95 at most 2x the neighbour's own or 25 ms (with n5, 100), whichever is more; peak
// RSS at most 150 MB above before; no failed request of the neighbour, no program stopped and no lease lost.
//
//   node bench/hostile.mjs [--seconds 60] [--only s1,w7] [--unlimited] [--new-sockets]
// Prints the longest turn of the event loop beside the hostile callers, and the functions it was spent in.
// --new-sockets: the neighbour opens a new socket for each request.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as httpRequest, Agent } from 'node:http';
import { connect } from 'node:net';
import { setPriority } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { logIn, loginKinds } from './hostile-logins.mjs';
import {
  ask,
  freePort,
  integerOption,
  loadAverage,
  rssMbOf,
  runBench,
  shown,
  startEcho,
  startService,
} from './run.mjs';

const kinds = ['n1', 'n2', 'n5', 's1', 's2', 's3', 's4', 's5', 'w4', 'w7', 'l1', 'l2', 'l3', 'l4', 'l5'];
const self = fileURLToPath(import.meta.url);
const turns = fileURLToPath(new URL('turns.mjs', import.meta.url));
const MB = 1024 * 1024;
const readsPerSecond = 50;
const callsPerSecond = 20;
/** Bounds of kinds with a bound of their own; all chosen kinds together have the largest. */
const p95MsMinOf = { n5: 100 };
const p95MsMin = 25;
const rssMbMax = 150;
const nice = 10;

/** Tools of the hostile tenant with schemas of 59 KB, all different. */
const largeSchemas = 10;

/** Memory for request bodies and for Node's heap: what the service takes in a container of 1 GB. */
const bodiesMb = 128;
const heapMb = 512;

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
    unlimited: { type: 'boolean', default: false },
    'new-sockets': { type: 'boolean', default: false },
    as: { type: 'string' },
    job: { type: 'string' },
  },
});

// ---- Requests.

/** Only the neighbour, which runs in this process, opens a new socket for each request. */
const agent = new Agent({ keepAlive: !options['new-sockets'] || options.as !== undefined, maxSockets: 256 });

/** Sends one request; the promise resolves with status and text, and rejects when the connection breaks. */
function send(url, { method = 'POST', key, body, contentType = 'application/json' } = {}) {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body && { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }),
      accept: 'application/json, text/event-stream',
    };
    const outgoing = httpRequest(url, { method, headers, agent, timeout: 30_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode, text }));
      response.on('error', reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no response in 30 s')));
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Opens a request whose body never ends; it is opened again when the service closes it. */
function hold({ url, path, key, bytes, length }) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const authorization = key ? `authorization: Bearer ${key}\r\n` : '';
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.on('close', () => setTimeout(() => hold({ url, path, key, bytes, length }), 1000));
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: a\r\n${authorization}content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
  );
  socket.write(Buffer.alloc(bytes, 'x').fill('{"a":"', 0, 6));
}

/** Repeats `work` without a pause in this many callers, until the process exits. Failures are expected. */
function forever(callers, work) {
  for (let n = 0; n < callers; n += 1) {
    void (async () => {
      for (let turn = 0; ; turn += 1) {
        await work(turn).catch(() => wait(50));
      }
    })();
  }
}

const hostile = {
  n1({ url }) {
    const { hostname, port } = new URL(url);
    const documents = ['/openapi.yaml', '/openapi.json', '/docs/swagger-ui-init.js', '/docs', '/', '/health'];
    forever(4, async (turn) => {
      const socket = connect(Number(port), hostname).resume();
      socket.write(`GET ${documents[turn % documents.length]} HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(500));
      await once(socket, 'close');
    });
  },
  n2({ url, key, large }) {
    let sent = 0;
    forever(12, () => send(`${url}${large}/.tools/t${(sent += 1) % largeSchemas}`, { key, body: '{"p0":"a"}' }));
  },
  n5({ url, key, flood }) {
    let sent = 0;
    const startedAt = performance.now();
    forever(8, async () => {
      sent += 1;
      const dueMs = startedAt + (sent * 1000) / 20 - performance.now();
      if (dueMs > 0) await wait(dueMs);
      await send(`${url}${flood}/.tools/large`, { key, body: '{}' });
    });
  },
  s1({ url }) {
    const body = '['.repeat(MB / 2) + ']'.repeat(MB / 2);
    forever(8, () => send(`${url}/accounts`, { body }));
  },
  s2({ url }) {
    for (let n = 0; n < 1200; n += 1) hold({ url, path: '/accounts', bytes: MB, length: 2 * MB });
  },
  s3({ url, key, connection, mock }) {
    const nested = '['.repeat(7.5 * MB) + ']'.repeat(7.5 * MB);
    const keys = `{${Array.from({ length: 900_000 }, (_, n) => `"key${n}":1`).join(',')}}`;
    const paths = [`${connection}/mcp`, `${connection}/.tools/echo`, `${mock}/.tools/slow`];
    forever(2, (turn) => send(`${url}${paths[turn % 3]}`, { key, body: turn % 2 === 0 ? nested : keys }));
  },
  s4({ url, key, mock }) {
    const body = JSON.stringify({ m: `${'a'.repeat(40)}!` });
    forever(16, () => send(`${url}${mock}/.tools/slow`, { key, body }));
  },
  s5({ url, key, connection }) {
    for (let n = 0; n < 40; n += 1) {
      hold({ url, path: `${connection}/.tools/echo`, key, bytes: 15 * MB - 1, length: 15 * MB });
    }
  },
  w4({ url, greedy, rushed }) {
    const { key, id } = greedy;
    const form =
      '--b\r\ncontent-disposition: form-data; name="payload"\r\n\r\n{"type":"external","upstreamUrl":"http://127.0.0.1:9/mcp"}\r\n--b--\r\n';
    const server = '/servers/greedy%2Fserver';
    const requests = {
      namespaces: (n) => ({ path: `/namespaces/greedy-${n}`, method: 'PUT', body: '{}' }),
      keys: () => ({ path: `/accounts/${id}/api-keys`, body: '{"name":"more"}' }),
      servers: (n) => ({ path: `/servers/greedy%2Fs${n}`, method: 'PUT', body: '{}' }),
      releases: () => ({
        path: `${server}/releases`,
        method: 'PUT',
        body: form,
        contentType: 'multipart/form-data; boundary=b',
      }),
      connections: (n) => ({ path: `/connect/greedy/c${n}`, method: 'PUT', body: '{"transport":"uplink"}' }),
      logs: () => ({ path: `${server}/logs`, body: '{"invocations":[{"logs":[{"level":"info","message":"noise"}]}]}' }),
      calls: () => ({ path: '/connect/greedy/echo/.tools/echo', body: '{"message":"more"}' }),
      requests: () => ({ path: '/namespaces', method: 'GET', key: rushed.key }),
      'wrong keys': () => ({ path: '/namespaces', method: 'GET', key: `slipway_${'x'.repeat(43)}` }),
    };
    const counts = {};
    for (const [kind, make] of Object.entries(requests)) {
      counts[kind] = { refused: 0, others: 0 };
      forever(kind === 'requests' || kind === 'wrong keys' ? 5 : 2, async (turn) => {
        const { path, ...request } = make(`${turn}-${Math.random().toString(36).slice(2, 8)}`);
        const { status } = await send(`${url}${path}`, { key, ...request });
        counts[kind][status === 429 ? 'refused' : 'others'] += 1;
      });
    }
    setInterval(() => console.log(JSON.stringify(counts)), 500);
  },
  w7({ url, key, flood }) {
    forever(6, () => send(`${url}${flood}/.tools`, { method: 'GET', key }));
  },
  ...loginKinds,
};

// ---- The neighbour: requests leave at a fixed rate, whether or not earlier ones have returned.

async function neighbour({ url, key, seconds }) {
  const latencies = { reads: [], calls: [] };
  let failed = 0;
  const one = async (kind, path, request) => {
    const startedAt = performance.now();
    const answer = await send(`${url}${path}`, { key, ...request }).catch(() => null);
    latencies[kind].push(performance.now() - startedAt);
    if (answer?.status !== 200) failed += 1;
  };
  const pending = [];
  const pace = (perSecond, work) => {
    const startedAt = performance.now();
    let count = 0;
    return setInterval(() => {
      const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond);
      for (; count < due; count += 1) pending.push(work());
    }, 5);
  };
  const body = JSON.stringify({ message: 'hello' });
  const timers = [
    pace(readsPerSecond, () => one('reads', '/connect/neighbour/echo', { method: 'GET' })),
    pace(callsPerSecond, () => one('calls', '/connect/neighbour/echo/.tools/echo', { body })),
  ];
  await wait(seconds * 1000);
  timers.forEach(clearInterval);
  await Promise.all(pending);
  const percentile = (values, p) => values.sort((a, b) => a - b)[Math.ceil((p / 100) * values.length) - 1];
  const figures = (values) => ({ count: values.length, p50: percentile(values, 50), p95: percentile(values, 95) });
  console.log(JSON.stringify({ reads: figures(latencies.reads), calls: figures(latencies.calls), failed }));
  process.exit(0);
}

// ---- The hostile tenant's MCP server: tools with a slow pattern, a large schema or a response of 3 MB, and at /flood a list
// that never comes.

/** @returns the process, which begins to flood at SIGUSR2, and the address of its server */
async function startTenantServer() {
  const child = run('server', { port: await freePort() });
  const [url] = await once(child.stdout, 'data');
  return { url: String(url).trim(), startFlooding: () => child.kill('SIGUSR2') };
}

function serveTenant({ port }) {
  const slow = {
    name: 'slow',
    inputSchema: { type: 'object', properties: { m: { type: 'string', pattern: '^(a+)+$' } } },
  };
  const texts = Array.from({ length: 1500 }, (_, n) => [`p${n}`, { type: 'string', minLength: 1 }]);
  const large = Array.from({ length: largeSchemas }, (_, n) => ({
    name: `t${n}`,
    inputSchema: { title: `t${n}`, type: 'object', properties: Object.fromEntries(texts) },
  }));
  const largeResult = JSON.stringify({
    content: Array.from({ length: 30_000 }, () => ({ type: 'text', text: 'x'.repeat(75) })),
  });
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      const { id, method } = text ? JSON.parse(text) : {};
      if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end();
      const answer = (result) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...result }));
      if (method === 'tools/call') {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"result":${largeResult}}`);
      } else if (method === 'initialize') {
        const serverInfo = { name: 'hostile', version: '1' };
        answer({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } });
      } else if (method !== 'tools/list') answer({ error: { code: -32601, message: 'unknown' } });
      else if (request.url === '/flood' && isFlooding) flood(response);
      else answer({ result: { tools: request.url === '/large' ? large : [slow] } });
    });
  });
  const flood = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const params = { level: 'info', data: 'x'.repeat(200) };
    const event = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n\n`;
    const more = () => {
      while (!response.destroyed && response.write(event.repeat(100)));
    };
    response.on('drain', more);
    more();
  };
  let isFlooding = false;
  process.on('SIGUSR2', () => (isFlooding = true));
  server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
}

// ---- The bench.

const running = new Set();

function run(kind, job) {
  const child = spawn(process.execPath, [self, '--as', kind, '--job', JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Runs the neighbour and samples the service's memory 4 times a second. */
async function measured(service, job) {
  let rssMb = 0;
  const sampler = setInterval(() => (rssMb = Math.max(rssMb, rssMbOf(service.child.pid))), 250);
  const child = run('neighbour', job);
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  await new Promise((resolve) => child.once('exit', resolve));
  clearInterval(sampler);
  return { ...JSON.parse(output), rssMb };
}

/** Tenants that have reached their limits: `greedy` its quotas and its limit of concurrent calls, `rushed` its limit of requests. */
async function limitedTenants(service, echo) {
  const make = async (name) => {
    const { id } = await service.request('POST', '/accounts', { name, kind: 'user' });
    const { key } = await service.request('POST', `/accounts/${id}/api-keys`, { name: 'bench' });
    return { id, key };
  };
  const [greedy, rushed] = [await make('greedy'), await make('rushed')];
  const put = (path, body) =>
    send(`${service.url}${path}`, { method: 'PUT', key: greedy.key, body: JSON.stringify(body) });
  await put('/namespaces/greedy', {});
  await put('/servers/greedy%2Fserver', {});
  await put('/connect/greedy/echo', { mcpUrl: `${echo.url}/mcp` });
  if (!options.unlimited) {
    const stored = { namespaces: 1, apiKeys: 1, servers: 1, releases: 0, connections: 1, logBytesPerDay: 0 };
    const limit = (id, limits) => service.request('PATCH', `/accounts/${id}/limits`, { limits });
    await limit(greedy.id, { ...stored, callsAtOnce: 0 });
    await limit(rushed.id, { requestsPerMinute: 60 });
  }
  return { greedy, rushed };
}

async function main() {
  const seconds = integerOption('seconds', options.seconds, 2, 600);
  const chosen = options.only?.split(',') ?? kinds;
  if (!chosen.every((kind) => kinds.includes(kind))) throw new Error(`--only takes: ${kinds.join(', ')}`);
  const echo = await startEcho();
  const tenant = await startTenantServer();
  const unlimited = options.unlimited ? { AUTH_FAILURES_MAX: '100000000' } : {};
  const service = await startService({
    nodeArgs: [`--max-old-space-size=${heapMb}`, '--import', turns],
    env: unlimited,
    tuning: { httpBodiesBytes: bodiesMb * 1024 * 1024, httpUnreadBytes: bodiesMb * 1024 * 1024 },
  });
  let lost = 0;
  const count = (chunk) =>
    (lost += String(chunk).match(/a program of \S+ was killed|the lease of this process is lost/g)?.length ?? 0);
  service.child.stdout.on('data', count);
  service.child.stderr.on('data', count);

  await service.request('PUT', '/namespaces/neighbour');
  await service.connect('neighbour', 'echo', `${echo.url}/mcp`);
  await service.publish('neighbour/slow', { type: 'external', upstreamUrl: `${tenant.url}/mcp` });
  await service.publish('neighbour/large', { type: 'external', upstreamUrl: `${tenant.url}/large` });
  const account = await service.request('POST', '/accounts', { name: 'hostile', kind: 'user' });
  const { key } = await service.request('POST', `/accounts/${account.id}/api-keys`, { name: 'bench' });
  const put = (path, body) => send(`${service.url}${path}`, { method: 'PUT', key, body: JSON.stringify(body) });
  await put('/namespaces/hostile', {});
  const inside = '/connect/hostile';
  const paths = {
    connection: `${inside}/echo`,
    mock: `${inside}/mock`,
    large: `${inside}/large`,
    flood: `${inside}/flood`,
  };
  const made = [
    await put(paths.connection, { mcpUrl: `${echo.url}/mcp` }),
    await put(paths.mock, { server: 'neighbour/slow', mock: { enabled: true } }),
    await put(paths.large, { server: 'neighbour/large', mock: { enabled: true } }),
    await put(paths.flood, { mcpUrl: `${tenant.url}/flood` }),
  ];
  const tenants = await limitedTenants(service, echo);
  for (const { status, text } of made) if (status !== 201) throw new Error(`not connected: ${status} ${text}`);
  tenant.startFlooding();

  const logins = {
    login: await logIn({ url: service.url, key }, paths.connection),
    slowLogin: await logIn({ url: service.url, key }, paths.connection),
  };
  const job = { url: service.url, key: service.key, seconds };
  await measured(service, { ...job, seconds: 2 }); // lets the code get compiled
  const before = await measured(service, job);
  const seen = {};
  const besideKinds = async (kinds) => {
    for (const kind of kinds) {
      const child = run(kind, { url: service.url, key, ...paths, ...tenants, ...logins });
      child.stdout.on('data', (line) => (seen[kind] = String(line).trim().split('\n').at(-1)));
    }
    await wait(1000);
    const figures = await measured(service, job);
    for (const child of running) child.kill('SIGKILL');
    return figures;
  };
  // Refreshes that do not wait are compared with reads: the same number of sockets, no mechanism of logins.
  const plain = chosen.includes('l2') ? await besideKinds(['plain']) : null;
  await ask(service.child, 'longest');
  const beside = await besideKinds(chosen);
  const { ms: turnMs, causes } = await ask(service.child, 'longest');

  const cells = ({ reads, calls, failed, rssMb }) =>
    [reads.p50, reads.p95, calls.p50, calls.p95].map((ms) => shown(ms, 1)).concat(String(failed), shown(rssMb, 0));
  console.log(
    `${seconds} s each; load average ${loadAverage()}; bodies at most ${bodiesMb} MB, heap ${heapMb} MB (a container of 1 GB).\n`,
  );
  console.log(
    '| neighbour                  | reads p50 ms | reads p95 | calls p50 | calls p95 | failed | peak RSS MB |',
  );
  console.log(
    '|----------------------------|-------------:|----------:|----------:|----------:|-------:|------------:|',
  );
  for (const [label, figures] of [
    ['alone', before],
    ...(plain ? [['with 64 sockets of reads', plain]] : []),
    [`with ${chosen.join(' ')}`, beside],
  ]) {
    const [first, ...others] = cells(figures);
    const widths = [9, 9, 9, 6, 11];
    const rest = others.map((cell, n) => cell.padStart(widths[n]));
    console.log(`| ${label.padEnd(26)} | ${first.padStart(12)} | ${rest.join(' | ')} |`);
  }
  console.log(`\nThe longest turn of the event loop took ${shown(turnMs, 0)} ms: ${causes.join(', ')}`);
  const { w4, ...others } = seen;
  if (w4) {
    const counts = Object.entries(JSON.parse(w4));
    const shownCounts = counts.map(([kind, { refused, others }]) => `${kind} ${refused} (others ${others})`);
    console.log(`\nw4, answers of 429: ${shownCounts.join(', ')}`);
  }
  for (const [kind, line] of Object.entries(others)) console.log(`\n${kind}: ${line}`);
  const boundMs = Math.max(
    ...chosen.map((kind) => p95MsMinOf[kind] ?? p95MsMin),
    ...(plain ? [plain.reads.p95, plain.calls.p95] : []),
  );
  const faults = [
    ...['reads', 'calls']
      .filter((kind) => beside[kind].p95 > Math.max(boundMs, 2 * before[kind].p95))
      .map((kind) => `p95 of ${kind} is above 2x its own and ${boundMs} ms`),
    ...(beside.rssMb - before.rssMb > rssMbMax ? [`peak RSS grew by more than ${rssMbMax} MB`] : []),
    ...(beside.failed > 0 ? [`${beside.failed} requests of the neighbour failed`] : []),
    ...(lost > 0 ? [`${lost} programs were stopped or leases lost`] : []),
  ];
  console.log(
    faults.length === 0 ? '\nEvery bound holds.' : `\nBroken:\n${faults.map((line) => `- ${line}`).join('\n')}`,
  );
  process.exitCode = faults.length === 0 ? 0 : 1;
}

if (options.as) {
  process.on('SIGTERM', () => process.exit(0));
  process.stdout.on('error', () => process.exit(0)); // the bench that started this process has exited
  const job = JSON.parse(options.job);
  // Ends with the bench: it never runs longer than both phases.
  setTimeout(() => process.exit(0), 20 * 60_000).unref();
  if (options.as === 'neighbour') await neighbour(job);
  else {
    setPriority(nice);
    ({ ...hostile, server: serveTenant })[options.as](job);
  }
} else {
  await runBench(main, { cleanUp: async () => running.forEach((child) => child.kill('SIGKILL')) });
}
