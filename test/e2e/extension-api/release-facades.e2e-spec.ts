import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asSystem, type Caller, type FacadeCaller, type NewRelease } from '../../../src/extension.js';
import { testAccount, uniqueName } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { insertRelease, readRelease, releaseIn } from '../../support/releases/releases.js';
import { startGuarded } from '../../support/special-upstreams/guarded-upstream.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { callerOf, errorOf, facadeApp } from './facade-app.js';
import { Facades } from './facades.module.js';

const app = facadeApp();
const owner = testAccount(app);
const stranger = testAccount(app);

let facades: Facades;
let callers: Record<'owner' | 'stranger', Caller>;
let upstream: Upstream;
let external: NewRelease;
let server: string;

beforeAll(async () => {
  facades = app.get(Facades);
  callers = { owner: await callerOf(app, owner), stranger: await callerOf(app, stranger) };
  upstream = await startUpstream();
  external = { type: 'external', upstreamUrl: upstream.url };
  server = await createServer(app, owner, { visibility: 'private' });
});
afterAll(() => upstream.close());

const status = async (id: string, expected: string, name = server) => releaseIn(app, owner, name, id, expected);

/** Publishes the upstream and waits for the end. */
async function publish(caller: FacadeCaller = callers.owner): Promise<string> {
  const { deploymentId } = await facades.releases.publish(caller, server, external);
  await status(deploymentId, 'SUCCESS');
  return deploymentId;
}

