import { beforeAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import * as newest from '@smithery/api';
import * as newestMcp from '@smithery/api/mcp';
import * as old from '@smithery/api-0.50';
import * as oldMcp from '@smithery/api-0.50/mcp';
import { testApp, uniqueName, type TestAccount } from '../support/app.js';
import { startEverything, type EverythingServer } from '../support/upstream/everything.js';
import { createNamespace } from '../support/factories.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { verifies } from '../support/verifies.js';

/** One request as the client sent it. */
interface Sent {
  method: string;
  /** Path and query. */
  path: string;
}

/** A published client with everything it has sent. Its own defaults are kept: two retries, 60 s. */
interface Published {
  client: newest.Smithery;
  sent: Sent[];
}

/** One way in which published programs reach us. */
interface Dialect {
  name: string;
  /** Prefix of the namespace in paths of connections. */
  base: '' | '/connect';
  /** The error classes of this version. */
  errors: Pick<typeof newest, 'AuthenticationError' | 'BadRequestError' | 'ConflictError' | 'NotFoundError'>;
  open(url: string, apiKey: string): Published;
  createConnection: typeof newestMcp.createConnection;
}

const app = testApp();
let everything: EverythingServer;
let upstream: Upstream;

/** The real `fetch`, noting what passes. */
function watched(url: string): { sent: Sent[]; fetch: typeof fetch } {
  const sent: Sent[] = [];
  return {
    sent,
    fetch: (input, init) => {
      sent.push({
        method: init?.method ?? 'GET',
        path: String(input instanceof Request ? input.url : input).slice(url.length),
      });
      return fetch(input, init);
    },
  };
}

function openNewest(base: string) {
  return (url: string, apiKey: string): Published => {
    const { sent, fetch } = watched(url);
    return { client: new newest.Smithery({ baseURL: url, connectBaseURL: `${url}${base}`, apiKey, fetch }), sent };
  };
}

const dialects: Dialect[] = [
  {
    name: '@smithery/api 0.68 on /{namespace}',
    base: '',
    errors: newest,
    open: openNewest(''),
    createConnection: newestMcp.createConnection,
  },
  {
    name: '@smithery/api 0.68 on /connect/{namespace}',
    base: '/connect',
    errors: newest,
    open: openNewest('/connect'),
    createConnection: newestMcp.createConnection,
  },
  {
    name: '@smithery/api 0.50',
    base: '/connect',
    errors: old as unknown as Dialect['errors'],
    open: (url, apiKey) => {
      const { sent, fetch } = watched(url);
      // The tests call only methods that both versions have, with equal arguments.
      return { client: new old.Smithery({ baseURL: url, apiKey, fetch }) as unknown as newest.Smithery, sent };
    },
    createConnection: oldMcp.createConnection as unknown as Dialect['createConnection'],
  },
];

/** The error a promise rejects with. */
async function failure(promise: PromiseLike<unknown>): Promise<Error & { status?: number; error?: unknown }> {
  try {
    await promise;
  } catch (error) {
    return error as Error & { status?: number; error?: unknown };
  }
  throw new Error('It should have failed.');
}

beforeAll(async () => {
  [everything, upstream] = await Promise.all([startEverything(), startUpstream()]);
});

for (const { name, base, errors, open, createConnection } of dialects) {
  describe(name, () => {
    let account: TestAccount;
    let client: newest.Smithery;
    let sent: Sent[];

    beforeAll(async () => {
      account = await app.account();
      ({ client, sent } = open(app.url, account.key));
    });

    verifies('contract:published-client', 'creates, claims, lists page by page and deletes namespaces', async () => {
      const client = open(app.url, (await app.account()).key).client;
      const { name: generated } = await client.namespaces.create();
      const name = uniqueName('ns');
      const claimed = await client.namespaces.set(name);
      expect(claimed).toMatchObject({ name, createdAt: expect.stringMatching(/^\d{4}-.*Z$/) });
      expect(await client.namespaces.set(name)).toEqual(claimed);

      const names: string[] = [];
      for await (const namespace of client.namespaces.list({ pageSize: 1 })) names.push(namespace.name);
      expect(names).toEqual([name, generated]);

      expect(await client.namespaces.delete(name)).toEqual({ success: true, name });
      const rest = await client.namespaces.list();
      expect(rest.namespaces.map((namespace) => namespace.name)).toEqual([generated]);
    });

    verifies('contract:published-client', 'creates, reads and deletes servers by either of their paths', async () => {
      const namespace = await createNamespace(app, account);
      const qualifiedName = `${namespace}/weather`;
      const body = { displayName: 'Weather', description: 'Forecasts for any place.' };
      const created = await client.servers.create(qualifiedName, body);
      expect(created).toMatchObject({ namespace, server: 'weather', ...body });
      expect(await client.namespaces.servers.create('other', { namespace })).toMatchObject({
        namespace,
        server: 'other',
      });

      expect(await client.servers.get(qualifiedName)).toMatchObject({
        qualifiedName,
        ...body,
        remote: false,
        tools: null,
      });
      expect(await client.servers.delete(qualifiedName)).toEqual({ success: true, namespace, server: 'weather' });
      const gone = await failure(client.servers.get(qualifiedName));
      expect(gone).toBeInstanceOf(errors.NotFoundError);
      expect(gone.error).toEqual(expect.objectContaining({ error: 'Server not found' }));
    });

    verifies('contract:published-client', 'creates, changes, reads and deletes connections', async () => {
      const namespace = await createNamespace(app, account);
      const before = sent.length;
      const metadata = { userId: 'u-1' };
      const created = await client.connections.create(namespace, { mcpUrl: everything.url, metadata });
      expect(created).toMatchObject({
        mcpUrl: everything.url,
        metadata,
        status: { state: 'connected' },
        serverInfo: { name: 'mcp-servers/everything' },
      });
      const { connectionId } = created;
      const changed = await client.connections.set(connectionId, { namespace, name: 'Renamed' });
      expect(changed).toMatchObject({ connectionId, name: 'Renamed', mcpUrl: everything.url, metadata });
      expect(await client.connections.get(connectionId, { namespace })).toMatchObject({
        connectionId,
        name: 'Renamed',
      });
      expect(await client.connections.delete(connectionId, { namespace })).toEqual({ success: true });
      expect(await failure(client.connections.get(connectionId, { namespace }))).toBeInstanceOf(errors.NotFoundError);

      const connectionUrl = `${base}/${namespace}/${connectionId}`;
      expect(sent.slice(before)).toEqual([
        { method: 'POST', path: `${base}/${namespace}` },
        { method: 'PUT', path: connectionUrl },
        { method: 'GET', path: connectionUrl },
        { method: 'DELETE', path: connectionUrl },
        { method: 'GET', path: connectionUrl },
      ]);
    });

    verifies(
      'contract:published-client',
      'reads and calls with a key that may do no more, and is refused in words',
      async () => {
        const namespace = await createNamespace(app, account);
        await client.connections.set('open', { namespace, mcpUrl: everything.url });
        const { body } = await app
          .as(account)
          .post('/accounts/me/api-keys', { name: 'app', scopes: [`call:${namespace}`] });
        const scoped = open(app.url, body.key as string).client;
        expect((await scoped.connections.list(namespace, {})).connections).toMatchObject([{ connectionId: 'open' }]);
        expect(await scoped.connections.get('open', { namespace })).toMatchObject({ status: { state: 'connected' } });
        const { transport } = await createConnection({ client: scoped, namespace, connectionId: 'open' });
        const mcp = new Client({ name: 'scoped', version: '1.0.0' });
        await mcp.connect(transport);
        const { content } = await mcp.callTool({ name: 'echo', arguments: { message: 'within its scope' } });
        expect(JSON.stringify(content)).toContain('within its scope');
        await mcp.close();
        const refused = await failure(scoped.connections.set('other', { namespace, mcpUrl: everything.url }));
        expect(refused.status).toBe(403);
        expect(JSON.stringify(refused.error)).toContain('lacks the scope');
      },
    );

    verifies('contract:published-client', 'lists connections by every filter and over several pages', async () => {
      const namespace = await createNamespace(app, account);
      for (const i of [1, 2, 3, 4, 5]) {
        const mcpUrl = i === 5 ? everything.url : upstream.url;
        const metadata = { userId: `u-${i % 2}`, n: i };
        await client.connections.set(`c-${i}`, { namespace, mcpUrl, name: `Name ${i}`, metadata });
      }
      const ids = async (query: object) => {
        const { connections, nextCursor } = await client.connections.list(namespace, query);
        expect(nextCursor).toBeNull();
        return connections.map(({ connectionId }) => connectionId);
      };
      expect(await ids({})).toEqual(['c-5', 'c-4', 'c-3', 'c-2', 'c-1']);
      expect(await ids({ name: 'Name 3' })).toEqual(['c-3']);
      expect(await ids({ mcpUrl: everything.url })).toEqual(['c-5']);
      expect(await ids({ 'metadata.userId': 'u-0' })).toEqual(['c-4', 'c-2']);
      expect(await ids({ 'metadata.userId': 'u-1', 'metadata.n': '3' })).toEqual(['c-3']);

      const pages: string[][] = [];
      let cursor: string | undefined;
      do {
        const page = await client.connections.list(namespace, {
          limit: 2,
          ...(cursor === undefined ? {} : { cursor }),
        });
        pages.push(page.connections.map(({ connectionId }) => connectionId));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      expect(pages).toEqual([['c-5', 'c-4'], ['c-3', 'c-2'], ['c-1']]);
    });

    for (const handshake of [false, true]) {
      const how = handshake ? 'with a handshake' : 'without a handshake';
      verifies(
        'contract:published-client',
        `gives an MCP client a transport that lists and calls tools ${how}, from nothing but a URL`,
        async () => {
          const otherClient = open(app.url, (await app.account()).key).client;
          const { transport, connectionId, url } = await createConnection({
            client: otherClient,
            mcpUrl: everything.url,
            handshake,
          });
          const [{ name: namespace }] = (await otherClient.namespaces.list()).namespaces as [{ name: string }];
          expect(url).toBe(`${app.url}/connect/${namespace}/${connectionId}/mcp`);

          const mcp = new Client({ name: 'contract', version: '1.0.0' });
          await mcp.connect(transport);
          try {
            expect(mcp.getServerVersion()?.name).toBe(handshake ? 'mcp-servers/everything' : undefined);
            const { tools } = await mcp.listTools();
            expect(tools.map((tool) => tool.name)).toContain('echo');
            expect(await mcp.callTool({ name: 'echo', arguments: { message: 'Hello' } })).toMatchObject({
              content: [{ type: 'text', text: 'Echo: Hello' }],
            });
            expect((await mcp.listPrompts()).prompts.length).toBeGreaterThan(0);
            expect((await mcp.listResources()).resources.length).toBeGreaterThan(0);
          } finally {
            await mcp.close();
          }
        },
      );
    }

    verifies('contract:published-client', 'reads an existing connection for its transport, or creates it', async () => {
      const namespace = await createNamespace(app, account);
      const options = { client, namespace, connectionId: 'mine' };
      expect(await failure(createConnection(options))).toBeInstanceOf(errors.NotFoundError);
      const made = await createConnection({ ...options, mcpUrl: everything.url });
      const read = await createConnection(options);
      expect(read.url).toBe(made.url);
      expect((await client.connections.list(namespace)).connections).toHaveLength(1);
    });

    verifies('contract:published-client', 'reports an unusable MCP server immediately', async () => {
      const namespace = await createNamespace(app, account);
      const mcpUrl = `http://127.0.0.1:${await freePort()}/mcp`;
      const dead = await failure(createConnection({ client, namespace, mcpUrl }));
      expect(dead.message).toMatch(/^MCP connection failed: Nothing listens on 127\.0\.0\.1:\d+/);

      const guarded = await startUpstream({ requireHeaders: { authorization: 'Bearer right' } });
      try {
        const locked = await failure(
          createConnection({ client, namespace, connectionId: 'locked', mcpUrl: guarded.url }),
        );
        expect(locked.message).toMatch(
          /^MCP server requires authorization\. Please visit: http:\S+\/setup\/connections\/\S+$/,
        );
        const headers = { Authorization: 'Bearer right' };
        await client.connections.set('locked', { namespace, headers });
        const opened = await createConnection({ client, namespace, connectionId: 'locked' });
        expect(opened.connectionId).toBe('locked');
      } finally {
        await guarded.close();
      }
    });

    verifies('contract:published-client', 'gets the error class of each failure, in one request', async () => {
      const namespace = await createNamespace(app, account);
      await client.connections.set('mine', { namespace, mcpUrl: upstream.url });
      const once = async (promise: () => PromiseLike<unknown>, from = sent) => {
        const before = from.length;
        const error = await failure(promise());
        expect(from.length - before).toBe(1);
        return error;
      };

      const missing = await once(() => client.connections.get('none', { namespace }));
      expect(missing).toBeInstanceOf(errors.NotFoundError);
      expect(missing).toMatchObject({ status: 404, message: '404 Resource not found' });

      const invalid = await once(() => client.connections.set('.dot', { namespace, mcpUrl: upstream.url }));
      expect(invalid).toBeInstanceOf(errors.BadRequestError);
      expect(invalid.message).toMatch(/^400 connectionId must be /);

      const conflict = await once(() => client.connections.set('mine', { namespace, mcpUrl: everything.url }));
      expect(conflict).toBeInstanceOf(errors.ConflictError);
      expect(conflict).toMatchObject({ status: 409, error: { error: 'conflict' } });

      const other = open(app.url, (await app.account()).key);
      const taken = await once(() => other.client.namespaces.set(namespace), other.sent);
      expect(taken).toBeInstanceOf(errors.ConflictError);
      expect(taken.message).toContain('already exists');
      expect(await once(() => other.client.connections.get('mine', { namespace }), other.sent)).toMatchObject({
        message: '404 Resource not found',
      });

      const wrong = open(app.url, `${account.key.slice(0, -1)}${account.key.endsWith('A') ? 'B' : 'A'}`);
      const registry = await once(() => wrong.client.namespaces.list(), wrong.sent);
      expect(registry).toBeInstanceOf(errors.AuthenticationError);
      expect(registry.error).toEqual(expect.objectContaining({ error: 'Unauthorized' }));
      const connections = await once(() => wrong.client.connections.list(namespace), wrong.sent);
      expect(connections).toBeInstanceOf(errors.AuthenticationError);
      expect(connections.message).toMatch(/^401 The API key is not valid/);
    });
  });
}

/** Tools over REST came after 0.50. */
for (const { name, base, open, errors } of dialects.filter((dialect) => dialect.errors === newest)) {
  describe(`${name}, tools`, () => {
    let client: newest.Smithery;
    let sent: Sent[];
    let namespace: string;

    beforeAll(async () => {
      const account = await app.account();
      ({ client, sent } = open(app.url, account.key));
      namespace = await createNamespace(app, account);
      await client.connections.set('real', { namespace, mcpUrl: everything.url });
      await client.connections.set('dotted', { namespace, mcpUrl: upstream.url });
    });

    verifies('contract:published-client', 'lists, reads and calls tools', async () => {
      const { tools } = await client.connections.tools.list('real', { namespace });
      const echo = tools.find((tool) => tool.name === 'echo');
      expect(echo).toMatchObject({ inputSchema: { type: 'object', required: ['message'] } });
      expect(await client.connections.tools.get('echo', { namespace, connectionId: 'real' })).toEqual(echo);

      const call = { namespace, connectionId: 'real', body: { message: 'Hello' } };
      expect(await client.connections.tools.call('echo', call)).toEqual({
        content: [{ type: 'text', text: 'Echo: Hello' }],
      });
      expect(sent.at(-1)).toEqual({ method: 'POST', path: `${base}/${namespace}/real/.tools/echo` });
    });

    verifies(
      'contract:published-client',
      'finds a tool with dots in its name however the client spells it',
      async () => {
        const where = { namespace, connectionId: 'dotted' };
        const category = await client.connections.tools.get('repo', where);
        expect((category as newest.Smithery.Connections.ToolList).tools.map((tool) => tool.name)).toContain(
          'repo.search',
        );
        for (const path of ['repo.search', 'repo/search']) {
          expect(await client.connections.tools.get(path, where)).toMatchObject({ name: 'repo.search' });
        }
        expect(sent.at(-1)?.path).toBe(`${base}/${namespace}/dotted/.tools/repo%2Fsearch`);
      },
    );

    verifies('contract:published-client', 'calls a failing tool once and no more', async () => {
      const dying = await startUpstream();
      await client.connections.set('dying', { namespace, mcpUrl: dying.url });
      await dying.close();
      const before = sent.length;
      const down = await failure(client.connections.tools.call('echo', { namespace, connectionId: 'dying', body: {} }));
      expect(down).toBeInstanceOf(newest.InternalServerError);
      expect(down).toMatchObject({ status: 502, error: { error: 'upstream_error' } });
      const unknown = await failure(
        client.connections.tools.call('none', { namespace, connectionId: 'real', body: {} }),
      );
      expect(unknown).toBeInstanceOf(errors.NotFoundError);
      expect(sent).toHaveLength(before + 2);
    });
  });
}
