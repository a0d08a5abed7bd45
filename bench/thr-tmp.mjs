import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { tempFolder, median, runBench } from './run.mjs';
const seconds = Number(process.argv[2] ?? 3), rounds = Number(process.argv[3] ?? 8);
const variants = (process.argv[4] ?? 'base,nice15,stgc,nice15+stgc').split(',');
const what = process.argv[5] ?? '/heap';
let variant = 'base';
const hostile = `const kept = [];
export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === '/loop') for (;;);
  if (pathname === '/heap') for (;;) kept.push({ text: 'x'.repeat(100) + kept.length, list: new Array(1000).fill(kept.length) });
  return new Response('ok');
} };`;
const src = readFileSync(new URL('./hosting.mjs', import.meta.url), 'utf8');
const percentile = (values, p) => { const s = [...values].sort((a, b) => a - b); return s[Math.max(0, Math.ceil((p / 100) * s.length) - 1)]; };
function send(dispatch, { method = 'GET', path = '/', body } = {}) {
  return new Promise((resolve, reject) => { let text = '';
    dispatch({ method, path, headers: { host: 'program', ...(body && { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }) }, body, isStream: false },
      { onRequestStart: () => undefined, onResponseStart: () => undefined, onResponseData: (_, c) => (text += c), onResponseEnd: () => resolve(text), onResponseError: (_, e) => reject(e) }); });
}
async function main() {
  const load = (f) => import(new URL(`../dist/src/${f}`, import.meta.url));
  const { Logger } = await import('@nestjs/common'); Logger.overrideLogger(false);
  const [{ loadEnv }, { Programs }, { Runtime }, { WorkerdEngine }, { Sandbox }] = await Promise.all(['config/env.js', 'hosting/programs.js', 'hosting/runtime/runtime.js', 'hosting/worker/workerd-engine.js', 'hosting/sandbox/sandbox.js'].map(load));
  const folder = tempFolder();
  const env = loadEnv({ DATA_DIR: folder, RUNTIME_LIVE_MAX: '1000', RUNTIME_CPU_MS: '300000' });
  let bad;
  class Tuned extends Sandbox {
    async command(p, a, c) {
      const launch = await super.command(p, a, c);
      if (variant.includes('stgc')) { const f = join(c.runDir, 'config.capnp'); writeFileSync(f, readFileSync(f, 'utf8').replace('"--max-semi', '"--single-threaded-gc", "--max-semi')); }
      if (c.ownerId === bad?.ownerId) {
        const n = /nice(\d+)/.exec(variant)?.[1];
        if (n) launch.args[launch.args.lastIndexOf('5')] = n;
        if (variant.includes('batch')) { const at = launch.args.lastIndexOf('nice'); launch.args.splice(at, 0, 'chrt', '--batch', '0'); }
        if (variant.includes('idle')) { const at = launch.args.lastIndexOf('nice'); launch.args.splice(at, 0, 'chrt', '--idle', '0'); }
      }
      return launch;
    }
  }
  const programs = new Programs();
  programs.register('release', { withProgram: (ref, use) => use({ ref, file: join(folder, `${ref.id}.mjs`), secrets: {}, configSchema: null, egressAllow: null }), valuesOf: () => Promise.resolve({ secrets: {}, egressAllow: null }), traced: () => undefined });
  const runtime = new Runtime(env, programs, [new WorkerdEngine(new Tuned(env))]);
  const add = (code) => { const id = randomUUID(); writeFileSync(join(folder, `${id}.mjs`), code); return { kind: 'release', id, ownerId: randomUUID(), engine: 'worker', isStateful: false }; };
  const { build } = await import('esbuild');
  const mcpServer = /const mcpServer = `([\s\S]*?)`;\n\nasync/.exec(src)[1].replaceAll('\\`','`');
  const { outputFiles } = await build({ stdin: { contents: mcpServer, loader: 'ts', resolveDir: new URL('..', import.meta.url).pathname }, bundle: true, write: false, format: 'esm', platform: 'node', target: 'esnext', conditions: ['workerd', 'worker', 'browser'], logLevel: 'silent' });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hello' } } });
  const results = {};
  try {

    const alloc = `let kept = Array.from({length: 200000}, (_, i) => ({ i, t: 'v' + i })); export default { async fetch() { const big = JSON.parse(JSON.stringify(kept.slice(0, 20000))); kept[Math.floor(Math.random()*1000)] = big[3]; return new Response('ok ' + big.length); } };`;
    const kinds = { mcp: [outputFiles[0].text, { method: 'POST', body }, 1500], alloc: [alloc, {}, 150] };
    const pids = new Map();
    for (const [kind, [code, request, calls]] of Object.entries(kinds)) {
      const refs = {};
      for (const v of variants) { variant = v; refs[v] = add(code); await send(runtime.dispatch.bind(runtime, refs[v]), request); }
      const out = {};
      for (let round = 0; round < rounds; round += 1) for (const v of round % 2 ? [...variants].reverse() : variants) {
        let left = calls; const lat = []; const t0 = performance.now(); const program = runtime.fleet.live.find((p) => p.ref.id === refs[v].id); const pid = program.instance.pid;
        const cpu0 = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).reduce((x, y) => x + Number(y), 0);
        await Promise.all(Array.from({ length: 8 }, async () => { while (left-- > 0) { const t = performance.now(); await send(runtime.dispatch.bind(runtime, refs[v]), request); lat.push(performance.now() - t); } }));
        const cpu = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).reduce((x, y) => x + Number(y), 0) - cpu0;
        const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
        const threads = Number(/Threads:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
        (out[v] ??= []).push({ rate: calls / (performance.now() - t0) * 1000, cpuMs: cpu * 10 / calls, p95: percentile(lat, 95), p99: percentile(lat, 99), rss, threads });
      }
      for (const [v, r] of Object.entries(out)) { const of = (k) => median(r.map((o) => o[k])).toFixed(2); console.log(kind, v.padEnd(8), 'calls/s', of('rate'), 'cpu ms/call', of('cpuMs'), 'p95', of('p95'), 'p99', of('p99'), 'rss', of('rss'), 'threads', of('threads')); }
      await Promise.all(Object.values(refs).map((r) => runtime.forget(r.ownerId)));
    }
  } finally { await runtime.onApplicationShutdown(); }
}
await runBench(main);
