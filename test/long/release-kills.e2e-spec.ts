// Also run with the queue on Redis by test:long: jobs, and messages between processes.
// Runs alone: it kills processes.
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { tmpdir } from 'node:os';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Tuning } from '../../src/config/tuning.js';
import type { Stage } from '../../src/modules/releases/release-state.js';
import { ReleasesQueue } from '../../src/modules/releases/releases.queue.js';
import { cloneDatabase, startApp, uniqueName, type TestAccount, type TestApp } from '../support/app.js';
import { bundleOf } from '../support/releases/bundles.js';
import { startDatabaseRelay, type DatabaseRelay } from '../support/database/database-relay.js';
import { createServer } from '../support/factories.js';
import { forecast, startGuarded } from '../support/special-upstreams/guarded-upstream.js';
import { cleanUpPrograms, runProgram, type Program } from '../support/program.js';
import {
  errorOf,
  published,
  readRelease,
  releaseIn,
  releaseRow,
  releasesPath,
  serverRow,
  steps,
} from '../support/releases/releases.js';
import { brakeAt } from '../support/releases/stage-brake.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;
/** Longer than any pause of a busy machine: nobody is to be taken for dead who is not. */
const LEASE_MS = 6_000;
/** Lease of tests in which it ends. */
const SHORT_LEASE_MS = 1_000;

let database: Awaited<ReturnType<typeof cloneDatabase>>;
const tuning = { releaseLeaseMs: LEASE_MS };
let dataDir: string;
let settings: Record<string, string>;
/** Serves the API and works on nothing. */
let app: TestApp;
let owner: TestAccount;
const workers: Program[] = [];
const open: { close(): unknown }[] = [];

beforeAll(async () => {
  database = await cloneDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'slipway-kills-'));
  settings = {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    QUEUE_PREFIX: uniqueName('queue'),
    ...(process.env.TEST_REDIS_URL === undefined ? {} : { REDIS_URL: process.env.TEST_REDIS_URL }),
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    EGRESS_ALLOW: 'loopback',
    DATABASE_POOL_MAX: '5',
  };
  app = await startApp({ ...settings, ROLES: 'api' }, tuning);
  owner = await app.account();
}, SLOW_MS);
afterEach(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await Promise.all(workers.splice(0).map(({ ended }) => ended));
  await Promise.all(open.splice(0).map((resource) => resource.close()));
}, SLOW_MS);
afterAll(async () => {
  await cleanUpPrograms();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
}, SLOW_MS);

/** A worker in this process, which no signal ends: it starts in a quarter of the time. */
async function startWorkerHere(tuned: Partial<Tuning> = tuning): Promise<TestApp> {
  const worker = await app.sibling({ ROLES: 'worker' }, tuned);
  open.push(worker);
  return worker;
}

/** A process that does nothing but work. */
async function startWorker(tuned: Partial<Tuning> = tuning, more: Record<string, string> = {}): Promise<Program> {
  const worker = runProgram('main.js', { ...settings, ROLES: 'worker', ...more }, { tuning: tuned });
  workers.push(worker);
  await worker.url();
  return worker;
}

