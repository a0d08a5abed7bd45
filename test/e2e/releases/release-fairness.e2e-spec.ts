// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ReleasePipeline } from '../../../src/modules/releases/pipeline/release-pipeline.js';
import { ReleaseSlotsRepository } from '../../../src/modules/releases/pipeline/release-slots.repository.js';
import { longIt } from '../../support/jest/globals.mjs';
import { testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { startGuarded, type GuardedUpstream } from '../../support/special-upstreams/guarded-upstream.js';
import {
  insertRelease,
  published,
  publishExternal,
  releaseIn,
  releaseRow,
  releasesPath,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';

const app = testApp({}, { releaseLeaseMs: 300_000 });
/** A second worker on the same database. */
let second: TestApp;
let other: TestAccount;
let quick: GuardedUpstream;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  // No sweep comes by during a test but its own one.
  second = await app.sibling({ ROLES: 'worker' });
  [other, quick] = await Promise.all([app.account(), startGuarded()]);
});
afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));

interface Crowd {
  owner: TestAccount;
  upstream: GuardedUpstream;
  releases: { name: string; id: string }[];
}

/** Releases of one account whose upstream does not answer, in two namespaces. */
async function crowd(size: number): Promise<Crowd> {
  const [owner, upstream] = await Promise.all([app.account(), startGuarded({ holds: true })]);
  open.push(upstream);
  const namespaces = [await createNamespace(app, owner), await createNamespace(app, owner)];
  const releases: Crowd['releases'] = [];
  for (let at = 0; at < size; at += 1) {
    const name = await createServer(app, owner, { namespace: namespaces[at % 2] });
    const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
    releases.push({ name, id });
  }
  return { owner, upstream, releases };
}

async function countIn({ releases }: Crowd, condition: string): Promise<number> {
  const ids = releases.map(({ id }) => id);
  const sql = `SELECT count(*)::int AS count FROM releases WHERE id = ANY($1) AND ${condition}`;
  const [{ count }] = await app.database.query<{ count: number }[]>(sql, [ids]);
  return count;
}

const held = 'lease_holder IS NOT NULL AND lease_until > now()';
/** Every job was looked at: what is not worked on was told to wait. */
const settled = async (all: Crowd) => {
  const waiting = await countIn(all, `lease_until = 'infinity'`);
  return waiting + (await countIn(all, held)) === all.releases.length;
};

async function expectAllDone({ owner, releases }: Crowd): Promise<void> {
  for (const { name, id } of releases) await releaseIn(app, owner, name, id, 'SUCCESS');
}

describe('an account whose upstreams never answer', () => {
  longIt('holds three slots of the service, and another account does not wait for it', async () => {
    const all = await crowd(12);
    await until(() => settled(all), 'all were looked at');
    expect([await countIn(all, held), await countIn(all, `status = 'QUEUED'`)]).toEqual([3, 9]);
    const name = await createServer(app, other);
    await publishExternal(app, other, name, { upstreamUrl: quick.url });
    // None of the others had to end for it.
    expect(await countIn(all, held)).toBe(3);
    all.upstream.letThrough();
    await expectAllDone(all);
    expect(await countIn(all, 'recoveries > 0 OR attempt > 6')).toBe(0);
  });

  it('never holds more, also with simultaneous claims', async () => {
    const all = await crowd(0);
    const namespace = await createNamespace(app, all.owner);
    const lease_until = new Date(Date.now() + 600_000);
    for (let at = 0; at < 6; at += 1) {
      const name = await createServer(app, all.owner, { namespace });
      const id = await insertRelease(app, name, { status: 'QUEUED', upstream_url: all.upstream.url, lease_until });
      all.releases.push({ name, id });
    }
    // Somebody holds the rows, so that all have begun to take one before any of them is done.
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT 1 FROM releases WHERE id = ANY($1) FOR UPDATE', [all.releases.map(({ id }) => id)]);
    const workers = [app, second].map((one) => one.get(ReleasePipeline));
    const runs = all.releases.map(({ id }, at) => workers[at % 2].run(id, 1));
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await app.database.query<unknown[]>(waiting)).length >= 6, 'all have begun');
    await holder.commitTransaction();
    await holder.release();
    await until(() => settled(all), 'all were looked at');
    expect(await countIn(all, held)).toBe(3);
    all.upstream.letThrough();
    await Promise.all(runs);
    await expectAllDone(all);
  });

  it('has its next release started when one is cancelled or deleted, the oldest first', async () => {
    const all = await crowd(5);
    await until(() => settled(all), 'all were looked at');
    const isHeld = async (at: number) => (await releaseRow(app, all.releases[at].id))?.lease_holder != null;
    const running: number[] = [];
    for (let at = 0; at < 5; at += 1) if (await isHeld(at)) running.push(at);
    const [oldest, newest] = [0, 1, 2, 3, 4].filter((at) => !running.includes(at));
    const cancelled = all.releases[running[0]];
    await published(app, all.owner, cancelled.name, { type: 'external', upstreamUrl: quick.url });
    await until(() => isHeld(oldest), 'the oldest is taken');
    const deleted = all.releases[running[1]];
    await app.as(all.owner).delete(`/servers/${encodeURIComponent(deleted.name)}`);
    await until(() => isHeld(newest), 'the next one is taken');
  });

  it('has the slots of killed workers again after their leases expired', async () => {
    const owner = await app.account();
    const name = await createServer(app, owner);
    const slots = app.get(ReleaseSlotsRepository);
    const lease = { lease_holder: randomUUID(), lease_until: new Date(Date.now() + 600_000) };
    const held: string[] = [];
    for (let at = 0; at < 3; at += 1) held.push(await insertRelease(app, name, { status: 'WORKING', ...lease }));
    const next = await insertRelease(app, name, { status: 'QUEUED', lease_until: lease.lease_until });
    const claim = { releaseId: next, attempt: 1, holder: randomUUID() };
    expect(await slots.claimSlot(claim)).toBeNull();
    await app.database.query(`UPDATE releases SET lease_until = now() - interval '1 second' WHERE id = $1`, [held[0]]);
    expect(await slots.claimSlot(claim)).toMatchObject({ server: name });
  });

  it('makes a resumed release wait like any other', async () => {
    const all = await crowd(3);
    await until(async () => (await countIn(all, held)) === 3, 'all slots are held');
    const name = await createServer(app, all.owner);
    const id = await insertRelease(app, name, { status: 'AUTH_REQUIRED', stage: 'scan', upstream_url: quick.url });
    expect((await app.as(all.owner).post(releasesPath(name, `/${id}/resume`))).status).toBe(202);
    const row = () => releaseRow(app, id);
    await until(async () => Number((await row()).lease_until) === Infinity, 'it waits');
    expect(await row()).toMatchObject({ status: 'WORKING', lease_holder: null, attempt: 2 });
    all.upstream.letThrough();
    await releaseIn(app, all.owner, name, id, 'SUCCESS');
  });
});

describe('a release that waits for a slot', () => {
  it('is started by the sweeper if no worker does', async () => {
    const fast = await app.sibling({ ROLES: 'worker' }, { releaseLeaseMs: 3_000 });
    open.push(fast);
    const owner = await app.account();
    const name = await createServer(app, owner);
    const id = await insertRelease(app, name, { status: 'QUEUED', upstream_url: quick.url, lease_until: 'infinity' });
    await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(await releaseRow(app, id)).toMatchObject({ attempt: 2, recoveries: 0 });
  });
});
