import { ModulesContainer } from '@nestjs/core';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { createApp } from '../../../src/app.setup.js';
import { routeTable } from '../../../src/platform/http/route-table.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { openTunnel, pair, PairingRefused } from '../../support/mcp/uplink-client.js';
import { published, releaseIn } from '../../support/releases/releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time in which a grant, or what it holds open, may outlive its withdrawal. */
const END_MS_MAX = 5_000;

const app = testApp();
/** A process that receives no message of the others: it listens on another channel. */
let deaf: TestApp;
let upstream: Upstream;
const owner = testAccount(app);
const caller = testAccount(app);
const manager = testAccount(app);
const stranger = testAccount(app);
let namespace: string;

beforeAll(async () => {
  upstream = await startUpstream();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  namespace = await createNamespace(app, owner);
});

/** Grants a target to an account. @returns the grant's id */
async function grant(target: string, account: TestAccount, level: string): Promise<string> {
  const { status, body } = await app.as(owner).post(`${target}/grants`, { account: account.id, level });
  expect([200, 201]).toContain(status);
  return body.id as string;
}

/** A new connection of the owner's. @returns its path */
async function connection(body: Record<string, unknown> = { mcpUrl: upstream.url }): Promise<string> {
  return (await createConnection(app, owner, body, { namespace })).path;
}

/** A new connection that `caller` may call and `manager` may manage. */
async function sharedConnection(): Promise<string> {
  const path = await connection();
  await grant(path, caller, 'call');
  await grant(path, manager, 'manage');
  return path;
}

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

/** One route of a connection, below its path, with a body that it accepts. */
type Step = [method: 'GET' | 'PUT' | 'POST' | 'DELETE', below: string, body?: object];

async function ask(account: TestAccount, path: string, [method, below, body]: Step): Promise<supertest.Response> {
  const request = supertest(app.url)[method.toLowerCase() as 'get'](path + below);
  void request.set('authorization', `Bearer ${account.key}`);
  return body === undefined ? request : request.send(body);
}

/** Every route of a connection, and its statuses for owner, grantee of calls, grantee of management and stranger. */
const table: [route: string, step: Step, statuses: [owner: number, call: number, manage: number, stranger: number]][] =
  [
    ['GET ', ['GET', ''], [200, 200, 200, 404]],
    ['PUT ', ['PUT', '', { name: 'renamed' }], [200, 403, 200, 404]],
    ['GET /.tools', ['GET', '/.tools'], [200, 200, 200, 404]],
    ['GET /.tools/*toolPath', ['GET', '/.tools/echo'], [200, 200, 200, 404]],
    ['POST /.tools/*toolPath', ['POST', '/.tools/echo', { message: 'hello' }], [200, 200, 200, 404]],
    ['POST /mcp', ['POST', '/mcp', listTools], [200, 200, 200, 404]],
    ['GET /mcp', ['GET', '/mcp'], [405, 405, 405, 404]],
    ['DELETE /mcp', ['DELETE', '/mcp'], [405, 405, 405, 404]],
    ['GET /logs', ['GET', '/logs'], [200, 200, 200, 404]],
    ['GET /diagnosis', ['GET', '/diagnosis'], [200, 403, 200, 404]],
    ['PUT /recording', ['PUT', '/recording', { enabled: true }], [200, 403, 200, 404]],
    ['GET /recording', ['GET', '/recording'], [200, 403, 200, 404]],
    ['GET /recording/calls', ['GET', '/recording/calls'], [200, 403, 403, 404]],
    ['GET /recording/fixture', ['GET', '/recording/fixture'], [200, 403, 403, 404]],
    ['DELETE /recording', ['DELETE', '/recording'], [200, 403, 200, 404]],
    ['GET /.triggers', ['GET', '/.triggers'], [200, 200, 200, 404]],
    // The connection has no triggers.
    ['GET /.triggers/:triggerName', ['GET', '/.triggers/none'], [404, 404, 404, 404]],
    ['POST /.triggers/:triggerName', ['POST', '/.triggers/none', {}], [400, 400, 400, 404]],
    ['DELETE /.triggers/:triggerName', ['DELETE', '/.triggers/none', {}], [400, 400, 400, 404]],
    // The connection leads to a URL.
    ['GET /uplink', ['GET', '/uplink'], [404, 403, 404, 404]],
    ['GET /grants', ['GET', '/grants'], [200, 403, 403, 404]],
    ['POST /grants', ['POST', '/grants', { account: 'none', level: 'call' }], [404, 403, 403, 404]],
    ['DELETE /grants/:grantId', ['DELETE', `/grants/${randomUUID()}`], [404, 403, 403, 404]],
    ['DELETE ', ['DELETE', ''], [200, 403, 403, 404]],
  ];

