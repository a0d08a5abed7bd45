#!/usr/bin/env node
// Memory of idle clients: sessions of older protocol revisions, and connections that stay open after a call.
//
//   node bench/idle.mjs [--sessions 10000] [--connections 5000]

import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { integerOption, loadAverage, runBench, startEcho, startService } from './run.mjs';

const { values: options } = parseArgs({
  options: { sessions: { type: 'string', default: '10000' }, connections: { type: 'string', default: '5000' } },
});
const sessions = integerOption('sessions', options.sessions, 100, 50_000);
const connections = integerOption('connections', options.connections, 100, 15_000);
const warm = 200;
const parallel = 8;
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
const initialize = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });

async function memoryOf(service) {
  let memory;
  for (let turn = 0; turn < 4; turn += 1) {
    const answer = once(service.child, 'message');
    service.child.send('gc');
    [memory] = await answer;
  }
  return memory;
}

/** Begins a session over a connection of the agent, which keeps the connection open. */
async function begin(url, key, agent) {
  const post = request(url, { method: 'POST', headers: { ...headers, authorization: `Bearer ${key}` }, agent });
  post.end(initialize);
  const [response] = await once(post, 'response');
  response.resume();
  await once(response, 'end');
  if (!response.headers['mcp-session-id']) throw new Error(`no session: ${response.statusCode}`);
}

/** Begins sessions and reports what each adds to the memory of the service. */
async function measure(label, service, count, work) {
  const before = await memoryOf(service);
  let next = 0;
  const lane = async () => {
    while (next++ < count) await work();
  };
  await Promise.all(Array.from({ length: parallel }, lane));
  const after = await memoryOf(service);
  const each = (name) => ((after[name] - before[name]) / count / 1024).toFixed(1);
  console.log(`${count} ${label}: RSS ${each('rss')} KB, heap ${each('heapUsed')} KB each`);
}

async function main() {
  const echo = await startEcho('--sessions');
  const service = await startService({ nodeArgs: ['--expose-gc'], env: { HTTP_CONNECTIONS_PER_ADDRESS_MAX: '20000' } });
  await service.request('PUT', '/namespaces/bench');
  await service.connect('bench', 'echo', `${echo.url}/mcp`);
  const url = `${service.url}/connect/bench/echo/mcp`;
  const shared = new Agent({ keepAlive: true, maxSockets: parallel });
  const agents = [];
  const alone = () => {
    const agent = new Agent({ keepAlive: true });
    agents.push(agent);
    return begin(url, service.key, agent);
  };
  await measure('sessions to warm up', service, warm, () => begin(url, service.key, shared));
  await measure('sessions', service, sessions, () => begin(url, service.key, shared));
  await measure('connections, each with a session', service, connections, alone);
  const open = agents.filter((agent) => Object.keys(agent.freeSockets).length > 0).length;
  console.log(`${open} connections still open at the end; load average ${loadAverage()}`);
  for (const agent of [shared, ...agents]) agent.destroy();
}

await runBench(main);
