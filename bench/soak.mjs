#!/usr/bin/env node
// `npm run lab soak`: does anything grow? One service with all roles under a moderate, steady load of everything that begins and
// ends: sessions with calls (some never closed), modules of connections, uplinks (some cut off) and releases, each deleted
// after its call. A line a minute, a last one a minute after the load has ended, and the first line next to the last.
// Exits with 1 if anything failed. A Postgres is started next to the service unless BENCH_DATABASE_URL names an empty database.
//
//   npm run lab soak [--minutes 30]

import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { descendantsOf } from '../test/chaos/processes.mjs';
import {
  echoModule,
  ensureBuilt,
  integerOption,
  loadAverage,
  pairUplink,
  rssMbOf,
  runBench,
  shown,
  startEcho,
  startService,
  tempFolder,
} from './run.mjs';

const { values: options } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const minutes = integerOption('minutes', options.minutes, 1, 10_000);
const minuteMs = 60_000;
const callsOfSession = 10;

/** Modules that differ in one line, so that each is compiled. */
const sourceOf = (n) => `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
export default () => {
  const server = new McpServer({ name: 'soak ${n}', version: '1.0.0' });
  server.registerTool('echo', { inputSchema: { message: z.string() } }, async ({ message }) => ({
    content: [{ type: 'text', text: message }],
  }));
  return server.server;
};`;

const done = new Map();
const failures = new Map();
const count = (counts, name) => counts.set(name, (counts.get(name) ?? 0) + 1);

/** Repeats a piece of work until `isOver`, with a pause. */
async function often(name, pauseMs, isOver, work) {
  for (let n = 0; !isOver(); n += 1) {
    await work(n).then(
      () => count(done, name),
      (error) => count(failures, `${name}: ${error.message.replaceAll(/\d{2,}/g, '…')}`),
    );
    await wait(pauseMs);
  }
}

/** Sends a message to an MCP endpoint. @returns the body of the response, and its session */
async function tell({ url, key }, path, message, session) {
  const response = await fetch(new URL(path, url), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session && { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${message.method}: ${response.status} ${text.slice(0, 200)}`);
  return { text, session: response.headers.get('mcp-session-id') };
}

async function call(service, path, session) {
  const message = `token-${Math.random()}`;
  const params = { name: 'echo', arguments: { message } };
  const { text } = await tell(service, path, { method: 'tools/call', params }, session);
  if (!text.includes(message)) throw new Error(`a call brought back ${text.slice(0, 200)}`);
}

async function useSession(service, n) {
  const path = '/connect/soak/echo/mcp';
  const clientInfo = { name: 'soak', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const { session } = await tell(service, path, { method: 'initialize', params });
  for (let left = callsOfSession; left > 0; left -= 1) {
    await call(service, path, session);
    await service.request('POST', '/connect/soak/echo/.tools/echo', { message: 'rest' });
  }
  const headers = { authorization: `Bearer ${service.key}`, 'mcp-session-id': session };
  if (n % 3 > 0) await fetch(`${service.url}${path}`, { method: 'DELETE', headers });
}

async function useSource(service, n) {
  const sourceFiles = [{ path: 'soak.ts', contents: sourceOf(n) }];
  await service.request('PUT', '/connect/soak/source', {
    source: { kind: 'module', entrypoint: 'soak.ts', sourceFiles },
  });
  await call(service, '/connect/soak/source/mcp');
  await service.request('DELETE', '/connect/soak/source');
}

async function useUplink(service, n) {
  await service.request('PUT', '/connect/soak/local', { transport: 'uplink' });
  const socket = await pairUplink(service, '/soak/local');
  await service.request('POST', '/connect/soak/local/.tools/echo', {});
  if (n % 2 > 0) socket.terminate();
  else socket.close();
  await service.request('DELETE', '/connect/soak/local');
}

async function useRelease(service, n) {
  const mcpUrl = await service.publish('soak/released', { type: 'hosted' }, echoModule(`soak ${n}`));
  await call(service, mcpUrl);
  await service.request('DELETE', '/servers/soak%2Freleased');
}

function diskMbOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    // Files may go while they are counted.
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes / 1024 / 1024;
}

async function figuresOf(service, database, dataDir) {
  const answer = once(service.child, 'message');
  service.child.send('gc');
  const [{ heapUsed, handles }] = await answer;
  const { pid } = service.child;
  const { rows } = await database.query(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return {
    'RSS MB': rssMbOf(pid),
    'heap MB': heapUsed / 1024 / 1024,
    handles,
    files: readdirSync(`/proc/${pid}/fd`).length,
    'database connections': rows[0].count,
    'disk MB': diskMbOf(dataDir),
    'child processes': descendantsOf(pid).length,
  };
}

const line = (name, figures) =>
  console.log(
    `${name.padEnd(10)} ${Object.entries(figures)
      .map(([what, value]) => `${what} ${shown(value, Number.isInteger(value) ? 0 : 1)}`)
      .join(', ')}; load average ${loadAverage()}`,
  );

let embedded;
let database;

async function main() {
  await ensureBuilt();
  const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
  if (!process.env.BENCH_DATABASE_URL) {
    embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: true });
  }
  const url = process.env.BENCH_DATABASE_URL ?? embedded.url;
  const dataDir = tempFolder();
  const service = await startService({
    nodeArgs: ['--expose-gc'],
    env: { DATABASE_URL: url, DATA_DIR: dataDir, ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` },
  });
  database = new pg.Client(url);
  await database.connect();
  const echo = await startEcho();
  await service.request('PUT', '/namespaces/soak');
  await service.connect('soak', 'echo', `${echo.url}/mcp`);

  const overAt = Date.now() + minutes * minuteMs;
  const isOver = () => Date.now() >= overAt;
  const lanes = [
    often('sessions', 500, isOver, (n) => useSession(service, n)),
    often('uplinks', 1_000, isOver, (n) => useUplink(service, n)),
    often('releases', 2_000, isOver, (n) => useRelease(service, n)),
    often('modules of connections', 5_000, isOver, (n) => useSource(service, n)),
  ];
  let first;
  for (let minute = 1; minute <= minutes; minute += 1) {
    await wait(overAt - (minutes - minute) * minuteMs - Date.now());
    const figures = await figuresOf(service, database, dataDir);
    first ??= figures;
    line(`minute ${minute}`, figures);
  }
  await Promise.all(lanes);
  await wait(minuteMs);
  const last = await figuresOf(service, database, dataDir);
  line('at rest', last);
  for (const what of Object.keys(first))
    console.log(`${what}: first ${shown(first[what], 1)}, last ${shown(last[what], 1)}`);
  console.log(`done: ${[...done].map(([name, times]) => `${times} ${name}`).join(', ')}`);
  for (const [text, times] of failures) console.log(`failed ${times} times: ${text}`);
  if (failures.size > 0) process.exitCode = 1;
}

await runBench(main, {
  maxMs: (minutes + 10) * minuteMs,
  cleanUp: async () => {
    await database?.end();
    await embedded?.stop();
  },
});
