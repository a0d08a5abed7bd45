#!/usr/bin/env node
// Cost of running uploaded code, and effects of one program on another. The runtime, the load and the programs share
// the machine. Calls/s: the same workerd reached directly and through the runtime, in turn. Neighbour: one caller of a
// program alone, and while another program loops, fills its memory or is flooded, as often as it can.
// New sources: modules of connections that each differ in one line, made and first called in 4 lanes.
//
//   node bench/hosting.mjs [--rounds 5] [--calls 4000] [--seconds 4] [--starts 20] [--live 50] [--sources 200]

import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import {
  cpuUsOf,
  ensureBuilt,
  integerOption,
  loadAverage,
  median,
  rssMbOf,
  runBench,
  shown,
  startService,
  stop,
  tempFolder,
} from './run.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '4000' },
    seconds: { type: 'string', default: '4' },
    starts: { type: 'string', default: '20' },
    live: { type: 'string', default: '50' },
    sources: { type: 'string', default: '200' },
  },
});
const rounds = integerOption('rounds', options.rounds, 1, 50);
const calls = integerOption('calls', options.calls, 100, 100_000);
const seconds = integerOption('seconds', options.seconds, 1, 60);
const starts = integerOption('starts', options.starts, 1, 200);
const live = integerOption('live', options.live, 1, 500);
const sources = integerOption('sources', options.sources, 1, 10_000);
const callers = 16;
const lanes = 4;
const pauseMs = 5;

