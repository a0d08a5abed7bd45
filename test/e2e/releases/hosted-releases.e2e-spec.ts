import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { HostingUnavailableError } from '../../../src/hosting/hosting.errors.js';
import { Hosting, LocalHosting } from '../../../src/hosting/hosting.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { ask, modern } from '../../support/mcp/mcp-calls.js';
import { invocationsOf, logOf, publishHosted, type HostedServer } from '../../support/hosting/hosted-releases.js';
import { hostedRequest } from '../../support/hosting/hosted-runtime.js';
import { errorOf } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { longVerifies, verifies } from '../../support/verifies.js';
import { bundled } from '../../support/hosting/hosted-programs.js';

/** A factory whose server says what it is given. */
const WEATHER = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { z } from 'zod';
  console.log('loading the weather');
  export default function ({ config, env }) {
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool('given', { description: 'Tells what it was given' }, async () => {
      console.log('asked for the weather');
      return { content: [{ type: 'text', text: JSON.stringify({ config, env }) }] };
    });
    server.registerTool('refuse', { description: 'Throws, in place of an answer' }, async () => {
      console.log('asked for a city');
      throw new RangeError('no such city');
    });
    server.registerTool('fail', { description: 'Throws, beside its answer' }, async () => {
      setTimeout(() => { throw new RangeError('no such place'); }, 0);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { content: [] };
    });
    return server.server;
  }
  export function handleHttp(request) {
    const url = new URL(request.url);
    if (url.pathname === '/page') {
      return new Response('<script>alert(1)</script>', { headers: { 'content-type': 'text/html', 'set-cookie': 'a=b', 'x-own': '1' } });
    }
    if (url.pathname === '/away') return new Response(null, { status: 302, headers: { location: '/page' } });
    if (url.pathname === '/echo') return new Response(request.body, { headers: { 'x-method': request.method } });
    return Response.json({ path: url.pathname + url.search, headers: Object.fromEntries(request.headers) });
  }`;

/** A stateful server that remembers one word in the session and one in memory. */
const NOTES = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { z } from 'zod';
  export const stateful = true;
  export default function ({ session }) {
    const server = new McpServer({ name: 'notes', version: '1.0.0' });
    let inMemory = null;
    server.registerTool('keep', { description: 'Remembers a word', inputSchema: { word: z.string() } }, async ({ word }) => {
      inMemory = word;
      await session.set('word', word);
      return { content: [{ type: 'text', text: 'kept' }] };
    });
    server.registerTool('tell', { description: 'Tells the word' }, async () => ({
      content: [{ type: 'text', text: JSON.stringify({ inMemory, stored: (await session.get('word')) ?? null }) }],
    }));
    return server.server;
  }`;

/** A worker that speaks just enough MCP at /mcp. */
const WORKER = `
  export default {
    async fetch(request, env) {
      if (new URL(request.url).pathname !== '/mcp') return new Response('nothing here', { status: 404 });
      const { id, method } = await request.json();
      if (id === undefined) return new Response(null, { status: 202 });
      const answer = (result) => Response.json({ jsonrpc: '2.0', id, result });
      if (method === 'initialize') {
        return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'worker', version: '1' } });
      }
      if (method === 'tools/list') {
        return answer({ tools: [{ name: 'hello', description: 'Says hello', inputSchema: { type: 'object' } }] });
      }
      if (method === 'tools/call') return answer({ content: [{ type: 'text', text: 'hello ' + env.WHO }] });
      return Response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } });
    },
  };`;

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);
let namespace: string;
let [weather, notes] = ['', ''];
/** The weather, published once. */
let shared: HostedServer;

beforeAll(async () => {
  [weather, notes] = await Promise.all([bundled(WEATHER), bundled(NOTES)]);
  namespace = await createNamespace(app, owner);
  shared = await publishHosted(app, owner, weather);
});

