#!/usr/bin/env node
/**
 * `npm run lab chaos`: a deployment of two `api` processes, a `worker` and a `host` with a Postgres, a Redis and MCP servers of its
 * own, under load. Each part is killed, paused and restarted at random while every executed token is counted where it is
 * executed. Exits with 1 unless all of these are zero: executed, but the response does not report that this is possible;
 * successful, but not executed; executed twice; wrong responses; leases and processes left over. In the end everything must work again
 * within 30 s, or twice the time of the first start where that is longer.
 *
 * With `WORKERS=2` in the environment each `api` process is a supervisor with two workers, one of which may be killed alone.
 *
 *   `npm run lab chaos -- [--faults 600] [--callers 2]`
 *
 * `TEST_SEED` decides the failures, their order and pauses, and the calls of each caller. Linux only: failures are
 * signals.
 */
import { existsSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { integerOption, loadAverage } from '../bench/run.mjs';
import { Calls, kindNames } from '../test/chaos/callers.mjs';
import { endEverything, startDeployment, until } from '../test/chaos/deployment.mjs';
import { judge, labels } from '../test/chaos/judge.mjs';
import { randomFrom, testSeed } from '../test/support/seed.mjs';
import { publish, setUp } from '../test/chaos/set-up.mjs';
import { fail, prepare } from './lib.mjs';

const { values: options } = parseArgs({
  options: { faults: { type: 'string', default: '600' }, callers: { type: 'string', default: '2' } },
});
const faultsMax = integerOption('faults', options.faults, 1, 100_000);
const scale = integerOption('callers', options.callers, 1, 100);

/** Time in which everything must work again after the last injected failure; twice the first start on a machine where that is longer. */
const recoveryMaxMs = 30_000;
const pauseMaxMs = 5_000;
const goneMaxMs = 2_000;
const examplesMax = 5;
const releaseEveryMs = 3_000;

const random = randomFrom('faults');

/** Publishes releases of an external server until `isOver`. */
async function releaseOften(deployment, releases) {
  const payload = { type: 'external', upstreamUrl: deployment.upstreamUrl.modern };
  const drawApi = randomFrom('releases');
  while (!releases.isOver) {
    const at = Math.floor(drawApi() * deployment.urls.length);
    await publish(deployment, 'released', payload, undefined, at).then(
      (id) => releases.accepted.push(id),
      () => (releases.refused += 1),
    );
    await wait(releaseEveryMs);
  }
}

// ---- Injected failures.

/** Yields all pairs of part and failure, shuffled, again and again. */
function* pairs(parts) {
  for (;;) {
    const deck = parts.flatMap((part) => part.faults.map((fault) => ({ part, fault })));
    for (let n = deck.length - 1; n > 0; n -= 1) {
      const other = Math.floor(random() * (n + 1));
      [deck[n], deck[other]] = [deck[other], deck[n]];
    }
    yield* deck;
  }
}

/** Disturbs one part and waits until it is ready again. */
async function disturb({ part, fault, goneMs }, faults) {
  const entry = { part: part.name, fault, startedAt: Date.now(), overAt: Infinity, readyAt: Infinity, goneMs };
  faults.push(entry);
  await part[fault](goneMs);
  entry.overAt = Date.now();
  await part.ready();
  entry.readyAt = Date.now();
}

async function disturbOften({ parts }, faults) {
  const disturbed = new Map();
  for (const { part, fault } of pairs(parts)) {
    if (faults.length >= faultsMax) break;
    const goneMs = Math.floor(random() * (fault === 'pause' ? pauseMaxMs : goneMaxMs));
    const isAlone = random() < 0.6;
    // Each part has one failure at a time.
    await disturbed.get(part);
    const done = disturb({ part, fault, goneMs }, faults);
    disturbed.set(part, done);
    if (isAlone) await Promise.race([done, wait(15_000)]);
    await wait(200 + random() * 800);
  }
  await Promise.all(disturbed.values());
}

// ---- The end.

/** Waits until nothing holds a lease for longer than it lives. @returns what is still held after 30 s */
async function leakedLeases({ databaseUrl, services, urls }) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const heldLeases = async () => {
    const rows = async (sql) => (await client.query(sql)).rows.map((row) => Object.values(row).join(' '));
    const [releases, rescans, processes, tunnels, placements] = [
      await rows(`SELECT id, status FROM releases
        WHERE lease_holder IS NOT NULL OR status IN ('QUEUED', 'WORKING')`),
      await rows('SELECT server_id FROM server_rescans WHERE holder IS NOT NULL'),
      await rows(`SELECT array_to_string(roles, ','), address FROM processes`),
      await rows(
        'SELECT connection_id FROM uplink_tunnels t JOIN processes p ON p.id = t.process_id AND p.epoch = t.epoch',
      ),
      await rows(`SELECT owner_id FROM hosting_placements
        WHERE host_id IS NOT NULL AND host_id NOT IN (SELECT id FROM processes)`),
    ];
    const registered = services.reduce((sum, { name, workers }) => sum + (name === 'worker' ? 0 : workers), 0);
    return [
      ...releases.map((row) => `release ${row}`),
      ...rescans.map((row) => `scan of ${row}`),
      ...(processes.length === registered ? [] : [`processes: ${processes.join(', ')}`]),
      ...(tunnels.length === 1 ? [] : [`${tunnels.length} tunnels of one local server`]),
      ...placements.map((row) => `program ${row} on a host that no longer exists`),
      ...(await openRequests(urls)),
    ];
  };
  try {
    let last = [];
    await until(async () => (last = await heldLeases()).length === 0, 'no lease is left').catch(() => undefined);
    return last;
  } finally {
    await client.end();
  }
}