/** What a grantee is told by a route that its level does not include. */
const textOf403 = (level: string): unknown =>
  expect.stringMatching(
    `^Forbidden: the owner granted your account "${level}" here, and (only the owner may|this needs "manage")`,
  );

describe('every route of a connection', () => {
  verifies('grants:connection', 'is open as the grant says, and looks missing to others', async () => {
    const path = await sharedConnection();
    const missing = `/connect/${uniqueName('none')}/none`;
    for (const [route, step, [owned, called, managed, strange]] of table) {
      // The owner is last: it also deletes.
      const answers = [
        [caller, called, 'call'],
        [manager, managed, 'manage'],
        [stranger, strange, ''],
        [owner, owned, ''],
      ] as const;
      for (const [account, status, level] of answers) {
        const answer = await ask(account, path, step);
        expect([route, level, answer.status, answer.status === status ? '' : answer.text]).toEqual([
          route,
          level,
          status,
          '',
        ]);
        if (status === 403) expect(answer.body).toEqual({ error: 'forbidden', message: textOf403(level) });
      }
      const [foreign, none] = [await ask(stranger, path, step), await ask(stranger, missing, step)];
      expect([route, foreign.status, foreign.text]).toEqual([route, none.status, none.text]);
      expect(Object.keys(foreign.headers).toSorted()).toEqual(Object.keys(none.headers).toSorted());
    }
    expect((await app.as(owner).get(path)).status).toBe(404);
  });

  verifies('grants:connection', 'is in the table above', async () => {
    const prefix = '/connect/:namespace/:connectionId';
    const served = routeTable((await createApp(app.env, { preview: true })).get(ModulesContainer)).filter(
      ({ path, method }) => (path === prefix || path.startsWith(`${prefix}/`)) && method !== 'HEAD',
    );
    // A suspension is the operator's: the access matrix has it.
    const ofAccounts = served.filter(({ path }) => !path.endsWith('/suspension'));
    const names = ofAccounts.map(({ method, path }) => `${method} ${path.slice(prefix.length)}`);
    expect(table.map(([route]) => route).toSorted()).toEqual(names.toSorted());
  });

  verifies('grants:connection', 'opens nothing else in the namespace', async () => {
    await sharedConnection();
    const other = await connection();
    for (const account of [caller, manager]) {
      const as = app.as(account);
      expect((await as.get(other)).status).toBe(404);
      expect((await as.get(`/connect/${namespace}`)).status).toBe(404);
      expect((await as.get(`/connect/${namespace}/.tools`)).status).toBe(404);
      expect((await as.post(`/connect/${namespace}/.mcp`, listTools)).status).toBe(404);
      expect((await as.post(`/connect/${namespace}`, { mcpUrl: upstream.url })).status).toBe(404);
      expect((await as.put(`/connect/${namespace}/${uniqueName('new')}`, { mcpUrl: upstream.url })).status).toBe(404);
    }
  });

  verifies(
    'grants:connection',
    'pairs a local server for a grantee that manages it, until the grant is revoked',
    async () => {
      const path = await connection({ transport: 'uplink' });
      await grant(path, caller, 'call');
      const id = await grant(path, manager, 'manage');
      const refused = await openTunnel(app, caller, path).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(PairingRefused);
      expect((refused as PairingRefused).status).toBe(403);
      const { socket } = await pair(app, manager, path);
      const closed = once(socket, 'close');
      expect((await app.as(owner).delete(`${path}/grants/${id}`)).status).toBe(200);
      const [code, reason] = (await closed) as [number, Buffer];
      expect([code, reason.toString()]).toEqual([1008, expect.stringContaining('grant was revoked')]);
    },
  );

  verifies('grants:keys', 'needs the right of the grantee’s key too', async () => {
    const path = await sharedConnection();
    const scoped = (scopes: string[] | null) =>
      app.database.query('UPDATE api_keys SET scopes = $2 WHERE account_id = $1', [manager.id, scopes]);
    const status = async () => (await app.as(manager).put(path, { name: 'again' })).status;
    await scoped([`call:${namespace}`]);
    await until(async () => (await status()) === 403, 'the scopes hold');
    expect((await app.as(manager).get(path)).status).toBe(200);
    await scoped(null);
    await until(async () => (await status()) === 200, 'the scopes are gone');
  });
});

