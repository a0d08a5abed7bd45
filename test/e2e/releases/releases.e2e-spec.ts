// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { refusedPort } from '../../support/special-upstreams/faulty-upstreams.js';
import { startGuarded, type GuardedUpstream } from '../../support/special-upstreams/guarded-upstream.js';
import {
  insertRelease,
  publish,
  published,
  publishExternal,
  readRelease,
  releaseIn,
  releasesPath,
  serverRow,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const statuses = [
  'QUEUED',
  'WORKING',
  'SUCCESS',
  'FAILURE',
  'FAILURE_SCAN',
  'INTERNAL_ERROR',
  'AUTH_REQUIRED',
  'AUTH_TIMEOUT',
  'CANCELLED',
];

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);
let upstream: GuardedUpstream;

beforeAll(async () => {
  upstream = await startGuarded();
});

const external = () => ({ type: 'external', upstreamUrl: upstream.url });

describe('a release', () => {
  verifies(
    [
      'release:field:id',
      'release:field:status',
      'release:field:type',
      'release:field:created-at',
      'release:field:upstream-url',
      'release:field:mcp-url',
      'release:logs:on-one',
      'release:logs:shape',
    ],
    'has every field of the contract, and its log',
    async () => {
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, external());
      const release = await releaseIn(app, owner, name, id, 'SUCCESS');
      expect(release).toEqual({
        id: expect.stringMatching(UUID),
        number: 1,
        createdBy: { id: owner.id, name: owner.name },
        status: 'SUCCESS',
        type: 'external_shttp',
        createdAt: expect.stringMatching(ISO),
        updatedAt: expect.stringMatching(ISO),
        commit: null,
        commitMessage: null,
        branch: null,
        upstreamUrl: upstream.url,
        mcpUrl: `${app.url}/run/${name.replace('/', '--')}`,
        isCurrent: true,
        logs: expect.any(Array),
      });
      expect(release.logs.length).toBeGreaterThan(8);
      for (const line of release.logs) {
        expect(line).toEqual({
          stage: expect.stringMatching(/^(deploy|scan|metadata|publish)$/),
          level: expect.stringMatching(/^(start|info|end|success)$/),
          message: expect.stringMatching(/./),
          timestamp: expect.stringMatching(ISO),
        });
      }
      expect(await readRelease(app, owner, name, 'latest')).toEqual(release);
    },
  );

  verifies(
    ['release:field:commit', 'release:field:commit-message', 'release:field:branch'],
    'has its commit, commit message and branch',
    async () => {
      const name = await createServer(app, owner);
      const source = { commit: '8f2d1c0', commitMessage: 'Forecasts für “morgen”\n\nbody', branch: 'feature/rain' };
      const id = await published(app, owner, name, { ...external(), source });
      expect(await readRelease(app, owner, name, id)).toMatchObject(source);
    },
  );

  verifies('release:number', 'has a number of its own in its server, and the account that published it', async () => {
    const name = await createServer(app, owner);
    const friend = await app.account();
    await app.as(owner).post(`/servers/${encodeURIComponent(name)}/grants`, { account: friend.id, level: 'manage' });
    const first = await insertRelease(app, name);
    await published(app, owner, name, external());
    await published(app, friend, name, external());
    await app.database.query('DELETE FROM releases WHERE id = $1', [first]);
    const fourth = await insertRelease(app, name);
    const { releases } = (await app.as(owner).get(releasesPath(name))).body as { releases: Record<string, unknown>[] };
    expect(releases.map(({ number, createdBy }) => [number, createdBy])).toEqual([
      [4, null],
      [3, { id: friend.id, name: friend.name }],
      [2, { id: owner.id, name: owner.name }],
    ]);
    expect(await readRelease(app, owner, name, fourth)).toMatchObject({ number: 4, createdBy: null });
  });

  verifies('release:field:updated-at', 'was updated when its status changed last, not when its log grew', async () => {
    const name = await createServer(app, owner);
    const slow = await startGuarded({ holds: true });
    const id = await published(app, owner, name, { type: 'external', upstreamUrl: slow.url });
    await until(() => slow.held() > 0, 'the scan waits');
    const working = await readRelease(app, owner, name, id);
    expect(working.status).toBe('WORKING');
    expect(Date.parse(working.updatedAt as string)).toBeLessThanOrEqual(Date.parse(working.logs[0].timestamp));
    slow.letThrough();
    const { updatedAt, logs } = await releaseIn(app, owner, name, id, 'SUCCESS');
    const last = Date.parse(logs.at(-1)?.timestamp ?? '');
    expect(Math.abs(Date.parse(updatedAt as string) - last)).toBeLessThan(1_000);
    expect(Date.parse(updatedAt as string)).toBeGreaterThan(Date.parse(working.logs.at(-1)?.timestamp ?? ''));
    await slow.close();
  });

  verifies('release:status:values', 'has one of nine statuses, and the database takes no other', async () => {
    const name = await createServer(app, owner);
    for (const status of statuses) {
      const id = await insertRelease(app, name, { status });
      expect((await readRelease(app, owner, name, id)).status).toBe(status);
    }
    await expect(insertRelease(app, name, { status: 'PAUSED' })).rejects.toThrow(/releases_status/);
  });

  verifies('release:type:values', 'has one of three types, and the database takes no other', async () => {
    const name = await createServer(app, owner);
    for (const type of ['external_shttp', 'hosted_shttp', 'stdio']) {
      const id = await insertRelease(app, name, { type });
      expect(await readRelease(app, owner, name, id)).toMatchObject({ type, upstreamUrl: null });
    }
    await expect(insertRelease(app, name, { type: 'container' })).rejects.toThrow(/releases_type/);
  });

  it('is not found under an id that is unknown, foreign or no id at all', async () => {
    const name = await createServer(app, owner);
    const other = await insertRelease(app, await createServer(app, owner));
    for (const id of [randomUUID(), other, 'x', 'LATEST', 'latest', '%00', '1']) {
      const response = await app.as(owner).get(releasesPath(name, `/${id}`));
      expect([response.status, response.body]).toEqual([404, { error: 'Release not found' }]);
    }
  });
});

