import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asSystem, type Caller, invocationId, resultOf, type ServerRef } from '../../../src/extension.js';
import { testAccount, uniqueName } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createOrganization, createServer } from '../../support/factories.js';
import { logWith, readLog } from '../../support/logs/invocations.js';
import { publishExternal } from '../../support/releases/current-releases.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { callerOf, errorOf, facadeApp } from './facade-app.js';
import { Facades } from './facades.module.js';

const app = facadeApp();
const owner = testAccount(app);
const stranger = testAccount(app);
afterAll(() => upstream.close());

let facades: Facades;
let callers: Record<'owner' | 'stranger', Caller>;
let upstream: Upstream;
let namespace: string;
/** The qualified name of a private server, and the name and path of a connection. */
let server: string;
let connection: string;
let connectionPath: string;

beforeAll(async () => {
  facades = app.get(Facades);
  callers = { owner: await callerOf(app, owner), stranger: await callerOf(app, stranger) };
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace, visibility: 'private' });
  await publishExternal(app, server, upstream.url);
  ({ path: connectionPath } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace }));
  connection = connectionPath.replace('/connect/', '');
});

describe('Logs', () => {
  const timeOf = () => new Date();
  const invocation = ({ id }: ServerRef, message: string) => {
    const at = timeOf();
    const lines = [{ at: at.getTime(), level: 'info', message }];
    return {
      id: invocationId(id, message, at),
      at: at.getTime(),
      method: 'POST',
      url: 'https://user:pass@example.com/mcp?key=secret',
      status: 200,
      outcome: 'ok' as const,
      lines,
      exceptions: [],
    };
  };

  it('stores invocations, which REST and a search with the rights of the owner list', async () => {
    const ref = await facades.servers.find(callers.owner, server);
    await facades.logs.ingest(ref, [invocation(ref, 'sent by a module')]);
    const { invocations } = await logWith(app, owner, server, 1, '?search=sent%20by%20a%20module');
    expect(invocations).toMatchObject([{ request: { url: 'https://example.com/mcp' }, caller: null, releaseId: null }]);
    for (const caller of [callers.owner, asSystem] as const) {
      expect(await facades.logs.search(caller, server, { search: 'sent by a module' })).toMatchObject({
        invocations,
        total: 1,
      });
    }
  });

  it('stores invocations with a transaction of the module, or not at all', async () => {
    const ref = await facades.servers.find(asSystem, server);
    await app.database
      .transaction(async (tx) => {
        await facades.logs.ingest(ref, [invocation(ref, 'rolled back')], tx);
        throw new Error('the module fails');
      })
      .catch(() => undefined);
    await app.database.transaction((tx) => facades.logs.ingest(ref, [invocation(ref, 'committed')], tx));
    await logWith(app, owner, server, 1, '?search=committed');
    await until(
      async () => (await app.database.query<unknown[]>('SELECT FROM log_batches')).length === 0,
      'every batch is written',
    );
    expect((await readLog(app, owner, server, '?search=rolled%20back')).total).toBe(0);
  });

  it('hides the log from other accounts as REST does', async () => {
    const { status, body } = await app.as(stranger).get(pathOf(server, '/logs'));
    expect(await errorOf(facades.logs.search(callers.stranger, server))).toEqual({
      kind: 'not_found',
      message: body.error,
    });
    expect(status).toBe(404);
  });
});

