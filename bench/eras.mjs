#!/usr/bin/env node
// Cost of translating between protocol eras: a legacy and a modern client on connections to a legacy and a modern
// server. Rounds are interleaved; a ratio is taken inside its round, to the same client on a server of its own era.
//
//   node bench/eras.mjs [--rounds 5] [--calls 4000] [--callers 16]

import { parseArgs } from 'node:util';
import { integerOption, load, loadAverage, median, runBench, shown, startEcho, startService } from './run.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '4000' },
    callers: { type: 'string', default: '16' },
  },
});
const rounds = integerOption('rounds', options.rounds, 1, 20);
const calls = integerOption('calls', options.calls, 100, 50_000);
const callers = integerOption('callers', options.callers, 1, 256);
const eras = ['legacy', 'modern'];

async function main() {
  const service = await startService();
  await service.request('PUT', '/namespaces/bench');
  const headers = [`Authorization: Bearer ${service.key}`];
  const targets = [];
  for (const server of eras) {
    const echo = await startEcho('--era', server);
    await service.connect('bench', server, `${echo.url}/mcp`);
    for (const client of eras) {
      const url = `${service.url}/connect/bench/${server}/mcp`;
      targets.push({
        label: `${client} client, ${server} server`,
        client,
        server: service,
        to: server,
        url,
        mode: 'mcp',
        era: client,
        headers,
      });
    }
  }
  const runs = targets.map(() => []);
  for (const target of targets) await load(target, callers, calls); // compiles the code of all processes
  for (let round = 0; round < rounds; round += 1) {
    for (let at = 0; at < targets.length; at += 1) {
      const turn = (at + round) % targets.length;
      runs[turn].push(await load(targets[turn], callers, calls));
    }
  }
  console.log(`${rounds} rounds of ${calls} calls, ${callers} callers, load average ${loadAverage()}`);
  for (const [at, { label, client, to }] of targets.entries()) {
    const plain = runs[targets.findIndex((other) => other.client === client && other.to === client)];
    const times = (pick) => runs[at].map((run, round) => pick(run) / pick(plain[round]));
    const failed = runs[at].reduce((sum, run) => sum + run.failed, 0);
    console.log(
      `${label.padEnd(30)} ${shown(median(runs[at].map((run) => run.perSecond)), 0)} calls/s, p50 ` +
        `${shown(median(runs[at].map((run) => run.p50)))} ms, CPU ${shown(median(runs[at].map((run) => run.cpuUs)), 0)} µs` +
        (client === to
          ? ''
          : `; times the untranslated call: p50 ${shown(median(times((run) => run.p50)))}, CPU ${shown(median(times((run) => run.cpuUs)))}`) +
        (failed === 0 ? '' : `; ${failed} FAILED ${JSON.stringify(runs[at].at(-1).errors)}`),
    );
    if (failed > 0) process.exitCode = 1;
  }
}

await runBench(main);