const trivial = `export default { fetch: () => new Response('ok') };`;
const hostile = `const kept = [];
export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === '/loop') for (;;);
  if (pathname === '/heap') for (;;) kept.push({ text: 'x'.repeat(100) + kept.length, list: new Array(1000).fill(kept.length) });
  return new Response('ok');
} };`;
const mcpServer = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
export default () => {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  for (const name of ['echo', 'add', 'find', 'list', 'drop']) {
    server.registerTool(name, { description: name, inputSchema: { message: z.string() } }, async ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }));
  }
  return server.server;
};`;

async function bundle(source) {
  const { outputFiles } = await build({
    stdin: { contents: source, loader: 'ts', resolveDir: fileURLToPath(new URL('..', import.meta.url)) },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    logLevel: 'silent',
  });
  return outputFiles[0].text;
}

/** A runtime as the service makes it, with programs from a folder, and its instances by the id of their version. */
async function startRuntime() {
  await ensureBuilt();
  const load = (file) => import(new URL(`../dist/src/${file}`, import.meta.url));
  const { Logger } = await import('@nestjs/common');
  Logger.overrideLogger(false);
  const [{ loadEnv }, { Tuning }, { Engines }, { ProgramOwners }, { Runtime }, { WorkerdEngine }, { Sandbox }] =
    await Promise.all(
      [
        'config/env.js',
        'config/tuning.js',
        'hosting/engine.js',
        'hosting/hosting.js',
        'hosting/runtime/runtime.js',
        'hosting/worker/workerd-engine.js',
        'hosting/sandbox/sandbox.js',
      ].map(load),
    );
  const folder = tempFolder();
  // Calls that go past the runtime count as work nobody asked for, for which a program would be stopped.
  const env = loadEnv({ DATA_DIR: folder, RUNTIME_LIVE_MAX: '1000', RUNTIME_CPU_MS: '300000' });
  const instances = new Map();
  class KnownEngine extends WorkerdEngine {
    async start(program, context) {
      const instance = await super.start(program, context);
      instances.set(program.ref.id, instance);
      return instance;
    }
  }
  const sandbox = new Sandbox(env);
  const owner = {
    withProgram: (ref, use) =>
      use({ ref, file: join(folder, `${ref.id}.mjs`), secrets: {}, configSchema: null, egressAllow: null }),
    valuesOf: () => Promise.resolve({ secrets: {}, egressAllow: null }),
    quotaOf: () => Promise.resolve(null),
    namesOf: () => Promise.resolve({}),
    recordTrace: () => undefined,
  };
  const programs = new ProgramOwners({ get: () => owner });
  programs.onModuleInit();
  const runtime = Runtime.create({
    env,
    tuning: new Tuning(),
    owners: programs,
    engines: new Engines([new KnownEngine(sandbox)]),
  });
  const add = (code) => {
    const id = randomUUID();
    writeFileSync(join(folder, `${id}.mjs`), code);
    return { kind: 'release', id, ownerId: randomUUID(), engine: 'worker', isStateful: false };
  };
  return { runtime, instances, add, level: (await sandbox.describeIsolation()).level };
}

/** Sends one request and reads its complete response. */
function send(dispatch, { method = 'GET', path = '/', body } = {}) {
  return new Promise((resolve, reject) => {
    let text = '';
    const headers = {
      host: 'program',
      ...(body && { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }),
    };
    dispatch(
      { method, path, headers, body, isStream: false },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: (_, chunk) => (text += chunk),
        onResponseEnd: () => resolve(text),
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}

const percentile = (values, p) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? NaN : sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)];
};
const timed = async (work) => {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
};

async function coldStarts({ runtime, add }, label, code) {
  const times = [];
  for (let start = 0; start < starts; start += 1) {
    const ref = add(code);
    times.push(await timed(() => send(runtime.dispatch.bind(runtime, ref))));
    await runtime.forget(ref.ownerId);
  }
  console.log(
    `cold start to first response, ${label}: p50 ${shown(percentile(times, 50), 0)} ms, p90 ${shown(percentile(times, 90), 0)} ms (${starts} in a row)`,
  );
}

/** Calls/s and CPU of this process per call, load included. */
async function throughput(dispatch, request, expected) {
  let left = calls;
  const before = process.cpuUsage();
  const ms = await timed(() =>
    Promise.all(
      Array.from({ length: callers }, async () => {
        while (left-- > 0) if (!(await send(dispatch, request)).includes(expected)) throw new Error('a wrong answer');
      }),
    ),
  );
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (calls / ms) * 1_000, cpuUs: (user + system) / calls };
}

async function compareCalls({ runtime, instances, add }, label, code, request, expected) {
  const ref = add(code);
  const through = runtime.dispatch.bind(runtime, ref);
  await throughput(through, request, expected);
  const { dispatcher } = instances.get(ref.id);
  const direct = ({ method, path, headers, body }, handler) =>
    dispatcher.dispatch({ origin: 'http://program', method, path, headers, body }, handler);
  const results = [];
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? ['direct', 'through'] : ['through', 'direct'];
    const result = {};
    for (const way of order) result[way] = await throughput(way === 'direct' ? direct : through, request, expected);
    results.push(result);
  }
  const of = (pick) => median(results.map(pick));
  console.log(
    `${label}, ${callers} callers: ${shown(
      of(({ through: { perSecond } }) => perSecond),
      0,
    )} calls/s through the runtime, ` +
      `${shown(
        of(({ direct: { perSecond } }) => perSecond),
        0,
      )} directly, ratio ${shown(of((one) => one.through.perSecond / one.direct.perSecond))}; ` +
      `CPU of this process per call ${shown(
        of(({ through: { cpuUs } }) => cpuUs),
        0,
      )} µs, directly ${shown(
        of(({ direct: { cpuUs } }) => cpuUs),
        0,
      )}`,
  );
  await runtime.forget(ref.ownerId);
}

/** Latencies of the neighbour's one caller while `other` is repeated without a pause. */
async function neighbourWhile(neighbour, other) {
  let isOver = false;
  let times = 0;
  const misbehaviour = (async () => {
    while (!isOver) {
      await other().catch(() => undefined);
      times += 1;
      await wait(1);
    }
  })();
  const latencies = [];
  const deadline = performance.now() + seconds * 1_000;
  while (performance.now() < deadline) {
    latencies.push(await timed(() => neighbour()));
    await wait(pauseMs);
  }
  isOver = true;
  await misbehaviour;
  return { p50: percentile(latencies, 50), p95: percentile(latencies, 95), calls: latencies.length, times };
}

async function neighbours({ runtime, add }, code, request) {
  const ref = add(code);
  const neighbour = () => send(runtime.dispatch.bind(runtime, ref), request);
  const bad = add(hostile);
  const badly = async (path) => {
    await send(runtime.dispatch.bind(runtime, bad)); // a good answer, so that it need not rest
    await send(runtime.dispatch.bind(runtime, bad), { path });
  };
  const flood = () =>
    Promise.all(
      Array.from({ length: 100 }, async () => {
        await send(runtime.dispatch.bind(runtime, bad)).catch(() => undefined);
        await wait(20);
      }),
    );
  const situations = { alone: () => wait(100), loop: () => badly('/loop'), heap: () => badly('/heap'), flood };
  for (let call = 0; call < 200; call += 1) await neighbour();
  const results = [];
  for (let round = 0; round < rounds; round += 1) {
    const result = {};
    for (const [name, other] of Object.entries(situations)) result[name] = await neighbourWhile(neighbour, other);
    results.push(result);
  }
  for (const name of Object.keys(situations)) {
    const of = (pick) => median(results.map((one) => pick(one[name], one.alone)));
    console.log(
      `neighbour, ${name.padEnd(5)}: p50 ${shown(of(({ p50 }) => p50))} ms, p95 ${shown(of(({ p95 }) => p95))} ms; ` +
        `ratio p50 ${shown(of((one, alone) => one.p50 / alone.p50))}, p95 ${shown(of((one, alone) => one.p95 / alone.p95))}` +
        (name === 'alone'
          ? ''
          : ` (${shown(
              of(({ times }) => times),
              0,
            )} times in ${seconds} s)`),
    );
  }
  await Promise.all([ref, bad].map(({ ownerId }) => runtime.forget(ownerId)));
}

/** Memory of a process, its share of shared memory (PSS), and its private memory. */
function memoryOf(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mb = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? NaN) / 1_024;
  return { pssMb: mb('Pss'), privateMb: mb('Private_Dirty') + mb('Private_Clean') };
}

async function memory({ runtime, instances, add }, code, request) {
  const before = rssMbOf(process.pid);
  const refs = Array.from({ length: live }, () => add(code));
  const ms = await timed(() => Promise.all(refs.map((ref) => send(runtime.dispatch.bind(runtime, ref), request))));
  const figures = refs.map((ref) => memoryOf(instances.get(ref.id).pid));
  const sum = (pick) => figures.reduce((total, one) => total + pick(one), 0);
  await wait(6_000);
  const cpuBefore = process.cpuUsage();
  await wait(5_000);
  const { user, system } = process.cpuUsage(cpuBefore);
  console.log(
    `${live} live MCP programs, started together in ${shown(ms / 1_000, 1)} s: ${shown(
      sum(({ pssMb }) => pssMb),
      0,
    )} MB PSS, ` +
      `${shown(sum(({ privateMb }) => privateMb) / live, 1)} MB each of their own; this process +${shown(rssMbOf(process.pid) - before, 0)} MB; ` +
      `idle, it uses ${shown((user + system) / 5_000, 2)} ms of CPU a second`,
  );
  await Promise.all(refs.map(({ ownerId }) => runtime.forget(ownerId)));
}

async function newSources() {
  const { request, child } = await startService();
  await request('PUT', '/namespaces/bench');
  const before = cpuUsOf(child.pid);
  let next = 0;
  const lane = async () => {
    while (next < sources) {
      const path = `/connect/bench/source-${next++}`;
      const sourceFiles = [{ path: 'bench.ts', contents: mcpServer.replace("'bench'", `'${path}'`) }];
      await request('PUT', path, { source: { kind: 'module', entrypoint: 'bench.ts', sourceFiles } });
      await request('POST', `${path}/.tools/echo`, { message: 'first' });
    }
  };
  const ms = await timed(() => Promise.all(Array.from({ length: lanes }, lane)));
  const { own, below } = cpuUsOf(child.pid);
  const each = (us) => `${shown(us / 1_000 / sources, 0)} ms`;
  console.log(
    `${sources} new sources, ${lanes} lanes: made and called in ${shown(ms / 1_000, 1)} s; CPU of one: ` +
      `${each(own - before.own)} in the service, ${each(below - before.below)} below it`,
  );
  await stop(child);
}

async function main() {
  const host = await startRuntime();
  const mcp = await bundle(mcpServer);
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'echo', arguments: { message: 'hello' } },
  };
  const mcpCall = { method: 'POST', body: JSON.stringify(call) };
  console.log(
    `Node ${process.version}, ${availableParallelism()} cores shared by all, walls: ${host.level}, load average ${loadAverage()} before`,
  );
  try {
    await coldStarts(host, 'trivial', trivial);
    await coldStarts(host, 'MCP', mcp);
    await compareCalls(host, 'trivial', trivial, {}, 'ok');
    await compareCalls(host, 'MCP tools/call', mcp, mcpCall, 'hello');
    await neighbours(host, mcp, mcpCall);
    await memory(host, mcp, mcpCall);
  } finally {
    await host.runtime.onApplicationShutdown();
  }
  await newSources();
  console.log(`load average ${loadAverage()} after`);
}

await runBench(main);
