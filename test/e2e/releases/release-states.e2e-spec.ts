// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ReleasePipeline } from '../../../src/modules/releases/pipeline/release-pipeline.js';
import { Tuning } from '../../../src/config/tuning.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { ReleaseLeases } from '../../../src/modules/releases/release-lease.js';
import { ReleaseLogsRepository } from '../../../src/modules/releases/release-log.repository.js';
import { mayBecome, releaseStatuses } from '../../../src/modules/releases/release-state.js';
import { ReleasesRepository } from '../../../src/modules/releases/releases.repository.js';
import { startApp, testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createOrganization, createServer } from '../../support/factories.js';
import {
  startGuarded,
  type GuardedUpstream,
  type GuardOptions,
} from '../../support/special-upstreams/guarded-upstream.js';
import {
  errorOf,
  insertRelease,
  publish,
  published,
  publishExternal,
  readRelease,
  releaseIn,
  releaseRow,
  releasesPath,
  serverRow,
  steps,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** As short as a pause of a busy machine allows: its sweeps are twice as often. */
const LEASE_MS = 3_000;

const app = testApp({}, { releaseLeaseMs: LEASE_MS, releaseAuthTimeoutMs: 600_000 });
/** A process without the worker role: what it takes in stays QUEUED for as long as no worker looks. */
let idle: TestApp;
const owner = testAccount(app);
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  idle = await startApp({ ROLES: 'api' });
});
afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));

async function guarded(options: GuardOptions = {}): Promise<GuardedUpstream> {
  const upstream = await startGuarded(options);
  open.push(upstream);
  return upstream;
}

const resume = (name: string, id: string) => app.as(owner).post(releasesPath(name, `/${id}/resume`));
const external = (upstreamUrl: string) => ({ type: 'external', upstreamUrl });

/** A release that waits for authorization, with its server and upstream. */
async function paused(): Promise<{ name: string; id: string; upstream: GuardedUpstream }> {
  const upstream = await guarded({ wants: 'oauth' });
  const name = await createServer(app, owner);
  const { id } = await publishExternal(app, owner, name, { upstreamUrl: upstream.url }, 'AUTH_REQUIRED');
  return { name, id, upstream };
}

async function timedOut(): Promise<{ name: string; id: string; upstream: GuardedUpstream }> {
  const waiting = await paused();
  await app.database.query(`UPDATE releases SET lease_until = now() - interval '1 second' WHERE id = $1`, [waiting.id]);
  await releaseIn(app, owner, waiting.name, waiting.id, 'AUTH_TIMEOUT');
  return waiting;
}

describe('a release that is worked on', () => {
  verifies('release:state:picked-up', 'is QUEUED until a worker takes it, then WORKING', async () => {
    const upstream = await guarded({ holds: true });
    const account = await idle.account();
    const name = await createServer(idle, account);
    const id = await published(idle, account, name, external(upstream.url));
    expect(await readRelease(idle, account, name, id)).toMatchObject({ status: 'QUEUED', logs: [] });
    // A busy queue is no reason to start anew: the sweeper gives it longer than a lease of 15 s.
    expect(Number((await releaseRow(idle, id)).lease_until) - Date.now()).toBeGreaterThan(30_000);
    const worker = await idle.sibling({ ROLES: 'worker' });
    await until(() => upstream.held() > 0, 'a worker scans');
    const working = await readRelease(idle, account, name, id);
    expect(working.status).toBe('WORKING');
    expect(await releaseRow(idle, id)).toMatchObject({ stage: 'scan', attempt: 1, lease_holder: expect.any(String) });
    upstream.letThrough();
    await releaseIn(idle, account, name, id, 'SUCCESS');
    expect(await releaseRow(idle, id)).toMatchObject({ lease_holder: null, lease_until: null, recoveries: 0 });
    await worker.close();
  });

  it('keeps its worker for longer than a lease, as long as that lives', async () => {
    const upstream = await guarded({ holds: true });
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, external(upstream.url));
    await until(() => upstream.held() > 0, 'the scan waits');
    const { lease_until: first } = await releaseRow(app, id);
    await until(
      async () => Number((await releaseRow(app, id)).lease_until) > Number(first) + LEASE_MS,
      'it was prolonged',
    );
    upstream.letThrough();
    const release = await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(steps(release).filter((step) => step === 'scan start')).toHaveLength(1);
    expect(await releaseRow(app, id)).toMatchObject({ attempt: 1, recoveries: 0 });
  });

  it('continues at another worker as soon as its own one stops', async () => {
    const upstream = await guarded({ holds: true });
    const account = await idle.account();
    const name = await createServer(idle, account);
    const id = await published(idle, account, name, external(upstream.url));
    const stopping = await idle.sibling({ ROLES: 'worker' });
    await until(() => upstream.held() > 0, 'the scan waits');
    const next = await idle.sibling({ ROLES: 'worker' });
    await stopping.close();
    upstream.letThrough();
    await releaseIn(idle, account, name, id, 'SUCCESS');
    // The sweeper, which starts it a minute later, would have made a third attempt.
    expect(await releaseRow(idle, id)).toMatchObject({ attempt: 2, recoveries: 0 });
    await next.close();
  });

  verifies(
    'release:state:outcome',
    'ends as INTERNAL_ERROR after an internal failure, without internal details',
    async () => {
      const upstream = await guarded({ holds: true });
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, external(upstream.url));
      await until(() => upstream.held() > 0, 'the scan waits');
      // The database refuses the write of the scan, as after a wrong migration.
      await app.database.query(
        `ALTER TABLE releases ADD CONSTRAINT canary_broken CHECK (id <> '${id}' OR snapshot IS NULL)`,
      );
      upstream.letThrough();
      const release = await releaseIn(app, owner, name, id, 'INTERNAL_ERROR');
      expect(release.logs.at(-1)).toMatchObject({
        stage: 'scan',
        level: 'error',
        message:
          'Something failed inside Slipway. Publish again; if it fails again, the operator finds the reason in the log.',
      });
      expect(JSON.stringify(release)).not.toMatch(/canary_broken|constraint|releases_/);
      expect(await serverRow(app, name)).toMatchObject({ current_release_id: null, scan_passed: null });
      await app.database.query('ALTER TABLE releases DROP CONSTRAINT canary_broken');
    },
  );
});

