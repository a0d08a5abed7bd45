#!/usr/bin/env node
// Cost of idle tunnels: memory of the process that holds them, and its CPU while they are kept alive (pings every 25 s).
//
//   node bench/uplinks.mjs [--tunnels 10000] [--idle-seconds 60]

import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  cpuUsOf,
  integerOption,
  loadAverage,
  pairUplink,
  rssMbOf,
  runBench,
  shown,
  startService,
  stop,
  tempFolder,
} from './run.mjs';

const { values: options } = parseArgs({
  options: { tunnels: { type: 'string', default: '10000' }, 'idle-seconds': { type: 'string', default: '60' } },
});
const tunnels = integerOption('tunnels', options.tunnels, 10, 15_000);
const idleSeconds = integerOption('idle-seconds', options['idle-seconds'], 1, 600);
const parallel = 16;

async function inParallel(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

/** Heap in use and outside of it, after collections. */
async function memoryOf(service) {
  let memory;
  for (let turn = 0; turn < 3; turn += 1) {
    const answer = once(service.child, 'message');
    service.child.send('gc');
    [memory] = await answer;
  }
  return memory;
}

async function main() {
  // Made in one process and paired with the next, which remembers nothing of their making.
  const folder = tempFolder();
  const maker = await startService({ env: { DATA_DIR: folder } });
  await maker.request('PUT', '/namespaces/bench');
  await inParallel(tunnels, (i) => maker.request('PUT', `/connect/bench/up-${i}`, { transport: 'uplink' }));
  await stop(maker.child);
  const { child, url } = await startService({
    nodeArgs: ['--expose-gc'],
    env: { DATA_DIR: folder, HTTP_CONNECTIONS_PER_ADDRESS_MAX: '20000' },
  });
  const service = { child, url, key: maker.key };
  const { pid } = child;
  const before = { ...(await memoryOf(service)), rssMb: rssMbOf(pid) };

  const startedAt = performance.now();
  await inParallel(tunnels, (i) => pairUplink(service, `/bench/up-${i}`));
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(`${tunnels} tunnels paired in ${shown(seconds, 1)} s; load average ${loadAverage()}`);

  const cpu = cpuUsOf(pid).own;
  await wait(idleSeconds * 1000);
  const cores = (cpuUsOf(pid).own - cpu) / 1e6 / idleSeconds;
  const after = { ...(await memoryOf(service)), rssMb: rssMbOf(pid) };
  const answer = await fetch(`${url}/connect/bench/up-${tunnels - 1}/.tools/echo`, {
    method: 'POST',
    headers: { authorization: `Bearer ${maker.key}`, 'content-type': 'application/json' },
    body: '{}',
  });
  if (!(await answer.text()).includes('here')) throw new Error('the last tunnel does not answer');

  const each = (bytes) => `${shown(bytes / 1024 / tunnels, 1)} KB`;
  console.log(`RSS ${shown(before.rssMb, 0)} MB before, ${shown(after.rssMb, 0)} MB after`);
  console.log(
    `each: RSS ${each((after.rssMb - before.rssMb) * 1024 * 1024)}, heap ${each(after.heapUsed - before.heapUsed)}, ` +
      `outside it ${each(after.external - before.external)}`,
  );
  console.log(`idle for ${idleSeconds} s: ${shown(cores * 100, 1)} % of a core, pings included`);
}

await runBench(main);
