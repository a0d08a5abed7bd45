import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { NotFoundError, PermissionDeniedError, Smithery, toFile } from '@smithery/api';
import { testAccount, testApp, uniqueName, type TestAccount } from '../support/app.js';
import { startAuthorizationServer, type AuthorizationServer } from '../support/people/authorization-server.js';
import { personAt } from '../support/people/credentials.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { createNamespace, createServer } from '../support/factories.js';
import { images } from '../support/releases/icons.js';
import { bundledTools, packBundle } from '../support/releases/mcpb.js';
import { releaseIn } from '../support/releases/releases.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { releaseServer } from '../support/database/server-rows.js';
import { longVerifies, verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

const app = testApp();
const owner = testAccount(app);
let client: Smithery;
let namespace: string;
let everything: EverythingServer;
let upstream: Upstream;
let authorization: AuthorizationServer;

const clientOf = ({ key }: TestAccount): Smithery =>
  new Smithery({ baseURL: app.url, connectBaseURL: app.url, apiKey: key });

beforeAll(async () => {
  [everything, upstream, authorization] = await Promise.all([
    startEverything(),
    startUpstream(),
    startAuthorizationServer(),
  ]);
  client = clientOf(owner);
  namespace = await createNamespace(app, owner);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([app?.close(), everything?.close(), upstream?.close(), authorization?.close()]);
}, SLOW_MS);

const external = (upstreamUrl: string, more: object = {}) => ({
  payload: JSON.stringify({ type: 'external', upstreamUrl, ...more }),
});

/** The events of a stream as the client decodes them: the parsed data of each. */
async function eventsOf(stream: AsyncIterable<unknown>): Promise<Record<string, unknown>[]> {
  const events: Record<string, unknown>[] = [];
  for await (const event of stream) events.push(event as Record<string, unknown>);
  return events;
}

describe('@smithery/api 0.68 in the registry', () => {
  verifies('contract:published-client', 'creates, changes, lists to the end and deletes servers', async () => {
    const namespace = await createNamespace(app, owner);
    const names = ['one', 'two', 'three'].map((name) => `${namespace}/${name}`);
    for (const name of names)
      await client.servers.create(name, { displayName: name, description: 'Made by a client.' });
    const changed = await client.servers.update(`${namespace}/one`, {
      displayName: 'First',
      homepage: 'https://one.example',
    });
    expect(changed).toMatchObject({ success: true });
    const qualifiedNames: string[] = [];
    for await (const { qualifiedName } of client.servers.list({ namespace, pageSize: 2 }))
      qualifiedNames.push(qualifiedName);
    expect(qualifiedNames.toSorted()).toEqual(names.toSorted());
    const [first] = (await client.servers.list({ q: 'First', namespace })).servers;
    expect(first).toMatchObject({
      qualifiedName: `${namespace}/one`,
      displayName: 'First',
      homepage: 'https://one.example',
    });

    expect(await client.servers.get(`${namespace}/one`)).toMatchObject({
      displayName: 'First',
      connections: [],
      tools: null,
    });
    for (const name of names) expect(await client.servers.delete(name)).toMatchObject({ success: true });
    await expect(client.servers.get(`${namespace}/one`)).rejects.toBeInstanceOf(NotFoundError);
  });

  verifies('contract:published-client', 'moves a server to another namespace', async () => {
    const target = await createNamespace(app, owner);
    const name = await createServer(app, owner, { namespace, server: uniqueName('moved') });
    const moved = { targetNamespace: target, targetOrganizationId: owner.id, targetSlug: 'here' };
    expect(await client.servers.transfer(name, moved)).toMatchObject({ qualifiedName: `${target}/here` });
    expect(await client.servers.get(`${target}/here`)).toMatchObject({ qualifiedName: `${target}/here` });
  });

  verifies('contract:published-client', 'uploads, gets and deletes an icon', async () => {
    const name = await createServer(app, owner, { namespace });
    const png = images['image/png'];
    const body = new FormData();
    body.set('file', await toFile(png, 'icon.png', { type: 'image/png' }));
    const { iconUrl: uploaded } = await client.servers.icon.upload(name, { body });
    const icon = await client.servers.icon.get(name);
    expect(icon.headers.get('content-type')).toBe('image/png');
    expect(Buffer.from(await icon.arrayBuffer()).equals(png)).toBe(true);
    const { iconUrl } = await client.servers.get(name);
    for (const url of [uploaded, iconUrl ?? '']) {
      expect((await fetch(url.replace(app.env.baseUrl, app.url))).status).toBe(200);
    }
    expect(await client.servers.icon.delete(name)).toEqual({ success: true });
    await expect(client.servers.icon.get(name)).rejects.toBeInstanceOf(NotFoundError);
  });

  verifies('contract:published-client', 'sets, lists and deletes secrets, of its own servers only', async () => {
    const name = await createServer(app, owner, { namespace });
    expect(await client.servers.secrets.set(name, { name: 'API_KEY', value: 'v' })).toMatchObject({ success: true });
    expect(await client.servers.secrets.list(name)).toEqual([{ name: 'API_KEY', type: expect.any(String) }]);
    const stranger = clientOf(await app.account());
    await expect(stranger.servers.secrets.list(name)).rejects.toBeInstanceOf(NotFoundError);
    await expect(stranger.servers.update(name, {})).rejects.toBeInstanceOf(PermissionDeniedError);
    expect(await client.servers.secrets.delete('API_KEY', { qualifiedName: name })).toMatchObject({ success: true });
    expect(await client.servers.secrets.list(name)).toEqual([]);
  });

  verifies('contract:published-client', 'renames the address a server runs at', async () => {
    const qualifiedName = await createServer(app, owner, { namespace });
    const { domains } = await client.servers.domains.list(qualifiedName);
    expect(domains).toHaveLength(1);
    const subdomain = uniqueName('sub');
    await client.servers.domains.update('managed', { qualifiedName, subdomain });
    expect(JSON.stringify(await client.servers.domains.list(qualifiedName))).toContain(subdomain);
    await client.servers.releases.deploy(qualifiedName, external(everything.url));
    await releaseIn(app, owner, qualifiedName, 'latest', 'SUCCESS');
    expect(await client.servers.get(qualifiedName)).toMatchObject({
      deploymentUrl: `${app.env.baseUrl}/run/${subdomain}`,
    });
  });

  verifies('contract:published-client', 'finds namespaces by the beginning of their names', async () => {
    const prefix = uniqueName('sdk');
    const stranger = await app.account();
    for (const suffix of ['a', 'b', 'c']) await createNamespace(app, stranger, `${prefix}-${suffix}`);
    await releaseServer(app, await createServer(app, stranger, { namespace: `${prefix}-b` }));
    const names: string[] = [];
    for await (const { name } of client.namespaces.list({ q: prefix, pageSize: 2 })) names.push(name);
    expect(names.toSorted()).toEqual([`${prefix}-a`, `${prefix}-b`, `${prefix}-c`]);
    const withServers = await client.namespaces.list({ q: prefix, hasServers: 'true' });
    expect(withServers.namespaces.map(({ name }) => name)).toEqual([`${prefix}-b`]);
  });
});

describe('@smithery/api 0.68 with releases', () => {
  verifies(
    'contract:published-client',
    'publishes a URL, follows the stream, and reads the release and the log',
    async () => {
      const qualifiedName = await createServer(app, owner, { namespace });
      const made = await client.servers.releases.deploy(qualifiedName, external(everything.url));
      expect(made).toMatchObject({ deploymentId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      const events = await eventsOf(await client.servers.releases.stream(made.deploymentId, { qualifiedName }));
      const release = await client.servers.releases.get(made.deploymentId, { qualifiedName });
      expect(release).toMatchObject({ id: made.deploymentId, status: 'SUCCESS', upstreamUrl: everything.url });
      const streamed = events.flatMap(({ logs = [], message }) => [
        ...(logs as { message: string }[]).map((line) => line.message),
        ...(typeof message === 'string' ? [message] : []),
      ]);
      expect(streamed).toEqual((release.logs ?? []).map((line) => line.message));
      expect(events.at(-1)).toMatchObject({ status: 'SUCCESS' });
      // Once more, after the end.
      const late = await eventsOf(await client.servers.releases.stream('latest', { qualifiedName }));
      expect(late[0]).toMatchObject({ status: 'SUCCESS' });
      expect((await client.servers.get(qualifiedName)).tools?.map((tool) => tool.name)).toContain('echo');
    },
    SLOW_MS,
  );

  verifies(
    'contract:published-client',
    'publishes a bundle and downloads the same bytes',
    async () => {
      const qualifiedName = await createServer(app, owner, { namespace });
      const bytes = await packBundle();
      const payload = JSON.stringify({ type: 'stdio', runtime: 'node' });
      const bundle = await toFile(bytes, 'weather.mcpb');
      const { deploymentId } = await client.servers.releases.deploy(qualifiedName, { payload, bundle });
      await releaseIn(app, owner, qualifiedName, deploymentId, 'SUCCESS');
      const download = await client.servers.download(qualifiedName);
      expect(Buffer.from(await download.arrayBuffer()).equals(bytes)).toBe(true);
      const { connections, tools, remote } = await client.servers.get(qualifiedName);
      expect({ connections, remote }).toMatchObject({
        connections: [{ type: 'stdio', runtime: 'node' }],
        remote: false,
      });
      expect(tools?.map((tool) => tool.name)).toEqual(bundledTools.map((tool) => tool.name));
    },
    SLOW_MS,
  );

  longVerifies(
    'contract:published-client',
    'lists releases to the end, newest first',
    async () => {
      const qualifiedName = await createServer(app, owner, { namespace });
      const ids: string[] = [];
      for (let i = 0; i < 3; i += 1) {
        const { deploymentId } = await client.servers.releases.deploy(qualifiedName, external(upstream.url));
        await releaseIn(app, owner, qualifiedName, deploymentId, 'SUCCESS');
        ids.unshift(deploymentId);
      }
      const listed: string[] = [];
      for await (const { id } of client.servers.releases.list(qualifiedName, { pageSize: 2 })) listed.push(id);
      expect(listed).toEqual(ids);
    },
    SLOW_MS,
  );

  longVerifies(
    'contract:published-client',
    'resumes the latest release after the authorization',
    async () => {
      const qualifiedName = await createServer(app, owner, { namespace });
      const guarded = await authorization.protect(upstream.url);
      const { deploymentId } = await client.servers.releases.deploy(qualifiedName, external(guarded.url));
      const waiting = await releaseIn(app, owner, qualifiedName, deploymentId, 'AUTH_REQUIRED');
      expect(await client.servers.releases.resume('latest', { qualifiedName })).toEqual({
        status: 'WORKING',
        deploymentId,
      });
      expect(waiting.logs.map((line) => line.message)).toContain('auth_required');
      const again = await releaseIn(app, owner, qualifiedName, deploymentId, 'AUTH_REQUIRED');
      const link = /Authorize at (\S+)/.exec(
        again.logs.findLast((line) => line.message.startsWith('Auth'))?.message ?? '',
      );
      const person = personAt(app);
      await person.open(link?.[1] ?? '');
      await person.press(link?.[1] ?? '');
      await releaseIn(app, owner, qualifiedName, deploymentId, 'SUCCESS');
      await expect(client.servers.releases.resume('latest', { qualifiedName })).rejects.toMatchObject({
        status: 400,
        error: { error: expect.stringContaining('not in a resumable state') },
      });
    },
    SLOW_MS,
  );

  verifies('contract:published-client', 'throws the error class of each failure', async () => {
    const qualifiedName = `${namespace}/${uniqueName('none')}`;
    const noServer = client.servers.releases.deploy(qualifiedName, external(upstream.url));
    await expect(noServer).rejects.toMatchObject({ status: 404, error: { error: 'Server not found' } });
    const nowhere = client.servers.releases.deploy(`${uniqueName('none')}/server`, external(upstream.url));
    await expect(nowhere).rejects.toMatchObject({ status: 404, error: { error: 'Namespace not found' } });
    const name = await createServer(app, owner, { namespace });
    await expect(client.servers.releases.deploy(name, { payload: '{}' })).rejects.toMatchObject({ status: 400 });
    await expect(client.servers.releases.get('latest', { qualifiedName: name })).rejects.toBeInstanceOf(NotFoundError);
    await expect(client.servers.download(name)).rejects.toBeInstanceOf(NotFoundError);
  });
});