describe('the lease of a release', () => {
  it('writes the outcome of a stage with all of its further writes, or nothing', async () => {
    const name = await createServer(idle, await idle.account());
    const claim = { releaseId: '', attempt: 1, holder: randomUUID() };
    const held = {
      status: 'WORKING',
      stage: 'scan',
      lease_holder: claim.holder,
      lease_until: new Date(Date.now() + 60_000),
    };
    claim.releaseId = await insertRelease(idle, name, held);
    const [releases, logs] = [idle.get(ReleasesRepository), idle.get(ReleaseLogsRepository)];
    const lease = new ReleaseLeases(idle.database, releases, logs, idle.get(PubSub), idle.get(Tuning)).begin(claim);
    const refuse = () => Promise.reject(new Error('a further write was refused'));
    await expect(lease.commit({ stage: 'metadata' }, [], refuse)).rejects.toThrow('a further write was refused');
    lease.stop();
    expect(await releaseRow(idle, claim.releaseId)).toMatchObject({ status: 'WORKING', stage: 'scan' });
  });

  it('is taken by a sixth worker and by no seventh', async () => {
    const name = await createServer(idle, await idle.account());
    const expired = { status: 'WORKING', lease_holder: randomUUID(), lease_until: new Date(Date.now() - 1_000) };
    const fourth = await insertRelease(idle, name, { ...expired, recoveries: 4 });
    const fifth = await insertRelease(idle, name, { ...expired, recoveries: 5 });
    const worker = await idle.sibling({ ROLES: 'worker' });
    await until(async () => (await releaseRow(idle, fifth)).status !== 'WORKING', 'the release has ended');
    await worker.close();
    expect(await releaseRow(idle, fifth)).toMatchObject({ status: 'INTERNAL_ERROR', attempt: 1, recoveries: 5 });
    expect((await releaseRow(idle, fourth)).recoveries).toBe(5);
  });
});

