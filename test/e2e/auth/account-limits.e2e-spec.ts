import { beforeEach, describe, expect } from '@jest/globals';
import { DataSource } from 'typeorm';
import { InvocationStore } from '../../../src/modules/logs/store/invocation-store.js';
import { AccountLimitsService } from '../../../src/modules/auth/account-limits.service.js';
import { loadEnv } from '../../../src/config/env.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { times } from '../../support/mcp/calls.js';
import { insertRelease, publish, serverRow } from '../../support/releases/releases.js';
import { createSkill, skillMd, upload } from '../../support/releases/skills.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';
import { zipOf } from '../../support/zips.js';

interface Usage {
  limits: { name: string; used: number | null; limit: number }[];
}

const app = testApp({ ACCOUNT_LIMITS: 'namespaces=30' });
let account: TestAccount;

beforeEach(async () => {
  account = await app.account();
});

const setLimits = (limits: object, of = account) => app.as(app.operator).patch(`/accounts/${of.id}/limits`, { limits });

/** Sets limits of the account. */
async function limit(limits: object): Promise<void> {
  expect((await setLimits(limits)).status).toBe(200);
}

/** Use and value of each limit of the account. */
async function usage(): Promise<Record<string, [used: number | null, limit: number]>> {
  const { status, body } = await app.as(account).get('/accounts/me/usage');
  expect(status).toBe(200);
  return Object.fromEntries((body as Usage).limits.map(({ name, used, limit: max }) => [name, [used, max]]));
}

const reached = (name: string) => expect.stringMatching(new RegExp(`^This account is at its limit of ${name}: `));

describe('GET /accounts/{id}/usage', () => {
  verifies('limits:usage', 'answers each limit of the account and what is used of it', async () => {
    const namespace = await createNamespace(app, account);
    const name = await createServer(app, account, { namespace });
    await insertRelease(app, name, { status: 'FAILURE' });
    await createConnection(app, account, { transport: 'uplink' }, { namespace });
    await createSkill(app, account, { namespace });
    // Neither a process that has ended nor the log of another day counts.
    await app.get(DataSource).query(
      `INSERT INTO processes (id, roles, details, lease_until)
       VALUES (gen_random_uuid(), '{}', $1, now() + interval '1 minute'),
              (gen_random_uuid(), '{}', $2, now() - interval '1 second')`,
      [{ livePrograms: { [account.id]: 3 } }, { livePrograms: { [account.id]: 9 } }],
    );
    await app.database.query(`INSERT INTO account_log_days VALUES ($1, (now() AT TIME ZONE 'UTC')::date - 1, 1000)`, [
      account.id,
    ]);
    expect(await usage()).toMatchObject({
      namespaces: [1, 30],
      apiKeys: [1, 10_000],
      servers: [1, 20_000],
      releases: [1, 20_000],
      artifactBytes: [0, 20 * 1024 ** 3],
      connections: [1, 100_000],
      skills: [1, 20_000],
      skillBytes: [expect.any(Number), 2 * 1024 ** 3],
      logBytesPerDay: [0, Math.floor((10 * 1024 ** 3) / 14 / 4)],
      livePrograms: [3, Math.floor((loadEnv({}).runtimeLiveMax * 3) / 4)],
      requestsPerMinute: [null, 300_000],
    });
    const other = await app.account();
    expect((await app.as(other).get(`/accounts/${account.id}/usage`)).status).toBe(404);
    expect((await app.as(app.operator).get(`/accounts/${account.id}/usage`)).status).toBe(200);
  });
});

describe('artifactBytes', () => {
  verifies('limits:usage', 'counts a file once that several releases share', async () => {
    const name = await createServer(app, account);
    const file = (releaseId: string, kind: string, hash: string, bytes: number) =>
      app.database.query('INSERT INTO release_artifacts (release_id, kind, hash, bytes) VALUES ($1, $2, $3, $4)', [
        releaseId,
        kind,
        hash.repeat(64),
        bytes,
      ]);
    const releases = [await insertRelease(app, name), await insertRelease(app, name)];
    for (const id of releases) await file(id, 'bundle', 'a', 700);
    await file(releases[0], 'module', 'b', 50);
    expect(await usage()).toMatchObject({ releases: [2, 20_000], artifactBytes: [750, expect.any(Number)] });
  });
});