describe('the list of releases', () => {
  verifies(
    ['release:list:order', 'release:list:shape', 'release:logs:omitted-in-list'],
    'shows the newest first, without logs, in pages',
    async () => {
      const name = await createServer(app, owner);
      const ids: string[] = [];
      for (let count = 0; count < 5; count += 1) ids.unshift(await insertRelease(app, name));
      // The order is that of publication, whatever the clock said.
      await app.database.query(`UPDATE releases SET created_at = '2020-01-01' WHERE id = $1`, [ids[0]]);
      const list = async (query: string) => (await app.as(owner).get(releasesPath(name, query))).body;
      const all = await list('');
      expect(all.releases.map(({ id }: { id: string }) => id)).toEqual(ids);
      expect(all.pagination).toEqual({ currentPage: 1, pageSize: 20, totalPages: 1, totalCount: 5 });
      for (const release of all.releases) expect(release).not.toHaveProperty('logs');
      const second = await list('?page=2&pageSize=2');
      expect(second.releases.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2, 4));
      expect(second.pagination).toEqual({ currentPage: 2, pageSize: 2, totalPages: 3, totalCount: 5 });
    },
  );

  verifies('release:list:order', 'a release that waited for others is created after them', async () => {
    const name = await createServer(app, owner);
    const holder = app.database.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT 1 FROM servers WHERE id = $1 FOR UPDATE', [(await serverRow(app, name)).id]);
    const waiting = published(app, owner, name, external());
    await until(async () => {
      const [row] = await app.database.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return row !== undefined;
    }, 'the release waits for its server');
    const [{ now }] = await holder.query(`SELECT date_trunc('milliseconds', clock_timestamp()) AS now`);
    await holder.commitTransaction();
    await holder.release();
    const { createdAt } = await readRelease(app, owner, name, await waiting);
    expect(Date.parse(createdAt as string)).toBeGreaterThanOrEqual((now as Date).getTime());
  });

  verifies('release:list:past-end', 'is empty past its end, up to the highest page there is', async () => {
    const name = await createServer(app, owner);
    await insertRelease(app, name);
    for (const page of [2, 9_007_199_254_740_991]) {
      const response = await app.as(owner).get(releasesPath(name, `?page=${page}&pageSize=100`));
      expect([response.status, response.body]).toEqual([
        200,
        { releases: [], pagination: { currentPage: page, pageSize: 100, totalPages: 1, totalCount: 1 } },
      ]);
    }
  });

  verifies(['release:list:page', 'release:list:page-size'], 'refuses pages and sizes out of bounds', async () => {
    const name = await createServer(app, owner);
    const bad = ['page=0', 'page=-1', 'page=1.5', 'page=x', 'page=9007199254740992', 'pageSize=0', 'pageSize=101'];
    for (const query of bad) {
      const response = await app.as(owner).get(releasesPath(name, `?${query}`));
      expect([query, response.status]).toEqual([query, 400]);
      expect(response.body).toEqual({ error: expect.stringContaining(query.split('=')[0]) });
    }
    for (const query of ['page=1', 'pageSize=1', 'pageSize=100']) {
      expect((await app.as(owner).get(releasesPath(name, `?${query}`))).status).toBe(200);
    }
  });

  it('is empty for a server that was never released', async () => {
    const response = await app.as(owner).get(releasesPath(await createServer(app, owner)));
    expect(response.body).toEqual({
      releases: [],
      pagination: { currentPage: 1, pageSize: 20, totalPages: 0, totalCount: 0 },
    });
  });

  it('belongs to one server, also of one namespace, and of the namespace alone', async () => {
    const namespace = await createNamespace(app, owner);
    const alone = await createServer(app, owner, { namespace, server: '' });
    const inside = await createServer(app, owner, { namespace });
    const id = await insertRelease(app, alone);
    for (const path of [`/servers/${namespace}/releases`, `/servers/${namespace}%2F/releases`]) {
      const response = await app.as(owner).get(path);
      expect(response.body.releases).toMatchObject([{ id, mcpUrl: `${app.url}/run/${namespace}` }]);
    }
    expect((await app.as(owner).get(releasesPath(inside))).body.releases).toEqual([]);
    expect((await app.as(owner).get(`/servers/${inside}/releases`)).status).toBe(200);
  });
});

