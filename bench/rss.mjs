#!/usr/bin/env node
// Is memory flat? The resident size of the service over 50,000 calls, REST and MCP in turn; in the second half every
// fifth caller hangs up while its call is still at the upstream. The heap is compared after a collection.
//
//   node bench/rss.mjs [--calls 50000] [--callers 16]

import { Agent, request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { integerOption, loadAverage, runBench, startEcho, startService } from './run.mjs';

const slowMs = 40;
const patienceMs = 10;
const leaverEvery = 5;
const samples = 10;
const mb = (bytes) => bytes / 1024 / 1024;

const { values: options } = parseArgs({
  options: { calls: { type: 'string', default: '50000' }, callers: { type: 'string', default: '16' } },
});
const calls = integerOption('calls', options.calls, 1000, 1_000_000);
const callers = integerOption('callers', options.callers, 1, 256);
const agent = new Agent({ keepAlive: true, maxSockets: callers });

/** One call. With `leaves` the caller hangs up before the response can arrive. */
function call(service, id, isRest, leaves) {
  const connection = `${service.url}/connect/bench/${leaves ? 'slow' : 'echo'}`;
  const message = `call-${id}`;
  const body = isRest
    ? { message }
    : { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { message } } };
  const headers = {
    authorization: `Bearer ${service.key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  return new Promise((resolve, reject) => {
    const url = isRest ? `${connection}/.tools/echo` : `${connection}/mcp`;
    const request = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (text += chunk));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200 && text.includes(message)) resolve();
        else reject(new Error(`status ${response.statusCode}: ${text.slice(0, 160)}`));
      });
    });
    request.on('error', (error) => (leaves ? resolve() : reject(error)));
    request.setTimeout(30_000, () => request.destroy(new Error('timeout')));
    request.end(JSON.stringify(body));
    if (leaves) setTimeout(() => request.destroy(), patienceMs);
  });
}

async function memoryOf(service, ask = 'now') {
  const answer = once(service.child, 'message');
  service.child.send(ask);
  return (await answer)[0];
}

async function main() {
  const echo = await startEcho();
  const slow = await startEcho('--delay-ms', String(slowMs));
  const service = await startService({ nodeArgs: ['--expose-gc'] });
  await service.request('PUT', '/namespaces/bench');
  await service.connect('bench', 'echo', `${echo.url}/mcp`);
  await service.connect('bench', 'slow', `${slow.url}/mcp`);

  const every = Math.ceil(calls / samples);
  const series = [];
  const heap = [];
  const failures = new Map();
  let lastId = 0;

  const run = async (count, hasLeavers) => {
    let left = count;
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        const id = ++lastId;
        try {
          await call(service, id, id % 2 === 0, hasLeavers && id % leaverEvery === 0);
        } catch (error) {
          failures.set(error.message, (failures.get(error.message) ?? 0) + 1);
        }
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
  };
  const settle = async (when) => {
    await wait(1000); // calls whose callers left come to their end
    const { heapUsed, external } = await memoryOf(service, 'gc');
    heap.push({ when, heapMb: mb(heapUsed), externalMb: mb(external) });
  };

  console.log(`${calls} calls, ${callers} callers, REST and MCP in turn; load average ${loadAverage()} before`);
  await run(every, false);
  await settle('after warm-up');
  for (let sample = 1; sample <= samples; sample += 1) {
    const hasLeavers = sample > samples / 2;
    await run(every, hasLeavers);
    const { rss, heapUsed } = await memoryOf(service);
    series.push(mb(rss));
    const phase = hasLeavers ? `1 of ${leaverEvery} callers leaves` : 'all callers stay';
    const figures = `RSS ${mb(rss).toFixed(1)} MB, heap ${mb(heapUsed).toFixed(1)} MB`;
    console.log(`${String(sample * every).padStart(8)} calls: ${figures} (${phase})`);
  }
  await settle('at the end');

  const growth = series.at(-1) - series[0];
  const percent = ((growth / series[0]) * 100).toFixed(1);
  console.log(
    `RSS first ${series[0].toFixed(1)} MB, last ${series.at(-1).toFixed(1)} MB: ${growth.toFixed(1)} MB (${percent} %)`,
  );
  for (const { when, heapMb, externalMb } of heap) {
    console.log(`heap after a collection, ${when}: ${heapMb.toFixed(1)} MB, outside it ${externalMb.toFixed(1)} MB`);
  }
  for (const [message, count] of failures) console.log(`${count} calls failed: ${message}`);
  if (failures.size > 0) process.exitCode = 1;
}

await runBench(main);