describe('grants', () => {
  const targets = [
    ['connection', () => connection()],
    ['server', async () => pathOf(await createServer(app, owner, { namespace }))],
  ] as const;

  for (const [kind, make] of targets) {
    verifies('grants:owner', `are given, changed, listed and revoked by the owner of a ${kind}`, async () => {
      const target = await make();
      const as = app.as(owner);
      const first = await as.post(`${target}/grants`, { account: caller.name, level: 'call' });
      const account = { id: caller.id, name: caller.name };
      const shown = { id: expect.any(String), account, level: 'call', createdAt: expect.any(String) };
      expect([first.status, first.body]).toEqual([201, shown]);
      const again = await as.post(`${target}/grants`, { account: caller.id, level: 'manage' });
      expect([again.status, again.body]).toEqual([200, { ...first.body, level: 'manage' }]);
      await grant(target, manager, 'manage');
      const page = await as.get(`${target}/grants?pageSize=1&page=2`);
      const pagination = { currentPage: 2, pageSize: 1, totalPages: 2, totalCount: 2 };
      expect(page.body).toEqual({ grants: [{ ...again.body, grantedBy: owner.name }], pagination });
      for (const account of [manager, stranger]) {
        const status = account === manager ? 403 : 404;
        expect((await app.as(account).get(`${target}/grants`)).status).toBe(status);
        expect((await app.as(account).delete(`${target}/grants/${again.body.id}`)).status).toBe(status);
        const other = { account: stranger.id, level: 'call' };
        expect((await app.as(account).post(`${target}/grants`, other)).status).toBe(status);
      }
      expect((await as.delete(`${target}/grants/${again.body.id}`)).body).toEqual({ success: true });
      expect((await as.delete(`${target}/grants/${again.body.id}`)).status).toBe(404);
      expect((await as.delete(`${target}/grants/none`)).status).toBe(404);
      expect((await as.get(`${target}/grants`)).body.pagination.totalCount).toBe(1);
    });

    verifies('grants:owner', `name an existing account other than the owner, at most 100 for a ${kind}`, async () => {
      const target = await make();
      const as = app.as(owner);
      for (const account of [uniqueName('nobody'), randomUUID()]) {
        const { status, text } = await as.post(`${target}/grants`, { account, level: 'call' });
        expect([status, text]).toEqual([404, expect.stringContaining('No account has this id or name')]);
      }
      const own = await as.post(`${target}/grants`, { account: owner.name, level: 'call' });
      expect([own.status, own.text]).toEqual([400, expect.stringContaining('account owns this already')]);
      expect((await as.post(`${target}/grants`, { account: caller.id, level: 'own' })).status).toBe(400);
      expect((await as.post(`${target}/grants`, { account: caller.id, level: 'call', more: 1 })).status).toBe(400);
      await grant(target, caller, 'call');
      await app.database.query(
        `WITH made AS (INSERT INTO accounts (name, kind) SELECT $1 || n, 'user' FROM generate_series(1, 99) n RETURNING id)
         INSERT INTO grants (server_id, connection_id, subject_id, level, created_by)
         SELECT server_id, connection_id, made.id, level, created_by FROM made, grants
          WHERE grants.id = (SELECT id FROM grants WHERE subject_id = $2 ORDER BY created_at DESC LIMIT 1)`,
        [uniqueName('many'), caller.id],
      );
      const full = await as.post(`${target}/grants`, { account: manager.id, level: 'call' });
      expect([full.status, full.text]).toEqual([409, expect.stringContaining('This target has 100 grants')]);
      expect((await as.post(`${target}/grants`, { account: caller.id, level: 'manage' })).status).toBe(200);
    });
  }

  verifies('grants:owner', 'cannot be revoked through another target', async () => {
    const [one, other] = [await connection(), await connection()];
    const id = await grant(one, caller, 'call');
    expect((await app.as(owner).delete(`${other}/grants/${id}`)).status).toBe(404);
    expect((await app.as(caller).get(one)).status).toBe(200);
  });

  verifies('grants:owner', 'are listed for the account that received them', async () => {
    const grantee = await app.account();
    const server = await createServer(app, owner, { namespace });
    const path = await connection();
    await grant(pathOf(server), grantee, 'call');
    await grant(path, grantee, 'manage');
    const { body } = await app.as(grantee).get('/accounts/me/grants');
    const by = { id: owner.id, name: owner.name };
    const common = { id: expect.any(String), namespace, owner: by, createdAt: expect.any(String) };
    expect(body.grants).toEqual([
      { ...common, kind: 'connection', connectionId: path.split('/').at(-1), level: 'manage' },
      { ...common, kind: 'server', qualifiedName: server, level: 'call' },
    ]);
    expect(body.pagination.totalCount).toBe(2);
    const others = await app.as(stranger).get(`/accounts/${grantee.id}/grants`);
    expect(others.status).toBe(404);
  });

  verifies('grants:gone', 'go with their account, server or connection', async () => {
    const [grantee, leaving] = [await app.account(), await app.account()];
    const server = pathOf(await createServer(app, owner, { namespace }));
    const path = await connection();
    for (const target of [server, path]) {
      await grant(target, grantee, 'manage');
      await grant(target, leaving, 'manage');
    }
    const received = async () =>
      (await app.as(grantee).get('/accounts/me/grants')).body.pagination.totalCount as number;
    expect(await received()).toBe(2);
    await app.database.query('DELETE FROM accounts WHERE id = $1', [leaving.id]);
    expect((await app.as(owner).get(`${path}/grants`)).body.pagination.totalCount).toBe(1);
    // This process still knows the grant when the connection is gone.
    expect((await deaf.as(grantee).get(path)).status).toBe(200);
    expect((await app.as(owner).delete(path)).status).toBe(200);
    expect((await deaf.as(grantee).put(path, { mcpUrl: upstream.url })).status).toBe(404);
    expect((await app.as(grantee).get(path)).status).toBe(404);
    expect(await received()).toBe(1);
    expect((await app.as(owner).delete(server)).status).toBe(200);
    expect(await received()).toBe(0);
  });

  verifies(
    'grants:server',
    'open releases, logs and settings of a server, but not what stays with its owner',
    async () => {
      const name = await createServer(app, owner, { namespace });
      const server = pathOf(name);
      const release = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
      await releaseIn(app, owner, name, release, 'SUCCESS');
      await grant(server, caller, 'call');
      await grant(server, manager, 'manage');
      const statuses = async (account: TestAccount) => {
        const as = app.as(account);
        return {
          releases: (await as.get(`${server}/releases`)).status,
          logs: (await as.get(`${server}/logs`)).status,
          secrets: (await as.put(`${server}/secrets`, { name: 'SECRET', value: 'x' })).status,
          settings: (await as.patch(server, { description: 'Changed.' })).status,
          create: (await as.put(server, {})).status,
          transfer: (
            await as.post(`${server}/transfer`, {
              targetOrganizationId: 'me',
              targetNamespace: namespace,
              targetSlug: 'x',
            })
          ).status,
          remove: (await as.delete(server)).status,
        };
      };
      const kept = { create: 403, transfer: 403, remove: 403 };
      expect(await statuses(manager)).toEqual({ releases: 200, logs: 200, secrets: 200, settings: 200, ...kept });
      expect(await statuses(caller)).toEqual({ releases: 403, logs: 403, secrets: 403, settings: 403, ...kept });
      const again = await published(app, manager, name, { type: 'external', upstreamUrl: upstream.url });
      expect((await app.as(owner).get(`${server}/releases/${again}`)).status).toBe(200);
    },
  );
});