describe('the quota of running programs', () => {
  verifies('runtime:stop:quota', 'is that of the account that owns the release or connection', async () => {
    const limits = app.get(AccountLimitsService);
    const namespace = await createNamespace(app, account);
    const releaseId = await insertRelease(app, await createServer(app, account, { namespace }), { status: 'SUCCESS' });
    const { connectionId } = await createConnection(app, account, { transport: 'uplink' }, { namespace });
    const [connection] = await app.database.query<[{ id: string }]>(
      `SELECT c.id FROM connections c JOIN namespaces n ON n.id = c.namespace_id
        WHERE n.name = $1 AND c.connection_id = $2`,
      [namespace, connectionId],
    );
    await limit({ livePrograms: 6 });
    const quota = { accountId: account.id, max: 6 };
    expect(await limits.programQuota({ releaseId })).toEqual(quota);
    expect(await limits.programQuota({ connectionId: connection.id })).toEqual(quota);
    expect(await limits.programQuota({ releaseId: connection.id })).toBeNull();
  });
});

describe('PATCH /accounts/{id}/limits', () => {
  verifies('limits:usage', 'sets limits of one account, for the operator only', async () => {
    await limit({ namespaces: 7, skills: 0 });
    expect(await usage()).toMatchObject({ namespaces: [0, 7], skills: [0, 0], servers: [0, 20_000] });
    await limit({ namespaces: null });
    expect(await usage()).toMatchObject({ namespaces: [0, 30], skills: [0, 0] });
    expect((await app.as(account).patch('/accounts/me/limits', { limits: { namespaces: 9 } })).status).toBe(403);
    for (const limits of [{ nonsense: 1 }, { skills: -1 }, { skills: 1.5 }, { skills: '1' }]) {
      expect([limits, (await setLimits(limits)).status]).toEqual([limits, 400]);
    }
    const nobody = { ...account, id: '7b0c1d2e-0000-4000-8000-000000000000' };
    expect((await setLimits({ skills: 1 }, nobody)).status).toBe(404);
  });

  verifies('limits:usage', 'changes the limits of requests within seconds', async () => {
    await limit({ keyRequestsPerMinute: 1 });
    await until(async () => (await app.as(account).get('/accounts/me')).status === 429, 'the limit is used');
  });
});

