import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Caller } from '../../../src/extension.js';
import { testAccount, uniqueName } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishExternal } from '../../support/releases/current-releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { callerOf, errorOf, facadeApp } from './facade-app.js';
import { Facades } from './facades.module.js';

const app = facadeApp();
const owner = testAccount(app);
const manager = testAccount(app);
const stranger = testAccount(app);
afterAll(() => upstream.close());

let facades: Facades;
let callers: Record<'owner' | 'manager' | 'stranger', Caller>;
let upstream: Upstream;
let namespace: string;
/** The qualified name of a restricted server; a connection that `manager` manages, and its path. */
let server: string;
let connection: string;
let path: string;

beforeAll(async () => {
  facades = app.get(Facades);
  callers = {
    owner: await callerOf(app, owner),
    manager: await callerOf(app, manager),
    stranger: await callerOf(app, stranger),
  };
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace, visibility: 'restricted' });
  ({ path } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace }));
  connection = path.replace('/connect/', '');
  await app.as(owner).post(`${path}/grants`, { account: manager.name, level: 'manage' }).expect(201);
});

describe('Connections', () => {
  it('creates, changes and deletes connections with the rights of the caller', async () => {
    const { connections } = facades;
    const id = uniqueName('conn');
    const { connectionId } = await connections.create(callers.owner, namespace, { mcpUrl: upstream.url }, { id });
    const name = `${namespace}/${connectionId}`;
    expect(connectionId).toBe(id);
    const set = await connections.set(callers.owner, name, { name: 'Renamed' });
    expect(set).toMatchObject({ created: false, connection: { name: 'Renamed' } });
    expect((await errorOf(connections.set(callers.owner, name, { name: 1 }))).kind).toBe('invalid');
    const rejected = await Promise.all(
      [
        connections.create(callers.stranger, namespace, { mcpUrl: upstream.url }),
        connections.set(callers.stranger, name, { name: 'Theirs' }),
        connections.delete(callers.stranger, name),
      ].map(errorOf),
    );
    expect(new Set(rejected.map(({ kind }) => kind))).toEqual(new Set(['not_found']));
    await app.as(owner).post(`/connect/${name}/grants`, { account: manager.name, level: 'manage' }).expect(201);
    expect((await errorOf(connections.delete(callers.manager, name))).kind).toBe('forbidden');
    await connections.delete(callers.owner, name);
    expect((await errorOf(connections.find(callers.owner, name))).kind).toBe('not_found');
  });

  it('shows the calls, steps and tools of a connection to those that can read them', async () => {
    const { connections, tools } = facades;
    await app.as(owner).post(`${path}/.tools/echo`, { message: 'listed' }).expect(200);
    for (const caller of [callers.owner, callers.manager]) {
      expect((await connections.calls(caller, connection)).total).toBe(1);
      expect((await connections.diagnose(caller, connection)).steps.length).toBeGreaterThan(1);
      expect(await connections.command(caller, connection)).toBeNull();
      const { tools: listed } = await tools.list(caller, connection);
      expect(listed).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'echo' })]));
    }
    const rejected = await Promise.all(
      [
        connections.calls(callers.stranger, connection),
        connections.diagnose(callers.stranger, connection),
        connections.command(callers.stranger, connection),
        tools.list(callers.stranger, connection),
      ].map(errorOf),
    );
    expect(new Set(rejected.map(({ kind }) => kind))).toEqual(new Set(['not_found']));
  });

  it('probes a server for a caller that can write connections', async () => {
    const { connections } = facades;
    const reader = { ...callers.owner, scopes: [{ level: 'read' as const, namespace: null }] };
    expect((await connections.probe(callers.owner, { mcpUrl: upstream.url })).state).not.toBe('error');
    expect((await errorOf(connections.probe(callers.owner, {}))).kind).toBe('invalid');
    expect((await errorOf(connections.probe(reader, { mcpUrl: upstream.url }))).kind).toBe('forbidden');
  });
});

describe('Grants', () => {
  it('requests access, and grants or refuses it for owners', async () => {
    const { grants, servers } = facades;
    expect(await servers.mayCall(callers.stranger, server)).toBe(false);
    await grants.request(callers.stranger, server, 'Please.');
    const [mine] = (await grants.listOwnRequests(callers.stranger)).requests;
    expect(mine).toMatchObject({ qualifiedName: server, state: 'open' });
    expect((await grants.listServerRequests(callers.owner, server)).requests).toEqual([mine]);
    const id = mine?.id ?? '';
    const decision = { grant: { account: stranger.name, level: 'call' } };
    const rejected = await Promise.all(
      [
        grants.listServerRequests(callers.stranger, server),
        grants.decideRequest(callers.stranger, server, id, decision),
      ].map(errorOf),
    );
    expect(new Set(rejected.map(({ kind }) => kind))).toEqual(new Set(['not_found']));
    expect((await errorOf(grants.decideRequest(callers.owner, server, 'none', decision))).kind).toBe('not_found');
    await grants.decideRequest(callers.owner, server, id, decision);
    expect(await servers.mayCall(callers.stranger, server)).toBe(true);
    expect((await grants.listOwnRequests(callers.stranger)).requests).toMatchObject([{ state: 'granted' }]);
  });

  it('lists, sets and revokes grants of a target for its administrators', async () => {
    const { grants, accounts } = facades;
    const [space = '', name = ''] = connection.split('/');
    const target = { kind: 'connection', namespace: space, name } as const;
    expect(await accounts.target(callers.owner, 'administer', target)).toMatchObject({ ...target, ownerId: owner.id });
    await grants.set(callers.owner, target, { account: stranger.name, level: 'call' });
    const { grants: listed } = await grants.list(callers.owner, target);
    expect(listed.map(({ account }) => account?.name)).toEqual([stranger.name, manager.name]);
    for (const caller of [callers.manager, callers.stranger]) {
      expect(await accounts.target(caller, 'administer', target)).toBeNull();
      const rejected = await Promise.all(
        [
          grants.list(caller, target),
          grants.set(caller, target, { account: stranger.name, level: 'manage' }),
          grants.revoke(caller, target, listed[0]?.id ?? ''),
        ].map(errorOf),
      );
      expect(rejected).toEqual(Array(3).fill({ kind: 'not_found', message: 'Target not found' }));
    }
    expect((await errorOf(grants.revoke(callers.owner, target, 'none'))).kind).toBe('not_found');
    await grants.revoke(callers.owner, target, listed[0]?.id ?? '');
    expect((await grants.list(callers.owner, target)).pagination.totalCount).toBe(1);
  });
});

describe('Servers', () => {
  it('finds servers by search and by address, and hides private ones', async () => {
    const { servers } = facades;
    const hidden = await createServer(app, owner, { namespace, visibility: 'private' });
    for (const name of [server, hidden]) await publishExternal(app, name, upstream.url);
    const { slug } = await servers.find(callers.owner, hidden);
    expect(await servers.findBySlug(callers.owner, slug)).toMatchObject({ slug });
    expect(await servers.findBySlug(callers.stranger, slug)).toBeNull();
    const search = (caller: Caller) => servers.search(caller, { namespace, fields: ['qualifiedName'] });
    expect((await search(callers.stranger)).servers).toEqual([{ qualifiedName: server }]);
    expect((await errorOf(servers.mayCall(callers.stranger, hidden))).kind).toBe('not_found');
    await app.as(app.operator).put(pathOf(server, '/suspension'), { reason: 'spam' }).expect(200);
    expect(await servers.mayCall(callers.owner, server)).toBe(true);
  });
});
