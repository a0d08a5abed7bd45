#!/usr/bin/env node
// Orderly stops under clients that open a new socket for each POST: 8 of them, without a pause. Counts the stops at which a client
// was reset: it had a connection and got no complete response. A refused connection is not a reset: a proxy tries the next process.
//
//   node bench/stops.mjs [--stops 20] [--callers 8]

import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { integerOption, loadAverage, runBench, startService, stop } from './run.mjs';

const { values: options } = parseArgs({
  options: { stops: { type: 'string', default: '20' }, callers: { type: 'string', default: '8' } },
});
const stops = integerOption('stops', options.stops, 1, 1_000);
const callers = integerOption('callers', options.callers, 1, 100);
const callsMs = 1_000;

/** One POST on a socket of its own. @returns 'answered', or the code of the error */
function post({ url, key }) {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const outgoing = request(`${url}/connect/bench/none/mcp`, { method: 'POST', headers, agent: false }, (response) => {
      response.on('end', () => resolve('answered')).on('error', ({ code }) => resolve(code));
      response.resume();
    });
    outgoing.on('error', ({ code }) => resolve(code));
    outgoing.end('{"jsonrpc": "2.0", "id": 1, "method": "ping"}');
  });
}

runBench(async () => {
  const counts = {};
  let withResets = 0;
  for (let n = 0; n < stops; n += 1) {
    const service = await startService();
    const outcomes = new Set();
    const call = async () => {
      for (let outcome; outcome !== 'ECONNREFUSED'; outcomes.add(outcome)) {
        outcome = await post(service);
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      }
    };
    const calls = Array.from({ length: callers }, call);
    await wait(callsMs);
    await stop(service.child);
    await Promise.all(calls);
    if ([...outcomes].some((outcome) => outcome !== 'answered' && outcome !== 'ECONNREFUSED')) withResets += 1;
  }
  console.log(
    `${withResets} of ${stops} stops reset a client; requests: ${JSON.stringify(counts)}; load average ${loadAverage()}`,
  );
});
