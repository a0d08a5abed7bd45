#!/usr/bin/env node
/**
 * `npm run outage`: a deployment of two `api` processes, a `worker` and a `host` with the default time limits, under calls of
 * every kind that needs no state of Slipway. Its Postgres stops for 45 s. Counts by kind the calls that failed, from the stop
 * until 20 s after the restart. Exits with 1 if there is one. Linux only.
 *
 *   npm run outage -- [--seconds 45]
 */
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { integerOption, loadAverage } from '../bench/run.mjs';
import { Calls, outageKinds } from '../test/chaos/callers.mjs';
import { endEverything, startDeployment, until } from '../test/chaos/deployment.mjs';
import { setUp } from '../test/chaos/set-up.mjs';
import { prepare } from './lib.mjs';

const { values: options } = parseArgs({ options: { seconds: { type: 'string', default: '45' } } });
const seconds = integerOption('seconds', options.seconds, 1, 600);

const beforeMs = 10_000;
const afterMs = 20_000;
/** Pause between two calls of one caller, on average. */
const thinkMs = 500;

async function main() {
  const deployment = await startDeployment(undefined, {});
  await setUp(deployment);
  const calls = new Calls(deployment, 2, { own: outageKinds, thinkMs });
  const kinds = Object.keys(outageKinds);
  const answered = new Set();
  await until(() => {
    for (const { kind, at, outcome } of calls.all) if (outcome === 'answered') answered.add(`${kind} ${at}`);
    return answered.size === kinds.length * deployment.urls.length;
  }, 'calls of every kind are answered');
  await wait(beforeMs);
  const postgres = deployment.parts.find(({ name }) => name === 'postgres');
  const since = Date.now();
  await postgres.restart(seconds * 1_000);
  await postgres.ready();
  await wait(afterMs);
  await calls.end();
  const counted = calls.all.filter(({ endedAt }) => endedAt >= since);
  for (const kind of kinds) {
    const ofKind = counted.filter((call) => call.kind === kind);
    const failed = ofKind.filter(({ outcome }) => outcome !== 'answered');
    const first = failed[0] && ` (${((failed[0].startedAt - since) / 1000).toFixed(1)} s: ${failed[0].text})`;
    console.log(`${kind}: ${failed.length} of ${ofKind.length} failed${first ?? ''}`);
  }
  console.log(`Postgres was away for ${seconds} s; load average ${loadAverage()}`);
  return counted.every(({ outcome }) => outcome === 'answered') ? 0 : 1;
}

prepare();
const code = await main().catch((error) => {
  console.error(error);
  return 1;
});
await endEverything();
process.exit(code);
