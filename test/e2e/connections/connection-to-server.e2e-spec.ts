import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { TargetResolver } from '../../../src/modules/connections/core/target-resolver.js';
import { callerFor } from '../../../src/modules/auth/access.types.js';
import { TargetsService } from '../../../src/modules/targets/targets.service.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import {
  announceCurrent,
  externalServer,
  publishExternal,
  setCurrent,
} from '../../support/releases/current-releases.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { pathOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const app = testApp({ REGISTRY_HOSTS: 'server.smithery.ai,*.run.tools' });
const owner = testAccount(app);
const other = testAccount(app);
let upstream: Upstream;
let namespace: string;

beforeAll(async () => void (upstream = await startUpstream()));
beforeEach(async () => void (namespace = await createNamespace(app, owner)));

/** Calls `echo` through a connection. */
async function echo(path: string, account = owner) {
  return app.as(account).post(`${path}/.tools/echo`, { message: 'Hello' });
}

/** Waits until a connection is in a state. */
async function statusIn(path: string, state: string): Promise<Record<string, unknown>> {
  return until(async () => {
    const { body } = await app.as(owner).get(path);
    return body.status.state === state ? (body.status as Record<string, unknown>) : null;
  }, `the connection is ${state}`);
}

/** The upstream's last request of a method. */
function lastOf(method: string) {
  return upstream.requests.findLast(({ body }) => (body as { method?: string } | undefined)?.method === method);
}