describe('a caller who does not own the server', () => {
  const doors = (name: string, id: string) =>
    [
      ['get', releasesPath(name)],
      ['get', releasesPath(name, `/${id}`)],
      ['get', releasesPath(name, `/${id}/stream`)],
      ['post', releasesPath(name, `/${id}/resume`)],
      ['post', releasesPath(name, `/${id}/promote`)],
    ] as const;

  verifies(
    ['release:list:not-found', 'release:resume:not-found'],
    'gets the same answer for a foreign server and a missing one',
    async () => {
      const name = await createServer(app, owner);
      const id = await insertRelease(app, name, { status: 'AUTH_REQUIRED' });
      const [namespace] = name.split('/');
      for (const [account, server] of [
        [stranger, name],
        [owner, `${namespace}/${uniqueName()}`],
        [owner, uniqueName()],
        [owner, `${uniqueName()}/${uniqueName()}`],
      ] as const) {
        for (const [method, path] of doors(server, id)) {
          const response = await app.as(account)[method](path);
          expect([path, response.status, response.body]).toEqual([
            path,
            404,
            expect.objectContaining({ error: 'Server not found' }),
          ]);
        }
      }
      expect((await readRelease(app, owner, name, id)).status).toBe('AUTH_REQUIRED');
    },
  );

  it('learns from publishing if the server or its namespace is missing', async () => {
    const name = await createServer(app, owner);
    const namespace = await createNamespace(app, owner);
    const expected = [
      [owner, `${namespace}/${uniqueName()}`, 'Server not found'],
      [owner, namespace, 'Server not found'],
      [stranger, name, 'Server not found'],
      [owner, `${uniqueName()}/${uniqueName()}`, 'Namespace not found'],
      [owner, uniqueName(), 'Namespace not found'],
    ] as const;
    for (const [account, server, error] of expected) {
      const response = await publish(app, account, server, external());
      expect([server, response.status, response.body.error]).toEqual([server, 404, error]);
    }
  });
});

describe('resuming', () => {
  verifies(
    'release:resume:paused-only',
    'is refused for every release that does not wait for authorization, and changes nothing',
    async () => {
      const name = await createServer(app, owner);
      for (const status of statuses.filter((one) => !one.startsWith('AUTH_'))) {
        const id = await insertRelease(app, name, { status });
        const before = await readRelease(app, owner, name, id);
        for (const target of [id, 'latest']) {
          const response = await app.as(owner).post(releasesPath(name, `/${target}/resume`));
          expect([status, response.status]).toEqual([status, 400]);
          expect(response.body).toEqual({
            error: `Release is not in a resumable state: it is ${status}, and only AUTH_REQUIRED and AUTH_TIMEOUT can be resumed`,
          });
        }
        expect(await readRelease(app, owner, name, id)).toEqual(before);
      }
    },
  );

  verifies('release:resume:unknown-id', 'is refused for a release the server does not have', async () => {
    const name = await createServer(app, owner);
    const foreign = await insertRelease(app, await createServer(app, owner), { status: 'AUTH_REQUIRED' });
    for (const id of [randomUUID(), foreign, 'latest', 'nonsense']) {
      const response = await app.as(owner).post(releasesPath(name, `/${id}/resume`));
      expect([response.status, response.body]).toEqual([404, { error: 'Release not found' }]);
    }
  });
});

