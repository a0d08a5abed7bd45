#!/usr/bin/env node
// Memory of the service with a Postgres and a Redis of its own: RSS 60 s after it is ready, for each role and for all of
// them, and 60 s after calls. An embedded Postgres is started as well unless BENCH_DATABASE_URL names an empty database.
//
//   BENCH_REDIS_URL=redis://127.0.0.1:6379 node bench/memory.mjs [--calls 30000] [--callers 16]

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  ensureBuilt,
  integerOption,
  loadAverage,
  runBench,
  startEcho,
  startService,
  stop,
  tempFolder,
} from './run.mjs';

const restMs = 60_000;

const { values: options } = parseArgs({
  options: { calls: { type: 'string', default: '30000' }, callers: { type: 'string', default: '16' } },
});
const calls = integerOption('calls', options.calls, 100, 1_000_000);
const callers = integerOption('callers', options.callers, 1, 256);
let embedded;

const rssMb = ({ pid }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

async function call(service, left) {
  while (left.count > 0) {
    left.count -= 1;
    const message = `call-${left.count}`;
    const answer = await service.request('POST', '/connect/bench/echo/.tools/echo', { message });
    if (!JSON.stringify(answer).includes(message)) throw new Error(`a call brought back ${JSON.stringify(answer)}`);
  }
}

async function main() {
  await ensureBuilt();
  let url = process.env.BENCH_DATABASE_URL;
  if (!url) {
    const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
    embedded = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: true });
    url = embedded.url;
  }
  const env = {
    DATABASE_URL: url,
    REDIS_URL: process.env.BENCH_REDIS_URL ?? '',
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  };
  const echo = await startEcho();
  for (const ROLES of ['api,worker,host', 'api', 'worker', 'host']) {
    const service = await startService({ env: { ...env, ROLES } });
    await wait(restMs);
    console.log(`${ROLES}: ${rssMb(service.child).toFixed(0)} MB 60 s after the start (load average ${loadAverage()})`);
    if (ROLES === 'api,worker,host') {
      await service.request('PUT', '/namespaces/bench');
      await service.connect('bench', 'echo', `${echo.url}/mcp`);
      const left = { count: calls };
      await Promise.all(Array.from({ length: callers }, () => call(service, left)));
      console.log(`${ROLES}: ${rssMb(service.child).toFixed(0)} MB after ${calls} calls of ${callers} callers`);
      await wait(restMs);
      console.log(`${ROLES}: ${rssMb(service.child).toFixed(0)} MB 60 s later (load average ${loadAverage()})`);
    }
    await stop(service.child);
  }
}

await runBench(main, { maxMs: 30 * 60_000, cleanUp: async () => embedded?.stop() });