/** The official client with a session of its own. */
async function connected(url: string, account = owner): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${account.key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

async function textOf(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = (await client.callTool({ name, arguments: args })) as { content: { text: string }[] };
  return content[0]?.text ?? '';
}

function setSecret(name: string, secret: string, value: string) {
  return app.as(owner).put(`/servers/${encodeURIComponent(name)}/secrets`, { name: secret, value });
}

describe('a hosted release', () => {
  verifies(
    'hosted:runs',
    'answers the official client at its run endpoint and through a connection, as its code does',
    async () => {
      const server = shared;
      expect(logOf(server)).toMatch(
        /scan success Found 3 tools, 0 resources, 0 resource templates, 0 prompts; the security/,
      );
      const client = await connected(server.url, other);
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['given', 'refuse', 'fail']);
      expect(await textOf(client, 'given')).toBe('{"config":{},"env":{}}');
      await client.close();
      const { path, body } = await createConnection(app, owner, { server: server.name }, { namespace });
      expect(body.status).toMatchObject({ state: 'connected' });
      const called = await app.as(owner).post(`${path}/.tools/given`, {});
      expect(called).toMatchObject({ status: 200, body: { content: [{ text: '{"config":{},"env":{}}' }] } });
      const through = await connected(`${app.url}${path}/mcp`);
      expect(await textOf(through, 'given')).toBe('{"config":{},"env":{}}');
      await through.close();
      const detail = await app.as(other).get(`/servers/${encodeURIComponent(server.name)}`);
      expect(detail.body).toMatchObject({ remote: true, deploymentUrl: server.url, security: { scanPassed: true } });
    },
  );

  longVerifies(
    'hosted:runs',
    'runs a worker of its own with MCP at /mcp, which it is given in its secrets',
    async () => {
      const { name } = await publishHosted(app, owner, WORKER);
      await setSecret(name, 'WHO', 'world');
      const { url } = await publishHosted(app, owner, WORKER, { name, secretNames: ['WHO'] });
      const client = await connected(url);
      expect(await textOf(client, 'hello')).toBe('hello world');
      await client.close();
    },
  );

  verifies(
    'hosted:config',
    'receives its callers’ configuration with defaults, and refuses callers without required values',
    async () => {
      const configSchema = {
        type: 'object',
        properties: {
          city: { type: 'string', 'x-from': { header: 'x-city' } },
          units: { type: 'object', properties: { metric: { type: 'boolean', default: true } } },
        },
        required: ['city'],
      };
      const { url } = await publishHosted(app, owner, weather, { configSchema });
      const key = { authorization: `Bearer ${owner.key}` };
      const client = new Client({ name: 'test', version: '1' });
      const headers = { ...key, 'x-city': 'Oslo' };
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
      expect(JSON.parse(await textOf(client, 'given'))).toMatchObject({
        config: { city: 'Oslo', units: { metric: true } },
      });
      await client.close();
      await expect(connected(url)).rejects.toThrow(/Input required/);
    },
  );

  verifies('hosted:secrets', 'is given the secrets of its server: the ones it names, or all of them', async () => {
    const { name } = await publishHosted(app, owner, weather);
    await setSecret(name, 'ONE', 'first');
    await setSecret(name, 'TWO', 'second');
    for (const [secretNames, env] of [
      [[], { ONE: 'first', TWO: 'second' }],
      [['TWO'], { TWO: 'second' }],
    ] as const) {
      const { url } = await publishHosted(app, owner, weather, { name, secretNames });
      const client = await connected(url);
      expect(JSON.parse(await textOf(client, 'given'))).toMatchObject({ env });
      await client.close();
    }
  });

  verifies(
    'runtime:renew',
    'is given changed secrets and egress rules while it runs, and is not restarted by a new slug',
    async () => {
      const code = WEATHER.replace("console.log('loading the weather');", 'let born;').replace(
        'JSON.stringify({ config, env })',
        'JSON.stringify({ env, born: (born ??= Math.random()) })',
      );
      const { name, url } = await publishHosted(app, owner, await bundled(code));
      const client = await connected(url);
      const given = async () => JSON.parse(await textOf(client, 'given')) as { env: object; born: number };
      const path = `/servers/${encodeURIComponent(name)}`;
      const { born, env } = await given();
      expect(env).toEqual({});
      await setSecret(name, 'ONE', 'first');
      await until(async () => JSON.stringify((await given()).env) === '{"ONE":"first"}', 'it has the secret');
      await setSecret(name, 'ONE', 'second');
      await until(async () => JSON.stringify((await given()).env) === '{"ONE":"second"}', 'it has the other one');
      await app.as(owner).delete(`${path}/secrets/ONE`);
      await until(async () => JSON.stringify((await given()).env) === '{}', 'it has none any more');
      const before = (await given()).born;
      expect(before).not.toBe(born);
      await app.as(owner).patch(`${path}/runtime`, { logPayloads: true });
      await app.as(owner).patch(`${path}/runtime`, { egressAllow: ['api.example.com'] });
      await until(async () => (await given()).born !== before, 'it is started with the rules');
      const restarted = (await given()).born;
      const slug = uniqueName('renamed');
      await app.as(owner).patch(`${path}/domains/managed`, { subdomain: slug });
      // `renew` returns after the work that the message about the slug began.
      const [{ id }] = await app.database.query('SELECT id FROM servers WHERE slug = $1', [slug]);
      await app.get(Hosting).renew(id as string);
      const again = await connected(new URL(slug, url).href);
      expect(JSON.parse(await textOf(again, 'given'))).toMatchObject({ born: restarted });
      await Promise.all([client.close(), again.close()]);
    },
  );

  verifies('hosted:records', 'has its console lines and exceptions in the invocation that printed them', async () => {
    const { url } = shared;
    const heard = invocationsOf(app);
    const client = await connected(url);
    await textOf(client, 'given');
    await client.callTool({ name: 'fail', arguments: {} });
    await client.close();
    const recordOf = (tool: string) =>
      until(() => heard.records.find(({ toolName }) => toolName === tool), 'the call is recorded');
    const [given, fail] = [await recordOf('given'), await recordOf('fail')];
    const line = await until(
      () => heard.pieces.find(({ id, lines }) => id === given.id && lines.length > 0),
      'the line comes',
    );
    expect(line).toMatchObject({
      serverId: given.serverId,
      lines: [{ level: 'log', message: 'asked for the weather' }],
    });
    expect(given).toMatchObject({ outcome: 'ok', status: 200, rpcMethod: 'tools/call' });
    const thrown = await until(
      () => heard.pieces.find(({ id, exceptions }) => id === fail.id && exceptions.length > 0),
      'the exception comes',
    );
    expect(thrown.exceptions[0]).toMatchObject({
      name: 'RangeError',
      message: expect.stringContaining('no such place'),
    });
  });

  verifies(
    'runtime-log:answered-errors',
    'has a call whose tool throws as toolError in its log, though its runtime ended well',
    async () => {
      const heard = invocationsOf(app);
      const client = await connected(shared.url);
      expect(await client.callTool({ name: 'refuse', arguments: {} })).toMatchObject({ isError: true });
      await client.close();
      const record = await until(() => heard.records.find(({ toolName }) => toolName === 'refuse'), 'it is recorded');
      await until(() => heard.pieces.find(({ id, lines }) => id === record.id && lines.length > 0), 'the line comes');
      const log = await until(async () => {
        const path = `/servers/${encodeURIComponent(shared.name)}/logs?outcome=toolError`;
        const { body } = await app.as(owner).get(path);
        const { invocations } = body as { invocations: { id: string; duration: { cpuMs: number } }[] };
        return invocations.length > 0 && invocations;
      }, 'it is in the log');
      expect(log).toMatchObject([{ id: record.id, exceptions: [{ name: 'ToolError', message: 'no such city' }] }]);
    },
  );

  longVerifies('hosted:fails', 'is not replaced by one that fails its scan, not even during the scan', async () => {
    const first = await publishHosted(app, owner, weather);
    const client = await connected(first.url);
    await publishHosted(app, owner, "throw new Error('no luck'); export default () => 1;", {
      name: first.name,
      status: 'FAILURE',
    });
    expect(await textOf(client, 'given')).toBe('{"config":{},"env":{}}');
    await client.close();
  });
});