describe('Releases', () => {
  it('publishes a server by its URL, for the owner and for the service itself, as one of the owner', async () => {
    for (const caller of [callers.owner, asSystem] as const) {
      const id = await publish(caller);
      const body = await readRelease(app, owner, server, id);
      expect(body).toMatchObject({ isCurrent: true, createdBy: { id: owner.id } });
      expect(await facades.releases.get(caller, server, id)).toEqual(body);
      expect(await facades.releases.get(caller, server, 'latest')).toEqual(body);
      const listed = await app.as(owner).get(pathOf(server, '/releases?pageSize=1'));
      expect(await facades.releases.list(caller, server, { pageSize: 1 })).toEqual(listed.body);
    }
  });

  it('publishes a pasted TypeScript file, which answers calls', async () => {
    const contents = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
      export default () => {
        const server = new McpServer({ name: 'pasted', version: '1.0.0' });
        server.registerTool('hello', { description: 'Greets' }, async () => ({ content: [{ type: 'text', text: 'hi' as string }] }));
        return server.server;
      };`;
    const name = await createServer(app, owner);
    const source = { path: 'server.ts', contents };
    const { deploymentId } = await facades.releases.publish(callers.owner, name, { type: 'hosted' }, { source });
    await status(deploymentId, 'SUCCESS', name);
    expect(textOf(await facades.tools.call(callers.owner, { server: name }, 'hello', {}))).toBe('hi');
  });

  it('publishes a file of a module and a bundle, with the checks and limits of a form', async () => {
    const name = await createServer(app, owner);
    const send = (...args: [NewRelease, object?]) => facades.releases.publish(callers.owner, name, ...args);
    const module = Buffer.from('export default { async fetch() { return new Response("no MCP"); } };');
    const hosted = await send({ type: 'hosted' }, { module });
    expect(await status(hosted.deploymentId, 'FAILURE', name)).toMatchObject({ lastError: expect.any(String) });
    const bundle = await send({ type: 'stdio', runtime: 'node' }, { bundle: await bundleOf() });
    expect(await status(bundle.deploymentId, 'SUCCESS', name)).toMatchObject({ type: 'stdio' });
    const refused: [message: string, ...Parameters<typeof send>][] = [
      ['Missing required part: module', { type: 'hosted' }],
      ['A release of type external has no part "bundle"', external, { bundle: module }],
      ['upstreamUrl is required', { type: 'external' } as NewRelease],
      ['type must be one of external, hosted, stdio', { type: 'other' } as unknown as NewRelease],
      ['source.entrypoint must name a .ts', { type: 'hosted' }, { source: { path: 'a.py', contents: 'x' } }],
      ['cannot be compiled: one fault', { type: 'hosted' }, { source: { path: 'a.ts', contents: 'export default (' } }],
      ['configSchema.type must be "object"', { ...external, configSchema: { type: 'array' } }],
    ];
    for (const [message, ...args] of refused) {
      expect(await errorOf(send(...args))).toEqual({ kind: 'invalid', message: expect.stringContaining(message) });
    }
    const large = { module: Buffer.alloc(10 * 1024 * 1024 + 1) };
    expect(await errorOf(send({ type: 'hosted' }, large))).toMatchObject({ kind: 'too_large' });
    expect((await facades.releases.list(callers.owner, name)).pagination.totalCount).toBe(2);
  });

  it('shows what a paused release waits for, and resumes it', async () => {
    const guarded = await startGuarded({ wants: 'oauth' });
    try {
      const payload = { type: 'external', upstreamUrl: guarded.url } as const;
      const { deploymentId: id } = await facades.releases.publish(callers.owner, server, payload);
      const { setupUrl } = await status(id, 'AUTH_REQUIRED');
      expect(await facades.releases.get(callers.owner, server, id)).toMatchObject({
        status: 'AUTH_REQUIRED',
        setupUrl,
      });
      const seen = await facades.releases.get(asSystem, server, id);
      expect([setupUrl, JSON.stringify(seen)]).toEqual([expect.any(String), expect.not.stringContaining('/setup/')]);
      guarded.unlock();
      expect(await facades.releases.resume(callers.owner, server, id)).toEqual({ status: 'WORKING', deploymentId: id });
      await status(id, 'SUCCESS');
    } finally {
      await guarded.close();
    }
    const { body } = await app.as(owner).post(pathOf(server, '/releases/latest/resume'));
    expect(await errorOf(facades.releases.resume(callers.owner, server, 'latest'))).toEqual({
      kind: 'invalid',
      message: (body as { error: string }).error,
    });
  });

  it('follows the log line by line', async () => {
    const id = await publish();
    const { logs } = await readRelease(app, owner, server, id);
    const whole = await facades.releases.log(callers.owner, server, id);
    expect(whole).toMatchObject({ status: 'SUCCESS', lines: logs });
    expect(await facades.releases.log(asSystem, server, id, 'nonsense')).toEqual(whole);
    expect(await facades.releases.log(asSystem, server, id, whole.after)).toEqual({ ...whole, lines: [] });
    const before = String(Number(whole.after) - 1);
    expect((await facades.releases.log(callers.owner, server, id, before)).lines).toEqual(logs.slice(-1));
  });

  it('rolls back to an earlier release', async () => {
    for (const caller of [callers.owner, asSystem] as const) {
      const earlier = await publish();
      const later = await publish();
      expect(await facades.releases.rollBack(caller, server, earlier)).toMatchObject({ id: earlier, isCurrent: true });
      expect((await app.as(owner).get(pathOf(server, `/releases/${later}`))).body).toMatchObject({ isCurrent: false });
    }
    const failed = await insertRelease(app, server, { status: 'FAILURE' });
    expect((await errorOf(facades.releases.rollBack(callers.owner, server, failed))).kind).toBe('conflict');
  });

  it('is closed to other accounts and to keys with fewer rights, as REST is', async () => {
    const { stranger: other } = callers;
    const { releases } = facades;
    const calls: [method: 'get' | 'post', path: string, call: (caller: Caller) => Promise<unknown>][] = [
      ['get', '', (caller) => releases.list(caller, server)],
      ['get', '/latest', (caller) => releases.get(caller, server, 'latest')],
      ['get', '/latest', (caller) => releases.log(caller, server, 'latest')],
      ['post', '/latest/resume', (caller) => releases.resume(caller, server, 'latest')],
      ['post', '/latest/promote', (caller) => releases.rollBack(caller, server, 'latest')],
    ];
    for (const [method, path, call] of calls) {
      const { body } = await app.as(stranger)[method](pathOf(server, `/releases${path}`));
      expect([path, await errorOf(call(other))]).toEqual([path, { kind: 'not_found', message: body.error }]);
    }
    const message = 'Server not found';
    expect(await errorOf(releases.publish(other, server, external))).toEqual({ kind: 'not_found', message });
    expect((await errorOf(releases.publish(asSystem, `${uniqueName()}/none`, external))).kind).toBe('not_found');
    const reader: Caller = { ...callers.owner, scopes: [{ level: 'read', namespace: null }] };
    expect((await releases.list(reader, server)).releases.length).toBeGreaterThan(0);
    const writes = [
      () => releases.publish(reader, server, external),
      ...calls.slice(3).map(
        ([, , call]) =>
          () =>
            call(reader),
      ),
    ];
    for (const write of writes) expect((await errorOf(write())).kind).toBe('forbidden');
  });
});

describe('Servers', () => {
  const set = (caller: FacadeCaller, name: string) =>
    facades.servers.setSecret(caller, name, { name: 'TOKEN', value: 'hush' });

  it('creates a server, describes, changes and deletes it', async () => {
    const namespace = await createNamespace(app, owner);
    for (const caller of [callers.owner, asSystem] as const) {
      const name = `${namespace}/${uniqueName('made')}`;
      const created = await facades.servers.create(caller, name, { displayName: 'Made', visibility: 'private' });
      expect(created).toMatchObject({ namespace, displayName: 'Made' });
      await facades.servers.update(caller, name, { description: 'By a module.', visibility: 'restricted' });
      const { body } = await app.as(owner).get(pathOf(name));
      expect(body).toMatchObject({ description: 'By a module.', visibility: 'restricted' });
      expect(await facades.servers.detail(caller, name)).toEqual(body);
      expect(await facades.servers.delete(caller, name)).toMatchObject({ success: true });
      expect((await app.as(owner).get(pathOf(name))).status).toBe(404);
    }
  });

  it('stores and deletes secrets, and warns while every account uses them', async () => {
    for (const caller of [callers.owner, asSystem] as const) {
      expect(await set(caller, server)).toEqual({ warning: null });
      expect(await facades.servers.secrets(caller, server)).toEqual([{ name: 'TOKEN', type: 'secret_text' }]);
      expect(await facades.servers.deleteSecret(caller, server, 'TOKEN')).toEqual({ success: true });
      expect(await facades.servers.secrets(caller, server)).toEqual([]);
    }
    const open = await createServer(app, owner, { visibility: 'public' });
    expect(await set(callers.owner, open)).toEqual({ warning: expect.stringContaining('The server is public') });
  });

  it('changes runtime settings', async () => {
    for (const [caller, egressAllow] of [
      [callers.owner, ['api.example.com']],
      [asSystem, null],
    ] as const) {
      const changed = await facades.servers.updateRuntime(caller, server, {
        egressAllow: egressAllow && [...egressAllow],
      });
      expect(changed).toEqual({ egressAllow, logPayloads: false });
      expect(await facades.servers.runtime(caller, server)).toEqual(changed);
    }
  });

  it('checks values as REST does', async () => {
    const { servers } = facades;
    const { owner: caller } = callers;
    const invalid = [
      () => servers.create(caller, server, { displayName: '' }),
      () => servers.update(caller, server, { displayName: 'x'.repeat(256) }),
      () => servers.update(caller, server, { visibilty: 'public' } as object),
      () => servers.setSecret(caller, server, { name: '1st', value: 'x' }),
      () => servers.updateRuntime(caller, server, { egressAllow: ['http://not a host'] }),
    ];
    for (const call of invalid) expect((await errorOf(call())).kind).toBe('invalid');
  });

  it('is closed to other accounts as REST is', async () => {
    const { servers } = facades;
    const { stranger: caller } = callers;
    const [namespace] = server.split('/');
    const body = { name: 'TOKEN', value: 'hush' };
    const calls: [
      method: 'get' | 'put' | 'patch' | 'delete',
      name: string,
      path: string,
      call: () => Promise<unknown>,
    ][] = [
      ['get', server, '/secrets', () => servers.secrets(caller, server)],
      ['put', server, '/secrets', () => set(caller, server)],
      ['delete', server, '/secrets/TOKEN', () => servers.deleteSecret(caller, server, 'TOKEN')],
      ['get', server, '/runtime', () => servers.runtime(caller, server)],
      ['patch', server, '/runtime', () => servers.updateRuntime(caller, server, {})],
      ['patch', server, '', () => servers.update(caller, server, {})],
      ['put', `${namespace}/new`, '', () => servers.create(caller, `${namespace}/new`)],
      ['delete', server, '', () => servers.delete(caller, server)],
    ];
    for (const [method, name, path, call] of calls) {
      const response = await app.as(stranger)[method](pathOf(name, path), method === 'put' && path ? body : undefined);
      const { kind, message } = await errorOf(call());
      expect([method, path, kind === 'not_found' ? 404 : 403, message]).toEqual([
        method,
        path,
        response.status,
        response.body.error,
      ]);
    }
    expect((await errorOf(servers.create(asSystem, `${uniqueName()}/new`))).kind).toBe('not_found');
    expect((await facades.servers.detail(callers.owner, server)).visibility).toBe('private');
  });
});