/** Requests that an api process counts as open though nobody calls. */
async function openRequests(urls) {
  const problems = [];
  for (const url of urls) {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [line, value] of text.matchAll(
      /^slipway_\w*(?:in_flight|pending|waiting|running)\w*(?:\{.*\})? (\d+)$/gm,
    )) {
      if (Number(value) > 0) problems.push(`${url}: ${line}`);
    }
  }
  return problems;
}

/** How many accepted releases have each status, and how many are missing. */
async function statusesOf({ databaseUrl }, accepted) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query('SELECT status FROM releases WHERE id = ANY($1::uuid[])', [accepted]);
  await client.end();
  const counts = { missing: accepted.length - rows.length };
  for (const { status } of rows) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

// ---- Figures.

function table(heads, rows) {
  const cells = [heads, ...rows].map((row) => row.map(String));
  const widths = heads.map((_, n) => Math.max(...cells.map((row) => row[n].length)));
  const line = (row) =>
    `| ${row.map((cell, n) => (n < 2 ? cell.padEnd(widths[n]) : cell.padStart(widths[n]))).join(' | ')} |`;
  const rule = `|${widths.map((width, n) => (n < 2 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  console.log([line(cells[0]), rule, ...cells.slice(1).map(line), ''].join('\n'));
}

const shownSeconds = (ms) => (Number.isFinite(ms) ? (ms / 1000).toFixed(1) : '-');

function printCalls(calls, verdicts) {
  const rows = kindNames.map((kind) => {
    const ofKind = calls.filter((call) => call.kind === kind);
    const count = (outcome, isExecuted) =>
      ofKind.filter((call) => call.outcome === outcome && (isExecuted === undefined || call.isExecuted === isExecuted))
        .length;
    const faulty = Object.values(verdicts).map((list) => list.filter((call) => call.kind === kind).length);
    const unknown = [count('unknown', true), count('unknown', false)];
    return [kind, ofKind.length, count('answered'), count('refused'), ...unknown, count('lost'), ...faulty];
  });
  const heads = ['kind', 'calls', 'answered', 'refused', 'unknown: executed', 'not', 'lost'];
  table([...heads, 'unsaid', 'not executed', 'twice', 'wrong', 'no reason'], rows);
}

function printFaults(faults, calls) {
  const groups = new Map();
  for (const disruption of faults) {
    const name = `${disruption.part}\0${disruption.fault}`;
    groups.set(name, [...(groups.get(name) ?? []), disruption]);
  }
  const answered = calls.filter(({ outcome }) => outcome === 'answered');
  const rows = [...groups].sort().map(([name, list]) => {
    const ready = Math.max(...list.map(({ overAt, readyAt }) => readyAt - overAt));
    const failed = list.reduce(
      (sum, { startedAt, readyAt }) =>
        sum +
        calls.filter((call) => call.outcome !== 'answered' && call.startedAt <= readyAt && call.endedAt >= startedAt)
          .length,
      0,
    );
    // The first response of each kind to a call that began after the failure.
    const works = list.map(({ overAt }) =>
      Math.max(
        ...kindNames.map((kind) => {
          const next = answered.filter((call) => call.kind === kind && call.startedAt >= overAt);
          return Math.min(...next.map(({ endedAt }) => endedAt)) - overAt;
        }),
      ),
    );
    return [...name.split('\0'), list.length, failed, shownSeconds(ready), shownSeconds(Math.max(...works))];
  });
  table(['part', 'fault', 'times', 'calls not answered', 'ready after s, max', 'all kinds work after s, max'], rows);
}

function printExamples(verdicts, faults, begin) {
  for (const [name, list] of Object.entries(verdicts)) {
    for (const call of list.slice(0, examplesMax)) {
      const near = faults
        .filter(({ startedAt, readyAt }) => startedAt <= call.endedAt + 1_000 && readyAt >= call.startedAt - 5_000)
        .map(({ part, fault, startedAt, overAt }) => `${fault} ${part} at ${startedAt - begin}..${overAt - begin}`);
      const { kind, at, token, startedAt, endedAt, outcome, text } = call;
      console.log(
        `${labels[name]}: ${kind} at api ${at + 1}, ${startedAt - begin}..${endedAt - begin} ms, ${token}\n` +
          `  ${outcome}: ${text}\n  faults: ${near.join('; ')}`,
      );
    }
  }
}

/** Prints log lines of level error and above, and output that is not a log line, each with its number of occurrences. */
function printLogs(services) {
  const counts = new Map();
  for (const { name, output } of services) {
    for (const line of output.split('\n')) {
      const record = /"level":"(error|fatal)"/.test(line) ? JSON.parse(line) : null;
      const isStray = /uncaught|unhandled|^Error|^\s+at /i.test(line) && !line.startsWith('{');
      if (!record && !isStray) continue;
      const text = record ? `${record.msg}${record.err ? ` (${record.err.message?.slice(0, 100)})` : ''}` : line;
      const about = `${name.replace(/ \d$/, '')}: ${text.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').replaceAll(/\d{4,}/g, '…')}`;
      counts.set(about, (counts.get(about) ?? 0) + 1);
    }
  }
  const top = [...counts].sort(([, a], [, b]) => b - a).slice(0, 15);
  if (top.length > 0) console.log(`Errors in logs:\n${top.map(([text, count]) => `  ${count}x ${text}`).join('\n')}\n`);
}