describe('Tools', () => {
  /** The newest calls in the log of the connection, without what differs between two calls. */
  const calls = async (count: number) => {
    const { body } = await app.as(owner).get(`${connectionPath}/logs?tool=echo&limit=${count}`);
    const rows = body.invocations as Record<string, unknown>[];
    return rows.map(({ id: _id, at: _at, timestamp: _time, timing: _timing, duration: _duration, ...row }) => row);
  };

  it('calls a tool of a connection, with the log record of REST', async () => {
    const sent = await app.as(owner).post(`${connectionPath}/.tools/echo`, { message: 'over REST' });
    const result = await facades.tools.call(callers.owner, { connection }, 'echo', { message: 'over REST' });
    expect(result).toEqual(sent.body);
    await until(async () => (await calls(2)).length === 2, 'both calls are listed');
    const [first, second] = await calls(2);
    expect(first).toMatchObject({ tool: 'echo', caller: { account: { id: owner.id } } });
    expect(second).toEqual(first);
  });

  it('calls a tool for the service itself, without a caller in the record', async () => {
    const namedCalls = async () => (await calls(100)).filter(({ caller }) => caller === null);
    expect(await namedCalls()).toEqual([]);
    const result = await facades.tools.call(asSystem, { connection }, 'echo', { message: 'at night' });
    expect(textOf(result)).toBe('at night');
    await until(async () => (await namedCalls()).length === 1, 'the call is listed');
  });

  it('hides a connection from other accounts as REST does', async () => {
    const { body } = await app.as(stranger).post(`${connectionPath}/.tools/echo`, {});
    expect(await errorOf(facades.tools.call(callers.stranger, { connection }, 'echo', {}))).toEqual({
      kind: 'not_found',
      message: body.message,
    });
  });

  it('finds and tries a tool of a connection for a page, and hides it from other accounts as REST does', async () => {
    const response = () => new ServerResponse(new IncomingMessage(new Socket()));
    const params = { name: 'echo', arguments: { message: 'on a page' } };
    expect(await facades.tools.find(callers.owner, connection, 'echo')).toMatchObject({ name: 'echo' });
    expect(await facades.tools.find(callers.owner, connection, 'none')).toBeNull();
    const { result, call } = await facades.tools.try(callers.owner, connection, params, response());
    expect(result).toMatchObject({ content: [{ type: 'text', text: 'on a page' }] });
    expect(call).toMatchObject({ outcome: 'ok' });
    const { body } = await app.as(stranger).post(`${connectionPath}/.tools/echo`, {});
    const hidden = { kind: 'not_found', message: body.message };
    expect(await errorOf(facades.tools.find(callers.stranger, connection, 'echo'))).toEqual(hidden);
    expect(await errorOf(facades.tools.try(callers.stranger, connection, params, response()))).toEqual(hidden);
  });

  it('calls a tool of a server, recorded in its log with and without a caller', async () => {
    for (const caller of [callers.owner, asSystem] as const) {
      const result = await facades.tools.call(caller, { server }, 'echo', { message: 'without a connection' });
      expect(textOf(result)).toBe('without a connection');
    }
    const { invocations } = await logWith(app, owner, server, 2, '?tool=echo');
    expect(invocations.map((row) => (row.caller as { account: { id: string } } | null)?.account.id)).toEqual([
      undefined,
      owner.id,
    ]);
    expect(await errorOf(facades.tools.call(callers.stranger, { server }, 'echo', {}))).toEqual({
      kind: 'not_found',
      message: 'Server not found',
    });
    expect(await errorOf(facades.tools.call(callers.owner, { server }, 'none', {}))).toMatchObject({
      kind: 'unprocessable',
    });
  });

  it('cancels a call with its signal', async () => {
    for (const target of [{ connection }, { server }]) {
      const controller = new AbortController();
      const hold = () => facades.tools.call(callers.owner, target, 'hold', {}, { signal: controller.signal });
      const call = errorOf(hold());
      const isSent = () => upstream.requests.some(({ raw }) => raw.includes('"hold"'));
      await until(async () => isSent(), 'the MCP server has the call');
      controller.abort();
      const error = await call;
      expect(error.message).not.toContain('did not answer');
      upstream.requests.length = 0;
      expect(await errorOf(hold())).toEqual(error);
      expect(isSent()).toBe(false);
    }
  });
});