async function end(worker: Program, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | NodeJS.Signals> {
  worker.kill(signal);
  return worker.ended;
}

/** A release in its scan, held there by its upstream. */
async function scanning() {
  const upstream = await startGuarded({ holds: true });
  open.push(upstream);
  const name = await createServer(app, owner);
  const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
  await until(() => upstream.held() > 0, 'the scan waits');
  return { upstream, name, id };
}

/** The time of its lease has passed: whoever had it is dead or frozen. */
async function leaseOver(id: string): Promise<void> {
  await app.database.query(`UPDATE releases SET lease_until = now() - interval '1 second' WHERE id = $1`, [id]);
}

/** Expects one success, of the current release. @param isPassed result of its scan; null for a bundle that was not run */
async function expectPublishedOnce(name: string, id: string, isPassed: true | null = true) {
  const release = await releaseIn(app, owner, name, id, 'SUCCESS');
  expect(steps(release).filter((step) => step === 'publish success')).toHaveLength(1);
  expect(release.logs.at(-1)).toMatchObject({ stage: 'publish', level: 'success' });
  expect(await serverRow(app, name)).toMatchObject({ current_release_id: id, scan_passed: isPassed });
  return release;
}

/** Publishes a release that stands still in one stage. */
async function heldIn(stage: Stage) {
  if (stage === 'scan') {
    const { upstream, name, id } = await scanning();
    return { name, id, letGo: async () => upstream.letThrough() };
  }
  const upstream = await startGuarded({ description: 'Fills an empty field.' });
  open.push(upstream);
  const name = await createServer(app, owner);
  if (stage === 'deploy') {
    const payload = { type: 'stdio', runtime: 'node' };
    // Held back until the brake is on: no worker runs yet.
    const id = await published(app, owner, name, payload, { bundle: await bundleOf({ description: name }) });
    const brake = await brakeAt(database.url, stage);
    return { name, id, held: brake.holds, letGo: brake.let };
  }
  const brake = await brakeAt(database.url, stage);
  const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
  return { name, id, held: brake.holds, letGo: brake.let };
}

describe('a worker that is killed', () => {
  it.each<Stage>(['deploy', 'scan', 'metadata', 'publish'])(
    'in the stage %s leaves its release to another one, which publishes it once',
    async (stage) => {
      const first = stage === 'scan' ? await startWorker() : null;
      const { name, id, held, letGo } = await heldIn(stage);
      const victim = first ?? (await startWorker());
      await held?.();
      expect(await releaseRow(app, id)).toMatchObject({ stage, status: 'WORKING', lease_holder: expect.any(String) });
      expect(await end(victim)).toBe('SIGKILL');
      await leaseOver(id);
      await startWorkerHere();
      await letGo();
      const release = await expectPublishedOnce(name, id, stage === 'deploy' ? null : true);
      const begun = steps(release).filter((step) => step.endsWith(' start'));
      // Completed stages are not repeated, and the log shows that this stage began again.
      expect(begun.filter((step) => step === `${stage} start`).length).toBeGreaterThanOrEqual(2);
      expect(begun[0]).toBe('deploy start');
      if (stage !== 'deploy') expect(begun.filter((step) => step === 'deploy start')).toHaveLength(1);
      expect(await releaseRow(app, id)).toMatchObject({ recoveries: 1 });
    },
    SLOW_MS,
  );

  it(
    'six times by the same release fails that release',
    async () => {
      await startWorker();
      const { name, id } = await scanning();
      await end(workers[0]);
      // Five deaths before: what a worker cannot tell another, the row does.
      await app.database.query('UPDATE releases SET recoveries = 5 WHERE id = $1', [id]);
      await leaseOver(id);
      await startWorkerHere();
      const release = await releaseIn(app, owner, name, id, 'INTERNAL_ERROR');
      expect(errorOf(release)).toBe(
        'The worker died 6 times at this point: publish again, and tell the operator if it happens again.',
      );
      expect((await releaseRow(app, id)).lease_holder).toBeNull();
    },
    SLOW_MS,
  );
});

describe('a worker that is killed while it scans what is published', () => {
  verifies(
    'rescan:once',
    'is replaced by another one when its claim has expired',
    async () => {
      const victim = await startWorker();
      const upstream = await startGuarded();
      open.push(upstream);
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
      await expectPublishedOnce(name, id);
      upstream.behave({ holds: true, tools: [{ ...forecast, name: 'later' }] });
      const { status } = await app.as(owner).post(releasesPath(name, '/latest/rescan'));
      expect(status).toBe(202);
      await until(() => upstream.held() > 0, 'it is being scanned');
      expect(await end(victim)).toBe('SIGKILL');
      const claimed = `SELECT 1 FROM server_rescans r JOIN servers s ON s.id = r.server_id
        WHERE s.current_release_id = $1 AND r.holder IS NOT NULL AND r.next_at > now()`;
      expect(await app.database.query(claimed, [id])).toHaveLength(1);
      await app.database.query(
        `UPDATE server_rescans SET next_at = now() - interval '1 second' WHERE holder IS NOT NULL`,
      );
      await until(() => upstream.held() === 0, 'nobody scans it any more');
      await startWorkerHere();
      await until(() => upstream.held() > 0, 'another one scans it');
      upstream.letThrough();
      const tools = async () => (await serverRow(app, name)).snapshot?.tools;
      await until(async () => JSON.stringify(await tools()).includes('later'), 'it is found out');
      const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(name)}/changes`);
      expect(body).toMatchObject({ versions: [{ foundBy: 'rescan' }, { foundBy: 'release' }] });
      expect(await readRelease(app, owner, name, id)).toMatchObject({ status: 'SUCCESS' });
    },
    SLOW_MS,
  );
});

describe('a release that only waits', () => {
  it(
    'does not fail after five killed workers while no worker has it',
    async () => {
      const upstream = await startGuarded();
      open.push(upstream);
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
      await app.database.query(
        `UPDATE releases SET recoveries = 5, status = 'WORKING', lease_until = now() - interval '1 hour' WHERE id = $1`,
        [id],
      );
      await startWorkerHere();
      await expectPublishedOnce(name, id);
    },
    SLOW_MS,
  );
});

describe('a worker that is told to stop', () => {
  it(
    'hands its release over immediately, without waiting for the lease and without counting as killed',
    async () => {
      // Nobody's patience: the lease is longer than the test.
      const patient = { releaseLeaseMs: 300_000 };
      const first = await startWorker(patient);
      const { upstream, name, id } = await scanning();
      await startWorkerHere(patient);
      expect(await end(first, 'SIGTERM')).toBe(0);
      await until(() => upstream.seen.filter(({ method }) => method === 'POST').length > 4, 'another one scans');
      upstream.letThrough();
      await expectPublishedOnce(name, id);
      expect(await releaseRow(app, id)).toMatchObject({ recoveries: 0, attempt: 2 });
    },
    SLOW_MS,
  );
});

describe('a worker that was frozen past its lease', () => {
  it(
    'no longer writes anything when it wakes up',
    async () => {
      const frozen = await startWorker();
      const { upstream, name, id } = await scanning();
      frozen.kill('SIGSTOP');
      await leaseOver(id);
      const other = await startWorkerHere();
      await until(() => upstream.held() > 1, 'another one scans');
      upstream.letThrough();
      const release = await expectPublishedOnce(name, id);
      const { current_release_id, snapshot } = await serverRow(app, name);
      frozen.kill('SIGCONT');
      // A new release shows that the worker is awake.
      const next = await createServer(app, owner);
      await other.close();
      const later = await published(app, owner, next, { type: 'external', upstreamUrl: upstream.url });
      await releaseIn(app, owner, next, later, 'SUCCESS');
      expect(await readRelease(app, owner, name, id)).toEqual(release);
      expect(await serverRow(app, name)).toMatchObject({ current_release_id, snapshot });
      expect(frozen.output()).not.toMatch(/"level":(50|60)|Unhandled|uncaught/);
    },
    SLOW_MS,
  );
});

describe('a line of the log that cannot be written', () => {
  it(
    'ends neither the scan nor the worker',
    async () => {
      await app.database.query(
        `ALTER TABLE release_logs ADD CONSTRAINT refused CHECK (message NOT LIKE 'Connected to%') NOT VALID`,
      );
      await startWorkerHere();
      const { upstream, name, id } = await scanning();
      // The number of the refused line is used up.
      const missing = `SELECT last_value > (SELECT max(seq) FROM release_logs) AS is_refused FROM release_logs_seq_seq`;
      const isRefused = async () =>
        (await app.database.query<{ is_refused: boolean }[]>(missing))[0].is_refused && upstream.held() > 0;
      await until(isRefused, 'the line was refused');
      upstream.letThrough();
      await expectPublishedOnce(name, id);
      expect(await releaseRow(app, id)).toMatchObject({ attempt: expect.any(Number), recoveries: 0 });
      await app.database.query('ALTER TABLE release_logs DROP CONSTRAINT refused');
    },
    SLOW_MS,
  );
});

describe('a queue that lost its jobs', () => {
  it(
    'loses no release',
    async () => {
      const upstream = await startGuarded();
      open.push(upstream);
      const names = await Promise.all([1, 2, 3].map(() => createServer(app, owner)));
      const payload = { type: 'external', upstreamUrl: upstream.url };
      const ids = await Promise.all(names.map((name) => published(app, owner, name, payload)));
      await forgetJobs(ids);
      await startWorkerHere();
      for (const [at, name] of names.entries()) {
        await expectPublishedOnce(name, ids[at]);
        // Waiting in vain is not dying.
        expect((await releaseRow(app, ids[at])).recoveries).toBe(0);
      }
    },
    SLOW_MS,
  );
});

describe('a database that goes away', () => {
  let relay: DatabaseRelay;
  beforeAll(async () => {
    relay = await startDatabaseRelay(database.url);
  });
  afterAll(() => relay.close());

  it.each(['cut', 'silent'] as const)(
    'in the middle of a scan does not change how it ends: %s',
    async (how) => {
      const worker = await startWorker({ releaseLeaseMs: SHORT_LEASE_MS }, { DATABASE_URL: relay.url });
      const { upstream, name, id } = await scanning();
      if (how === 'cut') await relay.shut();
      else relay.freeze();
      upstream.letThrough();
      // Longer than a lease.
      const since = Date.now();
      await until(() => Date.now() - since > 3 * SHORT_LEASE_MS, 'the database was away');
      await relay.open();
      await expectPublishedOnce(name, id);
      expect(worker.output()).not.toContain('uncaught');
      expect(await end(worker, 'SIGTERM')).toBe(0);
    },
    SLOW_MS,
  );
});

/** Takes every job of these releases out of the queue's store. */
async function forgetJobs(ids: string[]): Promise<void> {
  const queue = app.get(ReleasesQueue)['queue'];
  await until(async () => (await queue.getJobCounts('waiting')).waiting >= ids.length, 'the jobs are there');
  await queue.obliterate({ force: true });
}