describe('a release that waits for authorization', () => {
  verifies('release:state:pauses', 'is AUTH_REQUIRED, and its log contains the link', async () => {
    const { name, id } = await paused();
    const { logs } = await readRelease(app, owner, name, id);
    expect(logs.slice(-2).map(({ message }) => message)).toEqual([
      'auth_required',
      expect.stringMatching(
        /^Authorize at http:\/\/127\.0\.0\.1:\d+\/setup\/\S+ and the release continues automatically\.$/,
      ),
    ]);
    const { lease_holder, lease_until } = await releaseRow(app, id);
    expect(lease_holder).toBeNull();
    expect(Number(lease_until) - Date.now()).toBeGreaterThan(500_000);
  });

  verifies(
    'release:setup-url',
    'has the link in its record, for the owner alone and until it is authorized',
    async () => {
      const { name, id, upstream } = await paused();
      const friend = await app.account();
      await app.as(owner).post(`/servers/${encodeURIComponent(name)}/grants`, { account: friend.id, level: 'manage' });
      const { logs, setupUrl } = await readRelease(app, owner, name, id);
      expect(setupUrl).toBe(/http\S+\/setup\/\S+/.exec(logs.at(-1)?.message ?? '')?.[0]);
      expect((await app.as(owner).get(releasesPath(name))).body.releases).toMatchObject([{ id, setupUrl }]);
      expect((await app.as(friend).get(releasesPath(name))).body.releases[0]).not.toHaveProperty('setupUrl');
      expect(await readRelease(app, friend, name, id)).not.toHaveProperty('setupUrl');
      const at = releasesPath(name, `/${id}`);
      for (const [scope, mayManage] of [
        ['read', false],
        ['call', false],
        ['publish', false],
        ['manage:elsewhere', false],
        ['manage', true],
        [null, false],
      ] as const) {
        const key = { name: 'a key', scopes: ['read', scope] };
        const { body } = scope === null ? { body: friend } : await app.as(owner).post('/accounts/me/api-keys', key);
        const as = app.as({ ...owner, key: body.key as string });
        const texts = [await as.get(at), await as.get(releasesPath(name))].map(({ text }) => text);
        const headers = { authorization: `Bearer ${body.key}` };
        const { body: events } = await fetch(`${app.url}${at}/stream`, { headers });
        const reader = events?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
        let streamed = '';
        while (!streamed.includes('and the release continues'))
          streamed += Buffer.from((await reader.read()).value ?? []).toString();
        await reader.cancel();
        const links = [...texts, streamed].map((text) => text.includes('/setup/'));
        expect([scope, links]).toEqual([scope, [mayManage, mayManage, mayManage]]);
      }
      upstream.unlock();
      await resume(name, id);
      expect(await releaseIn(app, owner, name, id, 'SUCCESS')).not.toHaveProperty('setupUrl');
    },
  );

  verifies(
    ['release:resume:answer', 'release:resume:working', 'release:resume:latest'],
    'continues when it is resumed, by its id or as the latest',
    async () => {
      for (const by of ['id', 'latest'] as const) {
        const { name, id, upstream } = await paused();
        upstream.unlock();
        const response = await resume(name, by === 'id' ? id : 'latest');
        expect([response.status, response.body]).toEqual([202, { status: 'WORKING', deploymentId: id }]);
        const release = await releaseIn(app, owner, name, id, 'SUCCESS');
        expect(steps(release).filter((step) => step === 'deploy start')).toHaveLength(1);
        expect((await serverRow(app, name)).current_release_id).toBe(id);
      }
    },
  );

  verifies('release:setup-url', 'has a link that ends with its key and with the role of its reader', async () => {
    const editor = await app.account();
    const organization = await createOrganization(app, { owner, editor });
    const namespace = uniqueName('org');
    await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id }).expect(201);
    const upstream = await guarded({ wants: 'oauth' });
    const name = await createServer(app, owner, { namespace });
    const { id } = await publishExternal(app, owner, name, { upstreamUrl: upstream.url }, 'AUTH_REQUIRED');
    const { body: key } = await app.as(owner).post('/accounts/me/api-keys', { name: 'leaked' });
    const links: URL[] = [];
    for (const reader of [editor, { ...owner, key: key.key as string }, owner]) {
      links.push(new URL(String((await readRelease(app, reader, name, id)).setupUrl)));
    }
    const statuses = () =>
      Promise.all(links.map(async (link) => (await app.as().get(link.pathname + link.search)).status));
    expect(await statuses()).toEqual([200, 200, 200]);
    await app.as(owner).put(`/accounts/${organization.id}/members/${editor.id}`, { role: 'member' }).expect(200);
    await app.as(owner).delete(`/accounts/me/api-keys/${key.id}`).expect(200);
    expect(await statuses()).toEqual([410, 410, 200]);
  });

  verifies('release:link:cancelled', 'has a link that expires when it is cancelled', async () => {
    const { name, id } = await paused();
    const { logs } = await readRelease(app, owner, name, id);
    const link = new URL(/http\S+\/setup\/\S+/.exec(logs.at(-1)?.message ?? '')?.[0] ?? '');
    const open = () => app.as().get(link.pathname + link.search);
    expect((await open()).status).toBe(200);
    await app.database.query(`UPDATE releases SET status = 'CANCELLED', lease_until = NULL WHERE id = $1`, [id]);
    const over = await open();
    expect([over.status, over.text]).toEqual([410, expect.stringContaining('This request is no longer pending')]);
  });

  verifies('release:resume:repeated', 'answers a repeated resume as the first one, for 60 s', async () => {
    const { name, id } = await paused();
    const set = (ago: number) =>
      app.database.query(
        `UPDATE releases SET status = 'WORKING', attempt = 2, lease_holder = gen_random_uuid(),
           lease_until = now() + interval '1 hour', updated_at = now() - make_interval(secs => $2) WHERE id = $1`,
        [id, ago],
      );
    await set(0);
    for (const by of [id, 'latest']) {
      const { status, body } = await resume(name, by);
      expect([status, body]).toEqual([202, { status: 'WORKING', deploymentId: id }]);
    }
    await set(61);
    expect((await resume(name, id)).status).toBe(400);
  });

  it('waits again when it is resumed and the server still requires authorization', async () => {
    const { name, id } = await paused();
    await resume(name, id);
    await until(async () => (await readRelease(app, owner, name, id)).logs.length > 8, 'it looked again');
    const { logs } = await releaseIn(app, owner, name, id, 'AUTH_REQUIRED');
    expect(logs.filter(({ message }) => message === 'auth_required')).toHaveLength(2);
  });

  verifies(
    ['release:state:times-out', 'release:resume:auth-timeout'],
    'is AUTH_TIMEOUT without an authorization, and can still be resumed',
    async () => {
      const { name, id, upstream } = await timedOut();
      expect(errorOf(await readRelease(app, owner, name, id))).toBe(
        'Nobody authorized in time. Resume the release to get a new link: POST …/releases/latest/resume.',
      );
      upstream.unlock();
      expect((await resume(name, 'latest')).status).toBe(202);
      await releaseIn(app, owner, name, id, 'SUCCESS');
    },
  );

  it('continues once, also with simultaneous resumes', async () => {
    const { name, id, upstream } = await paused();
    upstream.unlock();
    const before = upstream.seen.length;
    const answers = await Promise.all(Array.from({ length: 10 }, () => resume(name, id)));
    const statuses = answers.map(({ status }) => status);
    // A request after the end of the release answers 400.
    expect(statuses.filter((status) => status !== 202 && status !== 400)).toEqual([]);
    expect(statuses).toContain(202);
    const release = await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(steps(release).filter((step) => step === 'publish success')).toHaveLength(1);
    expect((await releaseRow(app, id)).attempt).toBe(2);
    expect(upstream.seen.slice(before).filter(({ method }) => method === 'POST').length).toBeLessThan(8);
  });

  it('is not reported as resumed when it is cancelled at the same moment', async () => {
    const { name, id } = await paused();
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`UPDATE releases SET status = 'CANCELLED', lease_until = NULL WHERE id = $1`, [id]);
    const answer = resume(name, id).then((response) => response);
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await app.database.query<unknown[]>(waiting)).length > 0, 'the resume waits');
    await holder.commitTransaction();
    await holder.release();
    const { status, body } = await answer;
    expect([status, body]).toEqual([400, { error: expect.stringContaining('it is CANCELLED') }]);
  });
});