describe('Accounts', () => {
  it('finds the account of the caller, and others for the service itself', async () => {
    const { body } = await app.as(owner).get('/accounts/me');
    expect(await facades.accounts.find(callers.owner, 'me')).toEqual(body);
    expect(await facades.accounts.find(callers.owner, owner.id)).toEqual(body);
    expect(await facades.accounts.find(asSystem, owner.id)).toEqual(body);
    const missing = { kind: 'not_found', message: 'Account not found' };
    expect(await errorOf(facades.accounts.find(callers.stranger, owner.id))).toEqual(missing);
    expect(await errorOf(facades.accounts.find(asSystem, 'nobody'))).toEqual(missing);
  });

  it('lists members of an organization for its members', async () => {
    const organization = await createOrganization(app, { owner });
    const { body } = await app.as(owner).get(`/accounts/${organization.id}/members`);
    const member = await callerOf(app, owner);
    expect(await facades.accounts.members(member, organization.id)).toEqual(body);
    expect(await facades.accounts.members(asSystem, organization.id)).toEqual(body);
    const denied = await app.as(stranger).get(`/accounts/${organization.id}/members`);
    expect(await errorOf(facades.accounts.members(callers.stranger, organization.id))).toEqual({
      kind: 'not_found',
      message: denied.body.error,
    });
  });

  it('manages members, invitations and keys of an organization for its owners, as REST does', async () => {
    const organization = await createOrganization(app, { owner });
    const path = `/accounts/${organization.id}`;
    const { accounts } = facades;
    const lead = await callerOf(app, owner);
    expect(await accounts.findOrganization(lead, organization.name)).toMatchObject({
      id: organization.id,
      role: 'owner',
    });
    expect(await accounts.findOrganization(callers.stranger, organization.id)).toBeNull();
    expect((await accounts.inviteMember(lead, organization.id, 'guest')).url).toContain('/invite?token=');
    const open = await accounts.memberInvitations(lead, organization.id);
    expect(open).toEqual((await app.as(owner).get(`${path}/invitations`)).body);
    const { key } = await accounts.createKey(lead, organization.id, { name: 'ci' });
    expect((await app.as({ key }).get('/accounts/me')).body.id).toBe(organization.id);
    const keys = await accounts.keys(lead, organization.id);
    expect(keys).toEqual((await app.as(owner).get(`${path}/api-keys`)).body);
    const id = keys.apiKeys.find(({ name }) => name === 'ci')?.id ?? '';
    const [invitation] = open.invitations;

    const guest = await app.account();
    await app.as(app.operator).put(`${path}/members/${guest.id}`, { role: 'guest' });
    const asGuest = await callerOf(app, guest);
    const attempts = (caller: Caller) => [
      accounts.inviteMember(caller, organization.id, 'owner'),
      accounts.memberInvitations(caller, organization.id),
      accounts.revokeMemberInvitation(caller, organization.id, invitation?.id ?? ''),
      accounts.createKey(caller, organization.id, { name: 'theirs' }),
      accounts.keys(caller, organization.id),
      accounts.revokeKey(caller, organization.id, id),
      accounts.removeMember(caller, organization.id, owner.id),
      facades.grants.listGiven(caller, organization.id),
      facades.grants.revokeGiven(caller, organization.id, id),
      facades.grants.listRequests(caller, organization.id),
      facades.namespaces.claim(caller, uniqueName('ns'), { organizationId: organization.id }),
    ];
    for (const [caller, kind] of [
      [callers.stranger, 'not_found'],
      [asGuest, 'forbidden'],
    ] as const) {
      const kinds = await Promise.all(attempts(caller).map(async (call) => (await errorOf(call)).kind));
      // A name of an account is not hidden from who claims a namespace for it.
      expect(kinds.slice(0, -1)).toEqual(Array(10).fill(kind));
      expect(kinds.at(-1)).toBe('forbidden');
    }
    const reader = { ...lead, scopes: [{ level: 'read' as const, namespace: null }] };
    expect((await errorOf(accounts.inviteMember(reader, organization.id, 'guest'))).kind).toBe('forbidden');
    expect((await errorOf(facades.namespaces.claim(reader, uniqueName('ns')))).kind).toBe('forbidden');

    await accounts.revokeMemberInvitation(lead, organization.id, invitation?.id ?? '');
    await accounts.revokeKey(lead, organization.id, id);
    expect((await app.as({ key }).get('/accounts/me')).status).toBe(401);
    expect(await accounts.removeMember(asGuest, organization.id, guest.id)).toMatchObject({ success: true });
    expect((await app.as(owner).get(`${path}/members`)).body.members).toHaveLength(1);
    expect((await accounts.memberInvitations(lead, organization.id)).invitations).toEqual([]);
  });

  it('returns whether a caller can act on a target', async () => {
    const [, name] = server.split('/');
    const target = { kind: 'server', namespace, name } as const;
    const may = (caller: Caller, ...actions: Parameters<typeof facades.accounts.may>[1][]) =>
      Promise.all(actions.map((action) => facades.accounts.may(caller, action, target)));
    expect(await may(callers.owner, 'discover', 'call', 'manage')).toEqual([true, true, true]);
    expect(await may(callers.stranger, 'discover', 'call', 'manage')).toEqual([false, false, false]);
    await app
      .as(owner)
      .post(`${pathOf(server, '/grants')}`, { account: stranger.name, level: 'call' })
      .expect(201);
    await until(async () => (await may(callers.stranger, 'call'))[0], 'the grant opens it');
    expect(await may(callers.stranger, 'discover', 'call', 'manage')).toEqual([true, true, false]);
    expect(await facades.accounts.may(callers.owner, 'call', { ...target, name: uniqueName() })).toBe(false);
    const reader = { ...callers.owner, scopes: [{ level: 'read' as const, namespace: null }] };
    expect(await may(reader, 'read', 'call')).toEqual([true, false]);
    await app.as(app.operator).put(pathOf(server, '/suspension'), { reason: 'spam' }).expect(200);
    expect(await may(callers.owner, 'call', 'manage')).toEqual([false, true]);
    await app.as(app.operator).put(pathOf(server, '/suspension'), { reason: null }).expect(200);
    const { body } = await app.as(owner).get(pathOf(server, '/grants'));
    for (const { id } of body.grants as { id: string }[]) await app.as(owner).delete(pathOf(server, `/grants/${id}`));
  });
});

