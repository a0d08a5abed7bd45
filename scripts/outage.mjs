#!/usr/bin/env node
/**
 * `npm run lab outage`: a deployment of two `api` processes, a `worker` and a `host` with the default time limits, under calls of
 * every kind that needs no state of Slipway, and of senders of log records, who repeat requests that return 503 or 507. Something
 * outside of Slipway breaks for 45 s. Counts by kind the calls that failed, from then until 20 s after the end, accepted records
 * that are missing in the log or there twice, and processes that exited. Exits with 1 if there is one. Linux only.
 *
 *   npm run lab outage -- [--kind stop] [--seconds 45]
 *
 * Kinds: `stop` (Postgres is down), `restarts` (it is restarted 20 times), `fatal` (it closes each session right after it has
 * begun, without Redis the queue's too), `disk` (no byte is free for Postgres, Redis and the service; needs root), `clock` (the
 * processes of Slipway are a year ahead), `pooler` (PgBouncer is killed every 3 s).
 */
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort, integerOption, loadAverage } from '../bench/run.mjs';
import pg from 'pg';
import { Calls, outageKinds, SENT_LOGS } from '../test/chaos/callers.mjs';
import { endEverything, newFolder, Part, startDeployment, until } from '../test/chaos/deployment.mjs';
import { setUp } from '../test/chaos/set-up.mjs';
import { fail, prepare } from './lib.mjs';

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '45' }, kind: { type: 'string', default: 'stop' } },
});
const seconds = integerOption('seconds', options.seconds, 1, 600);

const beforeMs = 10_000;
const afterMs = 20_000;
/** Pause between two calls of one caller, on average. */
const thinkMs = 500;

/** Runs `step` again and again for the time of the outage. */
async function repeat(step) {
  for (const end = Date.now() + seconds * 1_000; Date.now() < end;) await step();
}

/** Loaded into the processes of Slipway: their clock is a year ahead while the file is there. */
const clockOf = (file) => `import { existsSync } from 'node:fs';
const { now } = Date;
let ahead = 0;
setInterval(() => (ahead = existsSync('${file}') ? 31_536_000_000 : 0), 100).unref();
Date.now = () => now() + ahead;
globalThis.Date = new Proxy(Date, { construct: (real, given) => (given.length ? new real(...given) : new real(Date.now())) });`;

/** Without Redis the queue is in Postgres, with a pool of its own. */
const alone = { REDIS_URL: '' };