interface Opened {
  /** Milliseconds since the epoch; NaN while it is open. */
  endedAt: number;
}

async function open(of: TestApp, path: string, key: string, headers: Record<string, string> = {}): Promise<Opened> {
  const response = await fetch(`${of.url}${path}`, {
    headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers },
  });
  expect(response.status).toBe(200);
  const opened = { endedAt: NaN };
  const read = async () => {
    for await (const chunk of response.body as ReadableStream<Uint8Array>) void chunk;
  };
  const ended = () => Object.assign(opened, { endedAt: Date.now() });
  void read().then(ended, ended);
  return opened;
}

/** A session of a grantee at a connection, and its GET stream. */
async function session(of: TestApp, path: string, { key }: TestAccount): Promise<{ id: string; stream: Opened }> {
  const initialized = await fetch(`${of.url}${path}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } },
    }),
  });
  await initialized.text();
  const id = initialized.headers.get('mcp-session-id') ?? '';
  expect(id).not.toBe('');
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' };
  return { id, stream: await open(of, `${path}/mcp`, key, headers) };
}

describe('the revocation of a grant', () => {
  aloneVerifies(
    'grants:withdrawn',
    'ends calls, sessions and streams in 5 s, also where its message is lost',
    async () => {
      const path = await connection();
      const server = pathOf(await createServer(app, owner, { namespace }));
      await grant(path, caller, 'call');
      const ids = [
        [path, await grant(path, manager, 'manage')],
        [server, await grant(server, manager, 'manage')],
      ] as const;
      const kept = [await session(app, path, caller), await session(deaf, path, caller)];
      const ended: { id: string; stream: Opened }[] = [];
      const streams: Opened[] = [];
      for (const process of [app, deaf]) {
        const opened = await session(process, path, manager);
        ended.push(opened);
        streams.push(opened.stream, await open(process, `${path}/mcp`, manager.key));
        streams.push(await open(process, `${server}/logs/stream`, manager.key));
      }
      for (const [target, id] of ids) expect((await app.as(owner).delete(`${target}/grants/${id}`)).status).toBe(200);
      const withdrawnAt = Date.now();
      expect((await app.as(manager).get(path)).status).toBe(404);
      expect((await app.as(manager).get(`${server}/logs`)).status).toBe(404);
      const isRefused = async () => (await deaf.as(manager).get(path)).status === 404;
      await until(isRefused, 'the other process rejects the manager', END_MS_MAX);
      await until(() => streams.every(({ endedAt }) => !Number.isNaN(endedAt)), 'the streams end');
      for (const { endedAt } of streams) expect(endedAt - withdrawnAt).toBeLessThan(END_MS_MAX);
      for (const { id } of ended) {
        const answer = await supertest(app.url)
          .post(`${path}/mcp`)
          .set({ authorization: `Bearer ${manager.key}`, 'mcp-session-id': id })
          .send(listTools);
        expect(answer.status).toBe(404);
      }
      expect(kept.map(({ stream }) => stream.endedAt)).toEqual([NaN, NaN]);
      expect((await app.as(caller).get(path)).status).toBe(200);
    },
  );

  verifies('grants:withdrawn', 'keeps the right to call when the level is lowered', async () => {
    const path = await connection();
    await grant(path, manager, 'manage');
    expect((await app.as(manager).get(`${path}/logs`)).status).toBe(200);
    const { stream } = await session(app, path, manager);
    await grant(path, manager, 'call');
    expect((await app.as(manager).get(`${path}/diagnosis`)).status).toBe(403);
    expect((await app.as(manager).get(`${path}/.tools`)).status).toBe(200);
    await until(() => !Number.isNaN(stream.endedAt), 'what the old level opened ends');
  });
});