describe('a quota that is used up', () => {
  verifies(
    'limits:quotas',
    'returns 429 for namespaces and keys, keeps existing ones, and does not affect other accounts',
    async () => {
      await limit({ namespaces: 5, apiKeys: 2 });
      const claims = await Promise.all(times(15, () => app.as(account).put(`/namespaces/${uniqueName('ns')}`)));
      expect(claims.map(({ status }) => status).sort()).toEqual([...times(5, () => 201), ...times(10, () => 429)]);
      const refused = claims.find(({ status }) => status === 429);
      expect(refused?.body).toEqual({ error: reached('namespaces') });
      expect(refused?.headers['x-should-retry']).toBe('false');
      const own = claims.find(({ status }) => status === 201)?.body as { name: string };
      expect((await app.as(account).put(`/namespaces/${own.name}`)).status).toBe(201);
      expect((await app.as(account).post('/namespaces')).status).toBe(429);
      const keys = await Promise.all(times(4, () => app.as(account).post('/accounts/me/api-keys', { name: 'k' })));
      expect(keys.map(({ status }) => status).sort()).toEqual([201, 429, 429, 429]);
      await createNamespace(app, await app.account());
      await app.as(account).delete(`/namespaces/${own.name}`);
      await createNamespace(app, account);
    },
  );

  verifies('limits:quotas', 'returns 429 for servers and connections in the shape of their path', async () => {
    const namespace = await createNamespace(app, account);
    const name = await createServer(app, account, { namespace });
    const { path } = await createConnection(app, account, { transport: 'uplink' }, { namespace });
    await limit({ servers: 1, connections: 1 });
    const server = (called: string) => app.as(account).put(`/servers/${encodeURIComponent(called)}`, {});
    const one = await server(`${namespace}/another`);
    expect([one.status, one.body]).toEqual([429, { error: reached('servers') }]);
    expect((await server(name)).status).toBe(201);
    const two = await app.as(account).put(`/connect/${namespace}/another`, { transport: 'uplink' });
    expect([two.status, two.body]).toEqual([429, { error: 'quota_exceeded', message: reached('connections') }]);
    expect((await app.as(account).post(`/connect/${namespace}`, { transport: 'uplink' })).status).toBe(429);
    expect((await app.as(account).put(path, { name: 'renamed' })).status).toBe(200);
  });

  verifies('limits:quotas', 'affects no other namespace of the account when it applies to one namespace', async () => {
    await limit({ connectionsPerNamespace: 1, serversPerNamespace: 1, skillsPerNamespace: 1 });
    const namespace = await createNamespace(app, account);
    await createServer(app, account, { namespace });
    await createConnection(app, account, { transport: 'uplink' }, { namespace });
    await createSkill(app, account, { namespace });
    const refused = await Promise.all([
      app.as(account).put(`/servers/${encodeURIComponent(`${namespace}/more`)}`, {}),
      app.as(account).put(`/connect/${namespace}/more`, { transport: 'uplink' }),
      upload(app, account, `/skills/${namespace}/more`, await zipOf({ 'SKILL.md': skillMd() })),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([429, 429, 429]);
    await createServer(app, account);
    await createConnection(app, account, { transport: 'uplink' });
  });

  verifies('limits:quotas', 'limits numbers and bytes of skills and releases', async () => {
    const namespace = await createNamespace(app, account);
    const name = await createServer(app, account, { namespace });
    const { path } = await createSkill(app, account, { namespace });
    await limit({ skills: 1, releases: 1, artifactBytes: 10 });
    const archive = await zipOf({ 'SKILL.md': skillMd() });
    const skill = await upload(app, account, `/skills/${namespace}/more`, archive);
    expect([skill.status, skill.body]).toEqual([429, { error: reached('skills'), code: 'QUOTA_EXCEEDED' }]);
    expect((await upload(app, account, path, archive)).status).toBe(200);
    await limit({ skillBytes: 5 });
    expect((await upload(app, account, path, archive)).body).toMatchObject({ error: reached('skillBytes') });
    const external = { type: 'external', upstreamUrl: 'http://127.0.0.1:9/mcp' };
    expect((await publish(app, account, name, external)).status).toBe(202);
    const release = await publish(app, account, name, external);
    expect([release.status, release.body]).toEqual([429, { error: reached('releases') }]);
    await limit({ releases: null });
    const bundle = { bundle: Buffer.from('more than ten bytes of a bundle') };
    const large = await publish(app, account, name, { type: 'stdio', runtime: 'node' }, bundle);
    expect(large.body).toEqual({ error: reached('artifactBytes') });
  });

  verifies('limits:log-share', 'drops logs that the account writes, and none of other accounts', async () => {
    const name = await createServer(app, account);
    const other = await app.account();
    const theirs = await createServer(app, other);
    const send = (owner: TestAccount, to: string) =>
      app
        .as(owner)
        .post(`/servers/${encodeURIComponent(to)}/logs`, {
          invocations: [{ timestamp: new Date().toISOString(), lines: [{ level: 'info', message: 'x'.repeat(500) }] }],
        });
    const total = async (owner: TestAccount, of: string) =>
      (await app.as(owner).get(`/servers/${encodeURIComponent(of)}/logs`)).body as { total: number };
    expect((await send(account, name)).body).toMatchObject({ accepted: 1 });
    await until(async () => (await usage()).logBytesPerDay?.[0], 'the log is counted');
    expect((await usage()).logBytesPerDay?.[0]).toBeGreaterThan(200);
    await limit({ logBytesPerDay: 100 });
    const refused = await send(account, name);
    expect([refused.status, refused.body]).toEqual([429, { error: reached('logBytesPerDay') }]);
    // Records of the service itself are dropped by the job that stores them.
    const part = async (of: string) => {
      const { id } = await serverRow(app, of);
      return { id: uuidV7(), serverId: id, method: 'POST', lines: [], exceptions: [] };
    };
    await app.get(InvocationStore).store([await part(name), await part(theirs)], 1);
    expect([(await total(account, name)).total, (await total(other, theirs)).total]).toEqual([1, 1]);
    expect((await send(other, theirs)).body).toMatchObject({ accepted: 1 });
    await until(async () => (await total(other, theirs)).total === 2, "the others' log is stored");
  });
});
