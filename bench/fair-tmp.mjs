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
      if (variant === 'old') { const f = join(c.runDir, 'config.capnp'); writeFileSync(f, readFileSync(f, 'utf8').replace('"--single-threaded-gc", ', '')); const at = launch.args.lastIndexOf('15'); if (at > 0 && launch.args[at - 1] === '-n') launch.args[at] = '5'; }
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
    for (let round = 0; round < rounds; round += 1) for (const v of round % 2 ? [...variants].reverse() : variants) {
      variant = v;
      const ref = add(outputFiles[0].text); bad = add(hostile);
      const neighbour = () => send(runtime.dispatch.bind(runtime, ref), { method: 'POST', body });
      for (let i = 0; i < 100; i += 1) await neighbour();
      const window = async (other) => {
        let over = false, times = 0;
        const mis = (async () => { while (!over) { await other().catch(() => undefined); times += 1; await wait(1); } })();
        const lat = []; const end = performance.now() + seconds * 1000;
        while (performance.now() < end) { const t = performance.now(); await neighbour(); lat.push(performance.now() - t); await wait(5); }
        over = true; await mis; return { lat, times };
      };
      const alone1 = await window(() => wait(100));
      const during = await window(async () => { await send(runtime.dispatch.bind(runtime, bad)); await send(runtime.dispatch.bind(runtime, bad), { path: what }); });
      const alone2 = await window(() => wait(100));
      const alone = [...alone1.lat, ...alone2.lat];
      (results[v] ??= []).push({ p50: percentile(during.lat, 50) / percentile(alone, 50), p95: percentile(during.lat, 95) / percentile(alone, 95), a95: percentile(alone, 95), p99: percentile(during.lat, 99)/percentile(alone,99), times: during.times });
      await Promise.all([ref, bad].map(({ ownerId }) => runtime.forget(ownerId)));
    }
    for (const [v, r] of Object.entries(results)) { const of = (k) => median(r.map((o) => o[k])).toFixed(2); console.log(v.padEnd(16), 'p50x', of('p50'), 'p95x', of('p95'), 'p99x', of('p99'), 'alone p95', of('a95'), 'times', of('times'), '|', r.map((o) => o.p95.toFixed(1)).join(' ')); }
  } finally { await runtime.onApplicationShutdown(); }
}
await runBench(main);