describe('a module that does not work', () => {
  verifies('hosted:fails', 'fails its release with its exception, and its output is in the log', async () => {
    const thrown = "console.warn('about to fail'); throw new TypeError('the sky is missing'); export default () => 1;";
    const server = await publishHosted(app, owner, thrown, { status: 'FAILURE' });
    expect(errorOf(server.release)).toMatch(/TypeError: the sky is missing/);
  });

  verifies('hosted:fails', 'has its output during the scan in the log of its release', async () => {
    const server = shared;
    const line = await until(async () => {
      const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(server.name)}/releases/latest`);
      const { logs } = body as { logs: { stage: string; message: string }[] };
      return logs.find(({ message }) => message === 'loading the weather');
    }, 'the line stands there');
    expect(line).toMatchObject({ stage: 'scan', level: 'info' });
  });

  longVerifies(
    'hosted:scanned',
    'has warnings about declarations of its card and payload that the module does not have',
    async () => {
      const serverCard = {
        serverInfo: { name: 'weather', version: '1.0.0' },
        tools: [
          { name: 'given', description: 'x', inputSchema: { type: 'object' } },
          { name: 'storm', inputSchema: { type: 'object' } },
        ],
      };
      const server = await publishHosted(app, owner, weather, { serverCard, stateful: true });
      expect(logOf(server)).toMatch(/deploy warning It was published with stateful true, but the module says false/);
      expect(logOf(server)).toMatch(/scan warning .*does not have "storm"\. It has "refuse", "fail" besides/);
    },
  );

  longVerifies(
    'hosted:scanned',
    'has a warning when callers cannot configure it, and no other contradiction',
    async () => {
      const module = `export const configSchema = {}; export const stateful = true;\n${weather}`;
      const silent = await publishHosted(app, owner, module);
      expect(logOf(silent)).toMatch(/deploy warning The module exports configSchema, but it was published without one/);
      expect(logOf(silent)).toMatch(/deploy info The module is stateful/);
      expect(logOf(silent)).not.toContain('the module counts');
      const told = await publishHosted(app, owner, module, { configSchema: { type: 'object', properties: {} } });
      expect(logOf(told)).not.toContain('published without one');
    },
  );

  verifies('hosted:scanned', 'does not pass with a tool that clients could not call', async () => {
    const badly = await bundled(WEATHER.replace("'given', {", "'not a name', {"));
    const server = await publishHosted(app, owner, badly, { status: 'FAILURE_SCAN' });
    expect(errorOf(server.release)).toContain('tool "not a name"');
  });

  verifies('hosted:fails', 'has as last error what it threw, which the log reports once', async () => {
    for (const module of [
      `export default () => { throw new Error('no database'); };`,
      `export default { fetch() { throw new Error('no database'); } };`,
    ]) {
      const { release } = await publishHosted(app, owner, module, { status: 'FAILURE' });
      const lastError = 'The module refused to open an MCP session: Error: no database';
      expect(release.lastError).toBe(lastError);
      expect(release.logs.filter(({ level }) => level === 'warning')).toMatchObject([
        { message: 'The module threw Error: no database' },
      ]);
    }
  });

  longVerifies('hosted:scanned', 'is described by its card if it refuses generated values, and only then', async () => {
    const picky = await bundled(`
      import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
      export default function ({ config }) {
        if (config.key !== 'right') throw new Error('wrong key');
        return new McpServer({ name: 'picky', version: '1' }).server;
      }`);
    const configSchema = { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] };
    const serverCard = { serverInfo: { name: 'picky', version: '1' }, tools: [] };
    const believed = await publishHosted(app, owner, picky, { configSchema, serverCard });
    expect(logOf(believed)).toMatch(/scan warning The module wants "key" of its callers/);
    const failed = await publishHosted(app, owner, picky, { configSchema, status: 'FAILURE' });
    expect(errorOf(failed.release)).not.toMatch(/hosted\.invalid/);
  });
});

describe('a bundle on a service that runs none', () => {
  verifies('bundle:run', 'is refused with the setting that allows bundles', async () => {
    const hosting = app.get(LocalHosting);
    const ref = {
      kind: 'release',
      id: randomUUID(),
      ownerId: randomUUID(),
      engine: 'bundle',
      isStateful: true,
    } as const;
    expect(await hosting.whyNot('bundle')).toContain('RUNTIME_BUNDLES');
    expect((await hostedRequest(hosting, ref).answer).error).toBeInstanceOf(HostingUnavailableError);
  });
});

describe('a stateful server', () => {
  verifies('hosted:stateful', 'keeps the sessions of clients apart, of one account too', async () => {
    const { url } = await publishHosted(app, owner, notes, { stateful: true });
    const [one, two] = [await connected(url), await connected(url)];
    await textOf(one, 'keep', { word: 'mine' });
    expect(JSON.parse(await textOf(one, 'tell'))).toEqual({ inMemory: 'mine', stored: 'mine' });
    expect(JSON.parse(await textOf(two, 'tell'))).toEqual({ inMemory: null, stored: null });
    await Promise.all([one.close(), two.close()]);
  });

  longVerifies('hosted:stateful', 'gives clients without a session one for each key', async () => {
    const { url } = await publishHosted(app, owner, notes, { stateful: true });
    const call = async (account: TestAccount, name: string, args: object = {}) => {
      const { body, headers } = modern('tools/call', { name, arguments: args });
      const answer = await ask(url, body, { ...headers, authorization: `Bearer ${account.key}` });
      return (answer.body as { result: { content: { text: string }[] } }).result.content[0].text;
    };
    await call(owner, 'keep', { word: 'mine' });
    expect(JSON.parse(await call(owner, 'tell'))).toMatchObject({ stored: 'mine' });
    expect(JSON.parse(await call(other, 'tell'))).toMatchObject({ stored: null });
  });
});

describe('paths below the address of a hosted release', () => {
  const get = (url: string, init: RequestInit = {}) =>
    fetch(url, {
      redirect: 'manual',
      ...init,
      headers: { authorization: `Bearer ${owner.key}`, cookie: 'a=b', ...init.headers },
    });

  verifies('hosted:paths', 'belong to its code, which never sees our key and our cookies', async () => {
    const { url } = shared;
    const heard = invocationsOf(app);
    const { path, headers } = (await (
      await get(`${url}/a%2Fb/c?d=e`, { headers: { 'x-slipway-invocation': 'forged' } })
    ).json()) as { path: string; headers: Record<string, string> };
    expect(path).toBe('/a%2Fb/c?d=e');
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['authorization']));
    expect(headers).not.toHaveProperty('cookie');
    expect(headers).not.toHaveProperty('x-slipway-invocation');
    expect(headers).toMatchObject({ host: new URL(app.url).host, 'x-forwarded-prefix': new URL(url).pathname });
    const isOfPath = (record: { url?: string | null }) => record.url === `${url}/a%2Fb/c`;
    const record = await until(() => heard.records.find(isOfPath), 'it is recorded');
    expect(record).toMatchObject({ method: 'GET', status: 200, outcome: 'ok', rpcMethod: null });
  });

  verifies('hosted:paths', 'take any method and stream both ways', async () => {
    const { url } = shared;
    for (const method of ['PUT', 'PATCH', 'POST', 'DELETE']) {
      const answer = await get(`${url}/echo`, { method, body: `by ${method}` });
      expect([answer.headers.get('x-method'), await answer.text()]).toEqual([method, `by ${method}`]);
    }
    const large = 'x'.repeat(5_000_000);
    expect(await (await get(`${url}/echo`, { method: 'POST', body: large })).text()).toBe(large);
  });

  verifies('hosted:paths-walls', 'cannot act for people at this service: no cookies, no scripts', async () => {
    const { url } = shared;
    const { headers } = await get(`${url}/page`);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html',
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
      'x-own': '1',
    });
    expect(headers.get('set-cookie')).toBeNull();
    expect((await get(`${url}/away`)).headers.get('location')).toBe(`${new URL(url).pathname}/page`);
  });

  verifies('hosted:paths-reserved', 'where code answers this service only are not there', async () => {
    const { url } = shared;
    /** As it is spelled: `fetch` would put some right. */
    const status = (path: string, method = 'POST') =>
      new Promise<number | undefined>((resolve, reject) => {
        const { port, hostname, pathname } = new URL(url);
        const headers = { authorization: `Bearer ${owner.key}` };
        http
          .request({ port, hostname, method, headers, path: pathname + path }, (response) => {
            response.resume().on('end', () => resolve(response.statusCode));
          })
          .on('error', reject)
          .end();
      });
    for (const path of [
      '/__smithery/auth',
      '/__smithery/auth?a=b',
      '/%5f_smithery/auth',
      '//__smithery/auth',
      '/a/..//__smithery/auth',
      '/a/%2e%2e%2f__smithery/auth',
      '/__SMITHERY/auth',
      '/__smithery./auth',
    ]) {
      expect([path, await status(path)]).toEqual([path, 404]);
    }
    for (const method of ['GET', 'PUT', 'DELETE']) expect(await status('/__smithery/auth', method)).toBe(404);
    expect(await status('/smithery/auth')).toBe(200);
  });

  verifies('hosted:paths', 'require a key like the address itself', async () => {
    const { url } = shared;
    expect((await fetch(`${url}/page`)).status).toBe(401);
    expect((await fetch(`${url}/page`, { method: 'PUT' })).status).toBe(401);
  });
});

describe('a connection to a hosted server', () => {
  it('ends with its server', async () => {
    const server = await publishHosted(app, owner, weather);
    const { path } = await createConnection(app, owner, { server: server.name }, { namespace });
    await app.as(owner).delete(`/servers/${encodeURIComponent(server.name)}`);
    // The processes hear of it behind the answer.
    const called = async () => (await app.as(owner).post(`${path}/.tools/given`, {})).body as { error?: string };
    await until(async () => (await called()).error === 'upstream_error', 'the connection has ended');
  });
});
