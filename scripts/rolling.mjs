#!/usr/bin/env node
/**
 * `npm run lab rolling`: two `api` processes behind the nginx sample and two processes with the roles `host` and `worker`, under
 * calls of every kind. Each process is restarted in turn by SIGTERM and awaited at `/ready` before the next. Exits with 1
 * unless every call returned, and each call that executes was executed exactly once.
 *
 * `npm run lab rolling -- --from ../before` starts with the build of that checkout, so that the restarts are an upgrade.
 *
 * Linux only: it reads /proc. Needs nginx.
 */
import { once } from 'node:events';
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { freePort, loadAverage } from '../bench/run.mjs';
import { Calls, LOG_READS, rollingKinds } from '../test/chaos/callers.mjs';
import { checkout, endEverything, newFolder, startDeployment, until } from '../test/chaos/deployment.mjs';
import { setUp } from '../test/chaos/set-up.mjs';
import { startNginx } from '../test/support/nginx.mjs';
import { prepare, root } from './lib.mjs';

/** Callers of each sort, and their pause: about 30 calls a second. */
const scale = 2;
const thinkMs = 400;
const longMs = 5_000;
const drainMs = 5_000;
const examplesMax = 12;

const roles = { 'api 1': 'api', 'api 2': 'api', 'host 1': 'host,worker', 'host 2': 'host,worker' };

let nginx;

async function main() {
  const { values } = parseArgs({ options: { from: { type: 'string' } } });
  if (values.from) checkout.folder = resolve(values.from);
  const port = await freePort();
  const deployment = await startDeployment(roles, { DRAIN_MS: String(drainMs), TRUST_PROXY: '127.0.0.1' }, port);
  const { services, urls } = deployment;
  nginx = startNginx(
    newFolder(),
    port,
    urls.map((url) => Number(new URL(url).port)),
  );
  await setUp(deployment);
  const calls = new Calls({ ...deployment, urls: [`http://127.0.0.1:${port}`] }, scale, {
    own: rollingKinds,
    thinkMs,
    longMs,
  });
  const kinds = Object.keys(rollingKinds);
  const works = (since) =>
    kinds.every((kind) =>
      calls.all.some((call) => call.kind === kind && call.outcome === 'answered' && call.startedAt >= since),
    );
  await until(() => works(0), 'calls of every kind work before the first restart').catch((error) => {
    throw new Error(`${error.message}\n${calls.lastTexts().join('\n')}`);
  });
  checkout.folder = root;
  const begin = Date.now();
  const restarts = [];
  for (const part of services) {
    const startedAt = Date.now();
    await part.restart(0);
    await part.ready();
    restarts.push({ name: part.name, startedAt: startedAt - begin, readyAt: Date.now() - begin });
    const since = Date.now();
    await until(() => works(since), `calls of every kind work after the restart of ${part.name}`);
  }
  const seconds = (Date.now() - begin) / 1_000;
  await calls.end();

  const counted = calls.all.filter(({ startedAt }) => startedAt >= begin);
  const executions = deployment.executions();
  const timesOf = ({ token }) => executions.get(token) ?? 0;
  const failed = counted.filter(({ outcome }) => outcome !== 'answered');
  const miscounted = counted.filter(
    (call) => call.outcome === 'answered' && timesOf(call) !== (call.kind === LOG_READS ? 0 : 1),
  );
  const twice = counted.filter((call) => timesOf(call) > 1);
  for (const kind of kinds) {
    const ofKind = counted.filter((call) => call.kind === kind);
    const times = ofKind.map(({ startedAt, endedAt }) => endedAt - startedAt);
    const lost = ofKind.filter((call) => failed.includes(call)).length;
    console.log(`${kind.padEnd(14)} ${ofKind.length} calls, ${lost} failed, longest ${Math.max(...times)} ms`);
  }
  for (const { name, startedAt, readyAt } of restarts) console.log(`${name}: restarted at ${startedAt}..${readyAt} ms`);
  for (const call of [...new Set([...failed, ...twice, ...miscounted])].slice(0, examplesMax)) {
    const { kind, token, startedAt, endedAt, outcome, text } = call;
    console.log(
      `${kind} ${token}, ${startedAt - begin}..${endedAt - begin} ms, executed ${timesOf(call)}x\n  ${outcome}: ${text}`,
    );
  }
  const surprises = deployment.all.flatMap((part) => part.surprises);
  for (const surprise of surprises) console.log(surprise);
  console.log(
    `${counted.length} calls in ${seconds.toFixed(0)} s (${(counted.length / seconds).toFixed(1)}/s), ` +
      `${restarts.length} restarts: ${failed.length} failed, ${twice.length} executed twice, ` +
      `${miscounted.length} answered with another count; load average ${loadAverage()}`,
  );
  return failed.length + miscounted.length + twice.length + surprises.length === 0 ? 0 : 1;
}

prepare();
let isLeaving = false;
async function leave(code) {
  if (isLeaving) return;
  isLeaving = true;
  // Its worker ends with it at SIGTERM only.
  if (nginx?.kill('SIGTERM')) await once(nginx, 'exit');
  await endEverything();
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void leave(1));
await main().then(leave, (error) => {
  console.error(error);
  return leave(1);
});