// ---- The run.

async function main() {
  const setUpAt = Date.now();
  const deployment = await startDeployment();
  const recoverMs = Math.max(recoveryMaxMs, 2 * (Date.now() - setUpAt));
  await setUp(deployment);
  const begin = Date.now();
  const calls = new Calls(deployment, scale);
  const problems = [];
  await until(
    () => calls.allWork(begin, deployment.urls.length),
    'calls of every kind work before the first failure',
  ).catch((error) => {
    throw new Error(`${error.message}\n${calls.lastTexts().join('\n')}`);
  });
  console.log(
    `TEST_SEED=${testSeed}, ${faultsMax} failures; set up in ${shownSeconds(Date.now() - setUpAt)} s; load average ${loadAverage()}`,
  );

  const faults = [];
  const releases = { accepted: [], refused: 0, isOver: false };
  const releasing = releaseOften(deployment, releases);
  const looking = setInterval(() => deployment.all.forEach((part) => part.look()), 1_000);
  await disturbOften(deployment, faults).catch((error) => problems.push(error.message));

  const overAt = Date.now();
  await Promise.all(deployment.all.map((part) => part.ready())).catch((error) => problems.push(error.message));
  await until(() => calls.allWork(overAt, deployment.urls.length), 'calls of every kind work again', recoverMs).catch(
    (error) => problems.push(error.message),
  );
  const recoveredMs = Date.now() - overAt;
  releases.isOver = true;
  await Promise.all([calls.end(), releasing]);
  problems.push(...(await leakedLeases(deployment)).map((text) => `left over: ${text}`));
  const statuses = await statusesOf(deployment, releases.accepted);
  if (statuses.missing > 0) problems.push(`${statuses.missing} accepted releases are missing`);
  if (statuses.INTERNAL_ERROR > 0) problems.push(`${statuses.INTERNAL_ERROR} releases failed inside the service`);
  clearInterval(looking);
  await Promise.all(deployment.services.map((part) => part.stop()));
  const leftovers = () => deployment.services.flatMap((part) => part.leftovers());
  await until(() => leftovers().length === 0, 'no process is left', 5_000).catch(() =>
    problems.push(...leftovers().map((text) => `process left over: ${text}`)),
  );
  problems.push(...deployment.all.flatMap(({ surprises }) => surprises));

  const verdicts = judge(calls.all, faults, deployment.executions());
  printCalls(calls.all, verdicts);
  printFaults(faults, calls.all);
  printLogs(deployment.services);
  printExamples(verdicts, faults, begin);
  const { missing, ...ended } = statuses;
  console.log(
    `${calls.all.length} calls, ${faults.length} faults; releases: ${JSON.stringify(ended)}, ${releases.refused} refused; ` +
      `everything worked again ${shownSeconds(recoveredMs)} s after the last failure; load average ${loadAverage()}`,
  );
  for (const [name, list] of Object.entries(verdicts)) console.log(`${labels[name]}: ${list.length}`);
  for (const problem of problems) console.log(problem);
  const isGood = problems.length === 0 && Object.values(verdicts).every((list) => list.length === 0);
  console.log(isGood ? 'Nothing was lost.' : `Broken: repeat it with TEST_SEED=${testSeed}.`);
  return isGood ? 0 : 1;
}

if (!existsSync('/proc/self/stat')) fail('npm run lab chaos needs Linux: it reads /proc.');
prepare();
let isLeaving = false;
async function leave(code) {
  if (isLeaving) return;
  isLeaving = true;
  await endEverything();
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void leave(1));
await main().then(leave, (error) => {
  console.error(error);
  return leave(1);
});