describe('Connections', () => {
  it('finds a connection and its status as REST does', async () => {
    const { body } = await app.as(owner).get(connectionPath);
    expect(await facades.connections.find(callers.owner, connection)).toEqual(body);
    expect(await facades.connections.find(asSystem, connection)).toEqual(body);
    expect(await facades.connections.status(callers.owner, connection)).toEqual(body.status);
    const hidden = await app.as(stranger).get(connectionPath);
    const missing = { kind: 'not_found', message: hidden.body.message };
    expect(await errorOf(facades.connections.find(callers.stranger, connection))).toEqual(missing);
    expect(await errorOf(facades.connections.status(callers.stranger, connection))).toEqual(missing);
    expect((await errorOf(facades.connections.find(asSystem, `${uniqueName()}/none`))).kind).toBe('not_found');
  });

  it('sends requests to the MCP server with the rights of the caller', async () => {
    const ping = { method: 'ping', timeoutMs: 10_000 };
    const reader = { ...callers.owner, scopes: [{ level: 'read' as const, namespace: null }] };
    for (const [caller, options] of [[callers.owner], [asSystem], [reader, { readOnly: true }]] as const) {
      const channel = await facades.connections.channel(caller, connection, options);
      expect(resultOf(await channel.request(ping))).toMatchObject({});
    }
    expect((await errorOf(facades.connections.channel(reader, connection))).kind).toBe('forbidden');
    const { body } = await app.as(stranger).get(connectionPath);
    const missing = { kind: 'not_found', message: body.message };
    for (const readOnly of [true, false]) {
      const opened = facades.connections.channel(callers.stranger, connection, { readOnly });
      expect([readOnly, await errorOf(opened)]).toEqual([readOnly, missing]);
    }
  });
});