/** By kind: what is prepared, the settings of the processes, what breaks until it is whole again, and whether calls may be refused. */
const outages = {
  stop: { settings: {}, run: (postgres) => postgres.restart(seconds * 1_000) },
  restarts: {
    // A database that answers now and then is not away: a row that it could have given is not taken from a cache.
    mayRefuse: true,
    settings: alone,
    run: async (postgres) => {
      for (let n = 0; n < 20; n += 1) {
        await postgres.restart(500);
        await postgres.ready();
        await wait((seconds * 1_000) / 40);
      }
    },
  },
  fatal: {
    mayRefuse: true,
    settings: alone,
    run: async (_, { databaseUrl }) => {
      const client = new pg.Client(databaseUrl);
      await client.connect();
      const sql =
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = user AND pid <> pg_backend_pid()';
      await repeat(() => client.query(sql));
      await client.end();
    },
  },
  disk: {
    // Postgres ends and recovers again and again: a hosted program that is not cached is not found meanwhile.
    mayRefuse: true,
    prepare: () => {
      const folder = mkdtempSync(join(tmpdir(), 'slipway-disk-'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=777', 'tmpfs', folder]);
      process.env.TMPDIR = folder;
      process.once('exit', () => execFileSync('umount', ['-l', folder]) && rmSync(folder, { recursive: true }));
    },
    settings: {},
    run: async () => {
      const file = join(tmpdir(), 'ballast');
      await repeat(async () => {
        for (const size of [16_777_216, 65_536, 4_096]) {
          try {
            for (;;) appendFileSync(file, Buffer.alloc(size));
          } catch {
            // The disk is full.
          }
        }
        await wait(50);
      });
      rmSync(file);
    },
  },
  clock: {
    // A process whose clock is ahead considers a current record too old.
    mayRefuse: true,
    settings: () => {
      outages.clock.file = join(newFolder(), 'ahead');
      return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(clockOf(outages.clock.file))}` };
    },
    run: async () => {
      writeFileSync(outages.clock.file, '');
      await wait(seconds * 1_000);
      rmSync(outages.clock.file);
    },
  },
  pooler: {
    settings: async (url) => {
      const { port: to, username, password, pathname } = new URL(url);
      const [folder, port] = [newFolder(), await freePort()];
      writeFileSync(join(folder, 'users'), `"${username}" "${password}"`);
      writeFileSync(
        join(folder, 'ini'),
        `[databases]\n${pathname.slice(1)} = host=127.0.0.1 port=${to}\n[pgbouncer]\npool_mode = session\nunix_socket_dir =\n` +
          `default_pool_size = 100\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nauth_file = ${folder}/users`,
      );
      const account = process.getuid() === 0 ? { uid: 65_534, gid: 65_534 } : {};
      const launch = () =>
        spawn('/usr/sbin/pgbouncer', ['-q', join(folder, 'ini')], { ...account, stdio: 'ignore', detached: true });
      outages.pooler.part = new Part('pooler', launch, () => true);
      await outages.pooler.part.start();
      return { ...alone, DATABASE_URL: url.replace(`:${to}/`, `:${port}/`) };
    },
    run: () =>
      repeat(async () => {
        await outages.pooler.part.kill(1_000);
        await wait(2_000);
      }),
  },
};
const outage = outages[options.kind] ?? fail(`--kind is one of ${Object.keys(outages).join(', ')}.`);

/** Counts the lines of the log by their text, once the worker has written every record that was accepted. */
async function writtenLines({ databaseUrl }) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const count = async () => Number((await client.query('SELECT count(*) FROM log_batches')).rows[0].count);
    await until(async () => (await count()) === 0, 'accepted records are written');
    const { rows } = await client.query(
      `SELECT line ->> 'message' AS text, count(*)::integer FROM invocations, jsonb_array_elements(lines) AS line GROUP BY 1`,
    );
    return new Map(rows.map(({ text, count }) => [text, count]));
  } finally {
    await client.end();
  }
}

async function main() {
  outage.prepare?.();
  const deployment = await startDeployment(undefined, outage.settings);
  await setUp(deployment);
  const calls = new Calls(deployment, 2, { own: outageKinds, thinkMs });
  const kinds = Object.keys(outageKinds);
  const answered = new Set();
  await until(() => {
    for (const { kind, at, outcome } of calls.all) if (outcome === 'answered') answered.add(`${kind} ${at}`);
    return answered.size === kinds.length * deployment.urls.length;
  }, 'calls of every kind succeed');
  await wait(beforeMs);
  const postgres = deployment.parts.find(({ name }) => name === 'postgres');
  const since = Date.now();
  await outage.run(postgres, deployment);
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
  const lines = await writtenLines(deployment);
  const accepted = calls.all.filter(({ kind, outcome }) => kind === SENT_LOGS && outcome === 'answered');
  const missing = accepted.filter(({ token }) => !lines.has(token)).length;
  const twice = accepted.filter(({ token }) => lines.get(token) > 1).length;
  console.log(`accepted records: ${missing} of ${accepted.length} missing, ${twice} written twice`);
  const ended = deployment.services.flatMap(({ surprises }) => surprises);
  console.log(`processes that exited: ${ended.join(', ') || 'none'}`);
  console.log(`${options.kind}, ${seconds} s; load average ${loadAverage()}`);
  const isWell = ({ outcome }) => outcome === 'answered' || (outage.mayRefuse && outcome === 'refused');
  return counted.every(isWell) && missing + twice + ended.length === 0 ? 0 : 1;
}

prepare();
const code = await main().catch((error) => {
  console.error(error);
  return 1;
});
await endEverything();
process.exit(code);