describe('a connection to a registered server', () => {
  verifies(
    [
      'connection:target:registry-server',
      'connection:create:server',
      'connection:field:mcp-url-registry',
      'connection:server:no-loop',
    ],
    'runs its current release, whoever owns it, without a request over HTTP',
    async () => {
      const server = await externalServer(app, other, upstream.url);
      for (const name of [server.name, `@${server.name}`]) {
        const tools = { deny: ['none'] };
        const { status, body, headers } = await app.as(owner).post(`/connect/${namespace}`, { server: name, tools });
        expect([status, headers['slipway-hint']]).toEqual([201, expect.stringMatching(/binds this connection only/)]);
        expect(body).toMatchObject({
          mcpUrl: `${app.env.baseUrl}/run/${server.slug}`,
          transport: 'http',
          status: { state: 'connected' },
          serverInfo: { name: 'upstream' },
        });
        expect(body).not.toHaveProperty('server');
        const called = await echo(`/connect/${namespace}/${body.connectionId}`);
        expect([called.status, called.body]).toMatchObject([200, { content: [{ type: 'text' }] }]);
        expect(lastOf('tools/call')?.headers).not.toHaveProperty('authorization');
      }
    },
  );

  verifies('connection:server:aliases', 'is what the addresses of published tools mean', async () => {
    const server = await externalServer(app, owner, upstream.url);
    const [ns, name] = server.name.split('/');
    const addresses = [
      `https://server.smithery.ai/${ns}/${name}`,
      `https://server.smithery.ai/@${ns}/${name}`,
      `https://server.smithery.ai/${ns}/${name}/mcp`,
      `https://server.smithery.ai/${ns}%2F${name}`,
      `https://${server.slug.toLowerCase()}.run.tools`,
      `${app.env.baseUrl}/run/${server.slug}`,
      `${app.env.baseUrl}/run/${server.slug}/mcp`,
    ];
    const ids: string[] = [];
    for (const mcpUrl of addresses) {
      const { status, body } = await app.as(owner).post(`/connect/${namespace}`, { mcpUrl });
      expect([mcpUrl, status, body.mcpUrl, body.status.state]).toEqual([
        mcpUrl,
        201,
        `${app.env.baseUrl}/run/${server.slug}`,
        'connected',
      ]);
      ids.push(body.connectionId as string);
    }
    for (const mcpUrl of addresses) {
      const found = await app.as(owner).get(`/connect/${namespace}?mcpUrl=${encodeURIComponent(mcpUrl)}`);
      const listed = (found.body.connections as { connectionId: string }[]).map(({ connectionId }) => connectionId);
      expect(listed).toEqual([...ids].reverse());
    }
  });

  verifies('connection:server:aliases', 'is what addresses on the hosts of the setting mean', async () => {
    const server = await externalServer(app, owner, upstream.url);
    const name = await createNamespace(app, owner);
    const home = { id: (await app.get(TargetsService).findNamespace(name))?.id ?? '', name };
    const theirs = [`https://server.smithery.ai/${server.name}`, `https://${server.slug.toLowerCase()}.run.tools`];
    const ours = [
      `https://mcp.acme.example/${server.name}/mcp`,
      `https://${server.slug.toLowerCase()}.run.acme.example`,
    ];
    const meant = ({ env, get }: TestApp, urls: string[]) =>
      Promise.all(
        [...urls, `${env.baseUrl}/run/${server.slug}`].map(
          async (mcpUrl) => (await get(TargetResolver).resolve(home, { mcpUrl }, callerFor(owner.id))).serverName,
        ),
      );
    const names = [server.name, server.name];
    expect(await meant(app, [...theirs, ...ours])).toEqual([...names, null, null, server.name]);

    const [none, set] = [
      await app.sibling({ REGISTRY_HOSTS: '' }),
      await app.sibling({ REGISTRY_HOSTS: 'mcp.acme.example, *.run.acme.example' }),
    ];
    expect(await meant(none, theirs)).toEqual([null, null, server.name]);
    const unknown = { mcpUrl: 'https://server.smithery.ai/acme/none' };
    const custom = await none.get(TargetResolver).resolve(home, unknown, callerFor(owner.id));
    expect(custom).toMatchObject({ targetKind: 'url', mcpUrl: 'https://server.smithery.ai/acme/none' });
    expect(await meant(set, [...theirs, ...ours])).toEqual([null, null, ...names, server.name]);
    await expect(meant(set, ['https://mcp.acme.example/acme/none'])).rejects.toThrow(
      'The registry has no server "acme/none"',
    );
    await Promise.all([none.close(), set.close()]);
  });

  verifies('connection:create:server-unknown', 'is rejected for a missing server, under every spelling', async () => {
    const name = `${uniqueName('ns')}/nothing`;
    for (const body of [
      { server: name },
      { mcpUrl: `https://server.smithery.ai/${name}` },
      { mcpUrl: `${app.env.baseUrl}/run/${randomUUID()}` },
    ]) {
      const refused = await app.as(owner).post(`/connect/${namespace}`, body);
      expect([refused.status, refused.body]).toEqual([
        400,
        { error: 'validation_error', message: expect.stringMatching(/^The registry has no server ".+": check/) },
      ]);
    }
    expect((await app.as(owner).get(`/connect/${namespace}`)).body.connections).toEqual([]);
    const unknown = await app.as(owner).get(`/connect/${namespace}?mcpUrl=https://server.smithery.ai/${name}`);
    expect([unknown.status, unknown.body.connections]).toEqual([200, []]);
  });

  verifies('connection:server:no-circle', 'is no other address of this service', async () => {
    for (const path of [`/connect/${namespace}/mine/mcp`, `/connect/${namespace}/.mcp`, '/', '/health']) {
      const refused = await app.as(owner).put(`/connect/${namespace}/mine`, { mcpUrl: `${app.env.baseUrl}${path}` });
      expect([path, refused.status, refused.body]).toEqual([
        path,
        400,
        { error: 'validation_error', message: expect.stringMatching(/would call itself/) },
      ]);
    }
  });

  verifies('connection:server:follows', 'follows it to its next release and under its new name', async () => {
    const server = await externalServer(app, owner, upstream.url);
    const { path } = await createConnection(app, owner, { server: server.name }, { namespace });
    const next = await startUpstream();
    await publishExternal(app, server.name, next.url);
    await until(async () => ((await echo(path)).status === 200 && next.count('tools/call') > 0 ? true : null), 'moved');
    const subdomain = uniqueName('sub');
    await app.as(owner).patch(pathOf(server.name, '/domains/managed'), { subdomain });
    expect((await app.as(owner).get(path)).body.mcpUrl).toBe(`${app.env.baseUrl}/run/${subdomain}`);
    expect((await echo(path)).status).toBe(200);
    await next.close();
  });

  verifies('connection:status:not-runnable', 'without a release states that, and works once there is one', async () => {
    const name = await createServer(app, owner);
    const { path, body } = await createConnection(app, owner, { server: name }, { namespace });
    expect(body.status).toMatchObject({
      state: 'error',
      reason: 'not_runnable',
      message: expect.stringMatching(/no successful release yet/),
    });
    const refused = await echo(path);
    expect([refused.status, refused.body.error, refused.headers['x-should-retry']]).toEqual([
      409,
      'not_runnable',
      'false',
    ]);
    announceCurrent(app, await setCurrent(app, name, { upstreamUrl: upstream.url }));
    await until(async () => ((await echo(path)).status === 200 ? true : null), 'it works');
    expect(await statusIn(path, 'connected')).toMatchObject({ reason: 'ok' });
  });

  verifies(
    ['connection:status:server-gone', 'connection:server:bound-to-id'],
    'states that it was deleted, and sends a namesake nothing',
    async () => {
      const server = await externalServer(app, other, upstream.url);
      const secret = randomUUID();
      const { path } = await createConnection(
        app,
        owner,
        { server: server.name, headers: { 'X-Secret': secret } },
        { namespace },
      );
      expect((await echo(path)).status).toBe(200);
      expect(lastOf('tools/call')?.headers['x-secret']).toBe(secret);
      const listing = await createConnection(app, owner, { server: server.name }, { namespace });
      const listed = () => app.as(owner).get(`${listing.path}/.tools`);
      expect((await listed()).status).toBe(200);
      expect((await app.as(other).delete(pathOf(server.name))).status).toBe(200);
      // Its tools are not answered from memory.
      expect((await listed()).body).toMatchObject({ message: expect.stringMatching(/was deleted/) });
      // Told by nobody's call.
      const told = (await app.as(owner).get(path)).body as { status: object };
      expect(told.status).toMatchObject({ state: 'error', reason: 'server_deleted' });

      const trap = await startUpstream();
      const [ns, name] = server.name.split('/');
      await createServer(app, other, { namespace: ns, server: name });
      await publishExternal(app, server.name, trap.url);
      const gone = /^The server .+ was deleted\./;
      const call = await until(async () => {
        const answer = await echo(path);
        return answer.status === 200 ? null : answer;
      }, 'the server is gone');
      expect([call.status, call.body]).toEqual([
        502,
        { error: 'upstream_error', message: expect.stringMatching(gone) },
      ]);
      expect(told.status).toMatchObject({ message: call.body.message as string });
      expect(await statusIn(path, 'error')).toMatchObject({
        reason: 'server_deleted',
        message: expect.stringMatching(gone),
        nextStep: expect.stringMatching(/Delete the connection/),
      });
      await app.as(owner).put(path, { callTimeoutMs: 60_000 });
      expect(trap.requests).toEqual([]);
      await trap.close();
    },
  );
});