describe('Servers', () => {
  it('finds a server with the rights of the caller', async () => {
    const ref = await facades.servers.find(callers.owner, server);
    expect(ref).toMatchObject({ namespace, visibility: 'private', ownerId: owner.id });
    expect(await facades.servers.find(asSystem, server)).toEqual(ref);
    const hidden = await app.as(stranger).get(`/servers/${encodeURIComponent(server)}`);
    const missing = { kind: 'not_found', message: hidden.body.error };
    for (const call of ['find', 'detail', 'contract'] as const)
      expect([call, await errorOf(facades.servers[call](callers.stranger, server))]).toEqual([call, missing]);
  });

  it('returns the contract', async () => {
    const tools = ['echo', 'add'].map((name) => ({ name, inputSchema: { type: 'object' } }));
    await app.database.query("UPDATE servers SET snapshot = jsonb_set(snapshot, '{tools}', $1) WHERE id = $2", [
      JSON.stringify(tools),
      (await facades.servers.find(asSystem, server)).id,
    ]);
    expect((await facades.servers.contract(callers.owner, server))?.tools).toEqual(tools);
    expect((await facades.servers.contract(asSystem, server))?.tools).toEqual(tools);
    const grant = { account: stranger.name, level: 'call', tools: { allow: ['add'] } };
    await app.as(owner).post(pathOf(server, '/grants'), grant).expect(201);
    expect((await facades.servers.contract(callers.stranger, server))?.tools).toEqual([tools[1]]);
  });
});

describe('Namespaces and Grants', () => {
  it('claim, list and revoke what an organization owns, as REST does', async () => {
    const organization = await createOrganization(app, { owner });
    const lead = await callerOf(app, owner);
    const name = uniqueName('ns');
    const { namespaces, grants } = facades;
    expect(await namespaces.claim(lead, name, { organizationId: organization.id })).toMatchObject({ name });
    const listed = await namespaces.list(lead, { ownerId: organization.id });
    expect(listed.namespaces).toMatchObject([{ name }]);
    expect((await errorOf(namespaces.claim(callers.stranger, name))).kind).toBe('conflict');

    const shared = await createServer(app, owner, { namespace: name, visibility: 'restricted' });
    await app.as(stranger).post(pathOf(shared, '/access-requests'), { text: 'Please.' }).expect(201);
    expect((await grants.listRequests(lead, organization.id)).requests).toMatchObject([{ qualifiedName: shared }]);
    const grant = { account: stranger.name, level: 'call' };
    await app.as(owner).post(pathOf(shared, '/grants'), grant).expect(201);
    const given = await grants.listGiven(lead, organization.id);
    expect(given).toEqual((await app.as(owner).get(`/accounts/${organization.id}/grants/given`)).body);
    await grants.revokeGiven(lead, organization.id, given.grants[0]?.id ?? '');
    expect((await grants.listGiven(lead, organization.id)).grants).toEqual([]);
  });
});

describe('Http', () => {
  it('sends a request, and returns the whole response', async () => {
    const sent = await facades.http.fetch(upstream.url, { method: 'POST', body: '{"not":"JSON-RPC"}' });
    expect(sent.status).toBeGreaterThanOrEqual(400);
    const fetched = await facades.http.fetch(`${app.url}/openapi.json`, { bytesMax: 10_000_000 });
    expect([fetched.status, fetched.headers.get('content-type')]).toEqual([200, expect.stringContaining('json')]);
    expect(await fetched.json()).toMatchObject({ openapi: expect.any(String) });
    await expect(facades.http.fetch(`${app.url}/openapi.json`, { bytesMax: 1_000 })).rejects.toThrow(
      'exceeds 1000 bytes',
    );
  });

  it('refuses addresses that the egress policy closes', async () => {
    for (const url of [
      'http://10.0.0.1/',
      'http://169.254.169.254/latest',
      'file:///etc/passwd',
      'http://a:b@localhost/',
    ])
      expect([url, (await errorOf(facades.http.fetch(url))).kind]).toEqual([url, 'invalid']);
  });
});

describe('Secrets', () => {
  it('open only for the module and the owner that they were sealed for', () => {
    const sealed = facades.secrets.seal('billing', 'hunter2', 'row-1');
    expect(sealed).not.toContain('hunter2');
    expect(facades.secrets.open('billing', sealed, 'row-1')).toBe('hunter2');
    expect(() => facades.secrets.open('stars', sealed, 'row-1')).toThrow('does not open');
    expect(() => facades.secrets.open('billing', sealed, 'row-2')).toThrow('does not open');
  });
});
