#!/usr/bin/env node
// `node bench/counts.mjs`: how many promises, timers and `close` listeners one warm call makes in the service, by kind of
// call, and which functions make the promises. Each count is the least of 100 calls, one after the other, after 100 others:
// concurrent work (flushes, polls) only adds to some of them, so the least does not depend on the machine's load.
// test/e2e/mcp/call-costs.e2e-spec.ts holds the counts to bounds. BENCH_DATABASE_URL: a migrated or empty database.
//
//   node bench/counts.mjs [--only rest,mcp,session,run] [--json]

import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ask, load, runBench, setUp } from './run.mjs';

const { values: options } = parseArgs({
  options: { only: { type: 'string', default: 'rest,mcp,session,run' }, json: { type: 'boolean', default: false } },
});
const calls = 100;

async function main() {
  const only = options.only.split(',');
  const url = process.env.BENCH_DATABASE_URL;
  const targets = await setUp((name) => only.includes(name), {
    nodeArgs: ['--import', fileURLToPath(new URL('./inside.mjs', import.meta.url))],
    env: {
      ...(url && { DATABASE_URL: url, ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` }),
      CALL_COSTS_STACKS: options.json ? '0' : '1',
    },
  });
  const found = {};
  for (const target of targets) {
    await ask(target.server.child, 'costs');
    const { failed, errors } = await load(target, 1, 2 * calls);
    if (failed > 0) throw new Error(`${target.label}: ${JSON.stringify(errors)}`);
    const posted = (await ask(target.server.child, 'costs')).filter(({ method }) => method === 'POST');
    const costs = posted.slice(-calls);
    const least = (what) => Math.min(...costs.map((cost) => cost[what]));
    const [promises, timers, closeListeners] = ['promises', 'timers', 'closeListeners'].map(least);
    found[target.name] = { promises, timers, closeListeners };
    if (options.json) continue;
    console.log(
      `\n${target.label}: ${promises} promises, ${timers} timers, ${closeListeners} close listeners a call\n`,
    );
    const { stacks } = costs.find((cost) => cost.promises === promises);
    for (const [frame, count] of Object.entries(stacks).sort((one, other) => other[1] - one[1]))
      console.log(`${String(count).padStart(6)}  ${frame}`);
  }
  if (options.json) console.log(JSON.stringify(found));
}

await runBench(main);