describe('cancelling', () => {
  verifies('release:state:cancelled', 'a newer release cancels an older one, whatever that waits for', async () => {
    const upstream = await guarded();
    const slow = await guarded({ holds: true });
    const name = await createServer(app, owner);
    const working = await published(app, owner, name, external(slow.url));
    await until(() => slow.held() > 0, 'the scan waits');
    const queued = await insertRelease(app, name, { status: 'QUEUED' });
    const required = await insertRelease(app, name, { status: 'AUTH_REQUIRED' });
    const late = await insertRelease(app, name, { status: 'AUTH_TIMEOUT' });
    const over = await insertRelease(app, name, { status: 'FAILURE' });
    const newest = await published(app, owner, name, external(upstream.url));
    await releaseIn(app, owner, name, newest, 'SUCCESS');
    for (const id of [working, queued, required, late]) {
      const release = await readRelease(app, owner, name, id);
      expect(release.status).toBe('CANCELLED');
      expect(release.logs.at(-1)).toMatchObject({
        level: 'error',
        message: 'Cancelled: a newer release was published.',
      });
    }
    expect((await readRelease(app, owner, name, over)).status).toBe('FAILURE');
    // The worker of the older one has let go of it: its upstream sees the connection end.
    await until(() => slow.held() === 0, 'the scan ends');
    expect((await serverRow(app, name)).current_release_id).toBe(newest);
  });

  verifies('release:state:cancelled', 'the deletion of the server stops the pipeline', async () => {
    const slow = await guarded({ holds: true });
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, external(slow.url));
    await until(() => slow.held() > 0, 'the scan waits');
    expect((await app.as(owner).delete(`/servers/${encodeURIComponent(name)}`)).status).toBe(200);
    await until(() => slow.held() === 0, 'the scan ends');
    expect(await releaseRow(app, id)).toBeUndefined();
    expect(await app.database.query('SELECT 1 FROM release_logs WHERE release_id = $1', [id])).toEqual([]);
  });

  it('leaves the newest of twenty concurrent releases, and every other one cancelled', async () => {
    const upstream = await guarded();
    const name = await createServer(app, owner);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => publish(app, owner, name, external(upstream.url))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
    const rows = async () =>
      app.database.query<{ id: string; status: string }[]>(
        `SELECT r.id, r.status FROM releases r JOIN servers s ON s.id = r.server_id WHERE s.slug = $1 ORDER BY r.seq DESC`,
        [name.replace('/', '--')],
      );
    const isOver = async () => (await rows()).every(({ status }) => status !== 'QUEUED' && status !== 'WORKING');
    await until(isOver, 'all are over');
    const [newest, ...older] = await rows();
    expect(newest.status).toBe('SUCCESS');
    expect(older.filter(({ status }) => status !== 'CANCELLED' && status !== 'SUCCESS')).toEqual([]);
    expect(older.filter(({ status }) => status === 'CANCELLED').length).toBeGreaterThan(0);
    expect((await serverRow(app, name)).current_release_id).toBe(newest.id);
  });
});

