#!/usr/bin/env node
// Cost of open connections, and of the first call on a cold one. Every connection keeps an upstream
// session of its own at a server that hands out session ids. Cold: in a process that was just started.
//
//   node bench/open.mjs [--connections 10000] [--cold 200]

import { once } from 'node:events';
import { parseArgs } from 'node:util';
import {
  integerOption,
  loadAverage,
  median,
  runBench,
  shown,
  startEcho,
  startService,
  stop,
  tempFolder,
} from './run.mjs';

const { values: options } = parseArgs({
  options: { connections: { type: 'string', default: '10000' }, cold: { type: 'string', default: '200' } },
});
const connections = integerOption('connections', options.connections, 100, 50_000);
const cold = integerOption('cold', options.cold, 10, 2_000);
const parallel = 8;

const legacy = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

async function post(url, body, headers = {}) {
  const response = await fetch(url, { method: 'POST', headers: { ...legacy, ...headers }, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text.slice(0, 200)}`);
  return response;
}

const callOf = (id) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'echo', arguments: { message: 'x' } },
});

/** The upstream's own part: a handshake and a call, as a client does them. */
async function direct(url) {
  const startedAt = performance.now();
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const opened = await post(url, { jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
  await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
  await post(url, callOf(2), headers);
  return performance.now() - startedAt;
}

async function memoryOf(service) {
  for (let turn = 0; turn < 3; turn += 1) {
    const answer = once(service.child, 'message');
    service.child.send('gc');
    await answer;
  }
  const answer = once(service.child, 'message');
  service.child.send('gc');
  return (await answer)[0];
}

async function inParallel(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

async function main() {
  const echo = await startEcho('--sessions');
  const folder = tempFolder();
  const service = await startService({ nodeArgs: ['--expose-gc'], env: { DATA_DIR: folder } });
  const auth = { authorization: `Bearer ${service.key}` };
  await service.request('PUT', '/namespaces/bench');
  const call = (id) => post(`${service.url}/connect/bench/${id}/mcp`, callOf(1), auth);

  // Warms up: memory that a process needs once is not measured.
  await inParallel(200, (at) => service.connect('bench', `warm-${at}`, `${echo.url}/mcp`));
  await inParallel(200, (at) => call(`warm-${at}`));
  const before = await memoryOf(service);
  await inParallel(connections, async (at) => {
    await service.connect('bench', `c-${at}`, `${echo.url}/mcp?user=${at}`);
    await call(`c-${at}`);
  });
  const after = await memoryOf(service);
  const each = (pick) => ((pick(after) - pick(before)) / connections / 1024).toFixed(1);
  console.log(`${connections} connections open: RSS ${each((m) => m.rss)} KB, heap ${each((m) => m.heapUsed)} KB each`);
  console.log(`RSS ${(before.rss / 2 ** 20).toFixed(0)} MB before, ${(after.rss / 2 ** 20).toFixed(0)} MB after`);

  await stop(service.child);
  const fresh = await startService({ env: { DATA_DIR: folder } });
  const added = [];
  for (let at = 0; at < cold; at += 1) {
    const alone = await direct(`${echo.url}/mcp`);
    const startedAt = performance.now();
    await post(`${fresh.url}/connect/bench/c-${at}/mcp`, callOf(1), auth);
    added.push(performance.now() - startedAt - alone);
  }
  const p90 = added.sort((a, b) => a - b)[Math.floor(added.length * 0.9)];
  console.log(
    `first call on a cold connection, added to handshake and call: p50 ${shown(median(added))} ms, p90 ${shown(p90)} ms`,
  );
  console.log(`load average ${loadAverage()}`);
}

await runBench(main);