describe('a module of its own', () => {
  const source = (contents: string, path = 'server.ts') => ({
    kind: 'module',
    entrypoint: path,
    sourceFiles: [{ path, contents }],
  });
  const module = `import { Server } from '@modelcontextprotocol/sdk/server/index.js';
export default () => new Server({ name: 'x', version: '1' });`;

  longVerifies('connection:create:source', 'is stored and never shown', async () => {
    const { path, body } = await createConnection(app, owner, { source: source(module) }, { namespace });
    expect(body).toMatchObject({ mcpUrl: null, transport: 'http', status: { state: 'connected' } });
    expect(JSON.stringify([body, (await app.as(owner).get(path)).body])).not.toContain('new Server');
    const [{ source: stored }] = await app.database.query<{ source: unknown }[]>(
      'SELECT source FROM connections WHERE connection_id = $1',
      [body.connectionId],
    );
    expect(stored).toEqual(source(module));
  });

  longVerifies('connection:put:url-conflict', 'may be given again, and no other one', async () => {
    const given = { source: source(module), name: 'Module' };
    const { path } = await createConnection(app, owner, { source: source(module) }, { namespace });
    expect(await app.as(owner).put(path, given)).toMatchObject({ status: 200, body: { name: 'Module' } });
    const other = await app.as(owner).put(path, { source: source(`${module} // 2`) });
    expect([other.status, other.body.error, other.headers['x-should-retry']]).toEqual([409, 'conflict', 'false']);
    await app.as(owner).delete(path);
  });

  verifies('connection:create:source', 'is rejected in any other shape', async () => {
    for (const [given, message] of [
      [{ ...source(module), kind: 'script' }, /source\.kind must be "module"/],
      [{ ...source(module), more: 1 }, /no member "more"/],
      [{ ...source(module), entrypoint: 'other.ts' }, /entrypoint must be the path/],
      [{ ...source(module), sourceFiles: [] }, /exactly one file/],
      [
        { ...source(module), sourceFiles: [...source(module).sourceFiles, ...source(module).sourceFiles] },
        /exactly one/,
      ],
      [source(module, 'server.js'), /\.ts, \.tsx, \.mts or \.cts/],
      [source(module, '../server.ts'), /\.ts, \.tsx, \.mts or \.cts/],
      [source('  '), /must be its text/],
      [source('x'.repeat(128 * 1024 + 1)), /at most 128 KB/],
    ] as const) {
      const { status, body } = await app.as(owner).post(`/connect/${namespace}`, { source: given });
      expect([status, body]).toEqual([400, { error: 'validation_error', message: expect.stringMatching(message) }]);
    }
    const withHeaders = { source: source(module), headers: { 'X-A': 'b' } };
    expect((await app.as(owner).post(`/connect/${namespace}`, withHeaders)).status).toBe(400);
    expect((await app.as(owner).get(`/connect/${namespace}`)).body.connections).toEqual([]);
  });
});

describe('another target', () => {
  verifies(
    ['connection:put:url-conflict', 'connection:put:transport-conflict'],
    'returns 409, the same one 200',
    async () => {
      const [one, two] = [
        await externalServer(app, owner, upstream.url),
        await externalServer(app, owner, upstream.url),
      ];
      const { path, body } = await createConnection(app, owner, { server: one.name }, { namespace });
      for (const change of [{ server: two.name }, { mcpUrl: upstream.url }, { transport: 'uplink' }]) {
        const refused = await app.as(owner).put(path, change);
        expect([change, refused.status, refused.body.error, refused.headers['x-should-retry']]).toEqual([
          change,
          409,
          'conflict',
          'false',
        ]);
      }
      for (const same of [{ server: one.name }, { mcpUrl: body.mcpUrl }, { transport: 'http' }, {}]) {
        expect((await app.as(owner).put(path, same)).status).toBe(200);
      }
      const url = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
      expect((await app.as(owner).put(url.path, { server: one.name })).status).toBe(409);
      expect((await app.as(owner).get(url.path)).body.mcpUrl).toBe(upstream.url);
    },
  );
});