describe('a release changes only by the transitions of the table', () => {
  /** Runs a job of this attempt to its end. */
  const work = (id: string, attempt: number) => app.get(ReleasePipeline).run(id, attempt);

  verifies('release:state:refused', 'a finished release is not changed', async () => {
    const upstream = await guarded();
    for (const status of releaseStatuses.filter((one) => !mayBecome(one, 'CANCELLED'))) {
      const name = await createServer(app, owner);
      const lease = new Date(Date.now() - 60_000);
      const id = await insertRelease(app, name, { status, upstream_url: upstream.url, lease_until: lease });
      const before = await readRelease(app, owner, name, id);
      // Everything that moves releases: a job, a resume, the sweeper, and a newer release.
      await work(id, 1);
      await resume(name, id);
      await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
      expect(await readRelease(app, owner, name, id)).toEqual(before);
    }
  });

  it('a job does no work on a release that waits for authorization', async () => {
    const { name, id } = await paused();
    const before = await readRelease(app, owner, name, id);
    await work(id, 1);
    await work(id, 2);
    expect(await readRelease(app, owner, name, id)).toEqual(before);
  });

  it('a job of another attempt does no work on a release without a lease', async () => {
    const name = await createServer(app, owner);
    const { url: upstream_url } = await guarded();
    const lease_until = new Date(Date.now() + 600_000);
    const id = await insertRelease(app, name, { status: 'WORKING', attempt: 2, upstream_url, lease_until });
    for (const attempt of [1, 3]) await work(id, attempt);
    expect(await readRelease(app, owner, name, id)).toMatchObject({ status: 'WORKING', logs: [] });
    await work(id, 2);
    expect((await readRelease(app, owner, name, id)).status).toBe('SUCCESS');
  });

  it('a worker writes nothing after another one took over in the same attempt', async () => {
    const upstream = await guarded({ holds: true });
    const name = await createServer(app, owner);
    const lease_until = new Date(Date.now() + 600_000);
    const id = await insertRelease(app, name, { status: 'WORKING', upstream_url: upstream.url, lease_until });
    const working = work(id, 1);
    await until(() => upstream.held() > 0, 'the scan waits');
    await app.database.query(
      `UPDATE releases SET lease_holder = gen_random_uuid(), lease_until = now() + interval '1 hour' WHERE id = $1`,
      [id],
    );
    const before = await readRelease(app, owner, name, id);
    upstream.letThrough();
    await working;
    expect(await readRelease(app, owner, name, id)).toEqual(before);
    expect((await serverRow(app, name)).scan_passed).toBeNull();
  });

  it('a job that comes twice, or is of an old attempt, does its work once', async () => {
    const upstream = await guarded({ holds: true });
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, external(upstream.url));
    await until(() => upstream.held() > 0, 'the scan waits');
    for (const attempt of [1, 1, 0, 2]) await work(id, attempt);
    expect(upstream.held()).toBe(1);
    upstream.letThrough();
    const release = await releaseIn(app, owner, name, id, 'SUCCESS');
    expect(steps(release).filter((step) => step.endsWith(' start'))).toHaveLength(4);
    await work(id, 1);
    expect(await readRelease(app, owner, name, id)).toEqual(release);
  });
});