describe('the current release', () => {
  const runs = async (name: string) => (await serverRow(app, name)).current_release_id;

  it('is the newest that succeeded: a failure changes nothing, a newer success does', async () => {
    const name = await createServer(app, owner);
    const first = await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    expect(await runs(name)).toBe(first.id);
    await publishExternal(app, owner, name, { upstreamUrl: `${upstream.origin}/nowhere` }, 'FAILURE');
    expect(await runs(name)).toBe(first.id);
    const third = await publishExternal(app, owner, name, { upstreamUrl: `${upstream.url}?v=3` });
    expect(await runs(name)).toBe(third.id);
    expect(await serverRow(app, name)).toMatchObject({
      current_type: 'external_shttp',
      scan_passed: true,
      snapshot: { releaseId: third.id, upstreamUrl: `${upstream.url}?v=***`, tools: [{ name: 'forecast' }] },
    });
  });

  it('can be an earlier one again, which the run endpoint follows, until a newer one succeeds', async () => {
    const name = await createServer(app, owner);
    const [old, other] = await Promise.all([startGuarded(), startGuarded()]);
    const first = await publishExternal(app, owner, name, { upstreamUrl: old.url });
    await publishExternal(app, owner, name, { upstreamUrl: other.url });
    const response = await app.as(owner).post(releasesPath(name, `/${first.id}/promote`));
    const { logs, ...expected } = first;
    expect([response.status, response.body]).toEqual([200, expected]);
    expect(await runs(name)).toBe(first.id);
    const calls = [old.seen.length, other.seen.length];
    const called = await app
      .as(stranger)
      .post(new URL(first.mcpUrl as string).pathname, {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
      })
      .set('accept', 'application/json, text/event-stream');
    expect(called.status).toBe(200);
    expect([old.seen.length > calls[0], other.seen.length]).toEqual([true, calls[1]]);
    const third = await publishExternal(app, owner, name, { upstreamUrl: other.url });
    expect(await runs(name)).toBe(third.id);
    await Promise.all([old.close(), other.close()]);
  });

  verifies(
    ['release:current', 'release:last-error'],
    'is marked in lists, at the server and in the log; failed ones have their last error',
    async () => {
      const name = await createServer(app, owner);
      const path = `/servers/${encodeURIComponent(name)}`;
      const current = async () => (await app.as(owner).get(path)).body.currentReleaseId as string | null;
      const listed = async () =>
        ((await app.as(owner).get(releasesPath(name))).body.releases as Record<string, unknown>[]).map(
          ({ id, isCurrent, lastError }) => ({ id, isCurrent, lastError }),
        );
      expect(await current()).toBeNull();
      const first = await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
      const second = await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
      const failed = await published(app, owner, name, { type: 'external', upstreamUrl: await refusedPort() });
      const { logs } = await releaseIn(app, owner, name, failed, 'FAILURE');
      const lastError = logs.findLast(({ level }) => level === 'error')?.message;
      expect(lastError).toMatch(/Nothing listens on/);
      const rows = (currentId: string) => [
        { id: failed, isCurrent: false, lastError },
        { id: second.id, isCurrent: currentId === second.id, lastError: undefined },
        { id: first.id, isCurrent: currentId === first.id, lastError: undefined },
      ];
      expect([await current(), await listed()]).toEqual([second.id, rows(second.id)]);
      await app
        .as(owner)
        .post(releasesPath(name, `/${first.id}/promote`))
        .expect(200);
      expect([await current(), await listed()]).toEqual([first.id, rows(first.id)]);
      const promoted = await readRelease(app, owner, name, first.id);
      expect([promoted.isCurrent, promoted.logs.at(-1)?.message]).toEqual([
        true,
        expect.stringMatching(/^Promoted by the key "\w.*"$/),
      ]);
    },
  );

  it('cannot be one that did not succeed', async () => {
    const name = await createServer(app, owner);
    const first = await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    const { snapshot } = await serverRow(app, name);
    for (const status of statuses.filter((one) => one !== 'SUCCESS')) {
      const id = await insertRelease(app, name, { status, snapshot: { ...snapshot, upstreamUrl: 'http://other' } });
      const response = await app.as(owner).post(releasesPath(name, `/${id}/promote`));
      expect([response.status, response.body]).toEqual([
        409,
        { error: `Only a release that succeeded can become current: this one is ${status}` },
      ]);
      expect(response.headers['x-should-retry']).toBe('false');
    }
    expect(await runs(name)).toBe(first.id);
  });
});
