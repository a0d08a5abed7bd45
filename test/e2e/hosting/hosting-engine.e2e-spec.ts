import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ProgramStartError } from '../../../src/hosting/hosting.errors.js';
import { INVOCATION_HEADER, RPC_METHOD_HEADER, SESSION_HEADER } from '../../../src/hosting/hosting.types.js';
import { ask, bundled, HostedPrograms, rpc, type HostedProgram } from '../../support/hosting/hosted-programs.js';
import { CLIENT_CODE, type Tried } from '../../support/hosting/egress-worker.js';
import { workerdEngine } from '../../support/hosting/hosted-runtime.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const SERVER = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { z } from 'zod';
  export default function ({ config, env, accessToken }) {
    if (config.broken) throw new RangeError('cannot be made');
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool('given', { description: 'What it was given' }, async () => {
      console.log('asked for', { config });
      return { content: [{ type: 'text', text: JSON.stringify({ config, env, accessToken }) }] };
    });
    return server.server;
  }
  export const createAuthAdapter = async ({ env }) => ({
    getAuthorizationUrl: async ({ state }) => ({ authorizationUrl: 'https://id.test/?state=' + state + '&client=' + env.CLIENT }),
    exchangeCode: async () => { throw new Error('wrong code'); },
  });
  export const handleHttp = async (request, { env, sessions }) =>
    Response.json({ path: new URL(request.url).pathname, env, hasSessions: sessions !== undefined });`;

const STATEFUL = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export const stateful = true;
  let finish = null;
  export default async function ({ config, session, onMessage }) {
    const server = new McpServer({ name: 'counter', version: '1.0.0' });
    let [inMemory, greeted] = [0, 0];
    server.server.oninitialized = () => { greeted += 1; };
    server.registerTool('wait', {}, async () => {
      await new Promise((resolve) => { finish = resolve; });
      return { content: [{ type: 'text', text: '"done"' }] };
    });
    server.registerTool('finish', {}, async () => {
      finish();
      return { content: [{ type: 'text', text: 'null' }] };
    });
    server.registerTool('waits', {}, async () => {
      return { content: [{ type: 'text', text: String(finish !== null) }] };
    });
    server.registerTool('count', {}, async () => {
      const count = ((await session.get('count')) ?? 0) + 1;
      await session.set('count', count);
      console.log('counted', count);
      return { content: [{ type: 'text', text: JSON.stringify({ count, inMemory: ++inMemory, greeted, id: session.id, config }) }] };
    });
    onMessage(async (message) => ({ heard: message, count: await session.get('count') }));
    return server;
  }
  export const handleHttp = async (request, { sessions }) => {
    try {
      return Response.json({ answer: await sessions.send(new URL(request.url).searchParams.get('to'), { hello: 1 }) });
    } catch (error) {
      return Response.json({ error: error.message }, { status: 404 });
    }
  };`;

const AUTHORIZED = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export const stateful = true;
  export default function ({ accessToken }) {
    const server = new McpServer({ name: 'authorized', version: '1.0.0' });
    const content = [{ type: 'text', text: JSON.stringify(accessToken ?? null) }];
    server.registerTool('token', {}, async () => ({ content }));
    return server;
  }
  export const createAuthAdapter = () => ({});`;

const CLIENT = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

/** Calls a tool. @returns the JSON in its answer */
async function call(program: HostedProgram, name: string, wishes: Parameters<typeof rpc>[3] = {}) {
  const { reply } = await rpc(program, 'tools/call', { name, arguments: {} }, wishes);
  return JSON.parse(reply.result.content[0].text);
}

/** Opens a session, as clients do, and returns the header that continues it. */
async function opened(program: HostedProgram, at = '/', named = {}): Promise<Record<string, string>> {
  const { headers } = await rpc(program, 'initialize', CLIENT, { path: at, headers: named });
  const session = { 'mcp-session-id': String(headers['mcp-session-id']) };
  const body = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await ask(program, { headers: { accept: 'application/json, text/event-stream', ...session }, body });
  return session;
}

/** A worker that does what the path of a request names. */
const worker = (deeds: string) =>
  `const deeds = {${deeds}};
   export default { async fetch(request, env, context) {
     const { pathname } = new URL(request.url);
     return new Response(JSON.stringify((await deeds[pathname.slice(1)](request, env, context)) ?? null));
   } };`;

const programs = new HostedPrograms();
afterAll(() => programs.stopAll());

describe('a factory of MCP servers', () => {
  let server: string;
  let program: HostedProgram;

  beforeAll(async () => {
    server = await bundled(SERVER);
    program = await programs.start(server, { secrets: { CLIENT: 'sesame "€"\n\\', 'odd name"': 'x' } });
  });

  it('is given its secrets and nothing else, and the configuration of the query', async () => {
    expect(await call(program, 'given', { path: '/?db.host=x&n=5&__proto__.y=1&a.constructor=2' })).toEqual({
      config: { db: { host: 'x' }, n: 5 },
      env: { CLIENT: 'sesame "€"\n\\', 'odd name"': 'x' },
    });
  });

  it('is given the token its users were authorized with', async () => {
    const { accessToken } = await call(program, 'given', { headers: { authorization: 'Bearer abc' } });
    expect(accessToken).toBe('abc');
  });

  it('has no event stream when it is stateless', async () => {
    const { status, headers, json } = await ask(program, { headers: { accept: 'text/event-stream' } });
    expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'POST, DELETE' });
    expect(json().error.code).toBe(-32000);
  });

  it('gets values of the types its schema names, with defaults', async () => {
    const configSchema = {
      type: 'object',
      properties: {
        key: { type: 'string' },
        limit: { type: 'integer', minimum: 1, default: 10 },
        db: { type: 'object', properties: { isSecure: { type: 'boolean', default: true } } },
      },
      required: ['key'],
      additionalProperties: false,
    };
    const strict = await programs.start(server, { configSchema });
    const { config } = await call(strict, 'given', { path: '/?key=5000&utm_source=x' });
    expect(config).toEqual({ key: '5000', limit: 10, db: { isSecure: true } });
  });

  it('serves authorizations at its own path', async () => {
    const auth = (body: unknown) => ask(program, { path: '/__smithery/auth', body });
    const given = await auth({ action: 'getAuthorizationUrl', payload: { state: 's' } });
    expect(given.json()).toEqual({
      ok: true,
      value: { authorizationUrl: 'https://id.test/?state=s&client=sesame "€"\n\\' },
    });
    const wrong = await auth({ action: 'exchangeCode', payload: {} });
    expect([wrong.status, wrong.json()]).toEqual([500, { ok: false, error: 'adapter_error', message: 'wrong code' }]);
    const unknown = await auth({ action: 'constructor' });
    expect([unknown.status, unknown.json().error]).toEqual([400, 'unknown_action']);
  });

  it('answers HTTP at every other path by its own handler', async () => {
    const { json } = await ask(program, { path: '/hook/x' });
    expect(json()).toMatchObject({ path: '/hook/x', hasSessions: false });
  });

  it('reports its exceptions to its author, and to callers only that it failed', async () => {
    const id = crypto.randomUUID();
    const { status, reply } = await rpc(
      program,
      'tools/list',
      {},
      { path: '/?broken=1', headers: { [INVOCATION_HEADER]: id } },
    );
    expect([status, reply.error.message]).toEqual([500, 'Internal error']);
    const trace = await until(() => program.traces.find((found) => found.invocationId === id), 'the exception is told');
    expect(trace.exceptions).toMatchObject([{ name: 'RangeError', message: 'cannot be made' }]);
  });
});

describe('a server of version 2 of the SDK', () => {
  it('responds like one of version 1', async () => {
    const program = await programs.start(
      await bundled(`
        import { McpServer } from '@modelcontextprotocol/server';
        export default () => {
          const server = new McpServer({ name: 'two', version: '1.0.0' });
          server.registerTool('hi', {}, async () => ({ content: [{ type: 'text', text: '"hello"' }] }));
          return server;
        };`),
    );
    expect(await call(program, 'hi')).toBe('hello');
  });
});

describe('a stateful server', () => {
  let server: string;

  beforeAll(async () => {
    server = await bundled(STATEFUL);
  });

  it('isolates sessions, and keeps their stored data over a restart that clients do not notice', async () => {
    const ownerId = crypto.randomUUID();
    const first = await programs.start(server, { isStateful: true, ownerId });
    const [one, other] = [await opened(first, '/?who=me'), await opened(first)];
    expect(await call(first, 'count', { headers: one })).toMatchObject({
      count: 1,
      inMemory: 1,
      config: { who: 'me' },
    });
    expect(await call(first, 'count', { headers: one })).toMatchObject({
      count: 2,
      inMemory: 2,
      id: one['mcp-session-id'],
    });
    expect(await call(first, 'count', { headers: other })).toMatchObject({ count: 1, config: {} });
    first.kill();
    await first.exited;
    const second = await programs.start(server, { isStateful: true, ownerId });
    expect(await call(second, 'count', { headers: one })).toMatchObject({
      count: 3,
      inMemory: 1,
      config: { who: 'me' },
    });
  });

  it('returns 404 for a session that is malformed, forged, of another server, or closed', async () => {
    const program = await programs.start(server, { isStateful: true });
    const foreign = await opened(await programs.start(server, { isStateful: true }));
    const session = await opened(program);
    const ended = await ask(program, { method: 'DELETE', headers: session });
    expect(ended.status).toBe(200);
    const forged = {
      'mcp-session-id': session['mcp-session-id'].replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    };
    for (const headers of [
      session,
      foreign,
      forged,
      { 'mcp-session-id': 'nonsense' },
      { 'mcp-session-id': 'f'.repeat(64) },
    ]) {
      const { status, reply } = await rpc(program, 'tools/list', {}, { headers });
      expect([status, reply.error.code]).toEqual([404, -32001]);
    }
  });

  it('has an event stream for each session', async () => {
    const program = await programs.start(server, { isStateful: true });
    const session = await opened(program);
    const headers = { ...session, accept: 'text/event-stream' };
    const { statusCode, body } = await program.dispatcher.request({
      origin: 'http://x',
      path: '/',
      method: 'GET',
      headers,
    });
    expect(statusCode).toBe(200);
    expect(await call(program, 'count', { headers: session })).toMatchObject({ count: 1 });
    body.on('error', () => undefined).destroy();
  });

  it('closes a session that a new version of the code does not take up, so that its client opens another', async () => {
    const ownerId = crypto.randomUUID();
    const first = await programs.start(server, { isStateful: true, ownerId });
    const session = await opened(first);
    await first.stop(2_000);
    const second = await programs.start(
      "export const stateful = true; export default () => { throw new Error('new'); };",
      { isStateful: true, ownerId },
    );
    const { status } = await rpc(second, 'tools/list', {}, { headers: session });
    expect(status).toBe(404);
    await until(() => second.traces.some(({ exceptions }) => exceptions[0]?.message === 'new'), 'its author hears why');
  });

  it('continues a session that is opened by its name again, and receives `initialized` once', async () => {
    const program = await programs.start(server, { isStateful: true });
    const name = { [SESSION_HEADER]: 'of somebody' };
    const [one, again] = [await opened(program, '/?who=me', name), await opened(program, '/?who=me', name)];
    expect(again).toEqual(one);
    expect(await call(program, 'count', { headers: one })).toMatchObject({ count: 1, inMemory: 1, greeted: 1 });
    const { reply, headers } = await rpc(program, 'initialize', CLIENT, { path: '/?who=me', headers: name });
    expect(reply).toMatchObject({ id: 1, result: { protocolVersion: '2025-06-18', serverInfo: { name: 'counter' } } });
    expect(headers[SESSION_HEADER]).toBe('kept');
    expect(await call(program, 'count', { headers: again })).toMatchObject({ count: 2, inMemory: 2, greeted: 1 });
    const other = await opened(program, '/?who=me', { [SESSION_HEADER]: 'of somebody else' });
    expect(await call(program, 'count', { headers: other })).toMatchObject({ count: 1, inMemory: 1 });
  });

  it('is opened once by concurrent requests', async () => {
    const program = await programs.start(server, { isStateful: true });
    const all = await Promise.all(
      Array.from({ length: 8 }, () => opened(program, '/', { [SESSION_HEADER]: 'of somebody' })),
    );
    const counts = await Promise.all(all.map((headers) => call(program, 'count', { headers })));
    expect(counts.map(({ inMemory }) => inMemory).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('creates a new server for another initialize, keeps the stored data, and answers calls in flight', async () => {
    const program = await programs.start(server, { isStateful: true });
    const name = { [SESSION_HEADER]: 'of somebody' };
    const one = await opened(program, '/?who=me', name);
    await call(program, 'count', { headers: one });
    const waiting = call(program, 'wait', { headers: one, id: 2 });
    await until(() => call(program, 'waits', { headers: one }), 'a call runs');
    expect(await opened(program, '/?who=you', name)).toEqual(one);
    expect(await call(program, 'count', { headers: one })).toMatchObject({
      count: 2,
      inMemory: 1,
      config: { who: 'you' },
    });
    await call(program, 'finish', { headers: one });
    expect(await waiting).toBe('done');
    const asking = { ...CLIENT, capabilities: { elicitation: {} } };
    await rpc(program, 'initialize', asking, { path: '/?who=you', headers: name });
    expect(await call(program, 'count', { headers: one })).toMatchObject({ count: 3, inMemory: 1 });
    await opened(program, '/?who=you', name);
    expect(await call(program, 'count', { headers: one })).toMatchObject({ count: 4, inMemory: 2 });
  });

  it('creates its server again for another token of its user, as it was given the first one', async () => {
    const program = await programs.start(await bundled(AUTHORIZED), { isStateful: true });
    const name = { [SESSION_HEADER]: 'of somebody' };
    for (const token of ['first', 'second']) {
      const authorization = `Bearer ${token}`;
      const session = await opened(program, '/', { ...name, authorization });
      expect(await call(program, 'token', { headers: { ...session, authorization } })).toBe(token);
    }
  });

  it('closes a session by its name, and deletes its stored data', async () => {
    const program = await programs.start(server, { isStateful: true });
    const name = { [SESSION_HEADER]: 'of somebody' };
    const headers = await opened(program, '/', name);
    await call(program, 'count', { headers });
    expect((await ask(program, { method: 'DELETE', headers: name })).status).toBe(200);
    expect((await ask(program, { method: 'DELETE', headers: name })).status).toBe(404);
    expect((await rpc(program, 'tools/list', {}, { headers })).status).toBe(404);
    expect(await opened(program, '/', name)).toEqual(headers);
    expect(await call(program, 'count', { headers })).toMatchObject({ count: 1, inMemory: 1 });
  });

  it('receives messages of its HTTP handler to a session, and no forged ones', async () => {
    const program = await programs.start(server, { isStateful: true });
    const session = await opened(program);
    await call(program, 'count', { headers: session });
    const sent = await ask(program, { path: `/send?to=${session['mcp-session-id']}` });
    expect(sent.json()).toEqual({ answer: { heard: { hello: 1 }, count: 1 } });
    const lost = await ask(program, { path: `/send?to=${'0'.repeat(64)}` });
    expect([lost.status, lost.json().error]).toEqual([404, 'Session not found']);
    const forged = await ask(program, {
      headers: { ...session, 'x-slipway-session-send': '1' },
      body: { message: 'x' },
    });
    expect([forged.status, forged.text]).toEqual([406, expect.stringContaining('Not Acceptable')]);
  });

  it('attributes lines in a session to their request', async () => {
    const program = await programs.start(server, { isStateful: true });
    const session = await opened(program);
    const id = crypto.randomUUID();
    await call(program, 'count', { headers: { ...session, [INVOCATION_HEADER]: id } });
    const trace = await until(() => program.traces.find((found) => found.lines.length > 0), 'the line is told');
    expect(trace).toMatchObject({ invocationId: id, lines: [{ level: 'log', message: 'counted 1' }] });
  });
});

describe('a worker with a fetch handler', () => {
  it('receives requests without internal headers', async () => {
    const program = await programs.start(
      worker(
        `look: (request, env) => ({ url: request.url, headers: [...request.headers.keys()], env, cf: request.cf ?? null })`,
      ),
      { secrets: { API_KEY: 'sesame' } },
    );
    const headers = {
      [INVOCATION_HEADER]: crypto.randomUUID(),
      [RPC_METHOD_HEADER]: 'tools/call',
      [SESSION_HEADER]: 'x',
    };
    const { json } = await ask(program, { path: '/look?y=1', headers });
    expect(json()).toEqual({
      url: 'http://program.test/look?y=1',
      headers: ['connection', 'host'],
      env: { API_KEY: 'sesame' },
      cf: null,
    });
  });

  it('leaves no secret and no code in its folder once it runs', async () => {
    const program = await programs.start(worker('x: () => 1'), { secrets: { API_KEY: 'sesame' } });
    expect((await readdir(program.runDir)).sort()).toEqual(['in', 'log', 'out', 'up']);
  });

  it('may bring its own class of sessions', async () => {
    const program = await programs.start(
      `export class McpSession { constructor(state) { this.state = state; } fetch() { return new Response(this.state.id.toString()); } }
       export default { fetch: (request, env) => env.MCP_SESSION.get(env.MCP_SESSION.newUniqueId()).fetch('http://x/') };`,
      { isStateful: true },
    );
    expect((await ask(program)).text).toMatch(/^[0-9a-f]{64}$/);
  });

  it('finishes work of `waitUntil` after the response', async () => {
    const program = await programs.start(
      worker(
        `later: (request, env, context) => context.waitUntil(new Promise((done) => setTimeout(() => { console.log('done'); done(); }, 50)))`,
      ),
    );
    await ask(program, { path: '/later' });
    await until(() => program.traces.some(({ lines }) => lines[0]?.message === 'done'), 'the rest was done');
  });
});

/** What the operating system knows of a program. */
async function processOf({ pid }: HostedProgram) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => new RegExp(`^${name}:\\t(\\S+)`, 'm').exec(status)?.[1];
  return {
    uid: field('Uid'),
    rights: field('CapBnd'),
    noNew: field('NoNewPrivs'),
    network: await readlink(`/proc/${pid}/ns/net`),
    env: (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter((pair) => pair !== ''),
  };
}

describe('the process of a program', () => {
  const container = new HostedPrograms(workerdEngine('container'));
  afterAll(() => container.stopAll());

  verifies(
    'runtime:isolation:level',
    'has an account of its own for every owner, without rights, in a network without a way out',
    async () => {
      const [one, other] = [await programs.start(worker('x: () => 1')), await programs.start(worker('x: () => 1'))];
      const [first, second] = [await processOf(one), await processOf(other)];
      expect(first).toMatchObject({ rights: '0000000000000000', noNew: '1' });
      expect(first.network).not.toBe(second.network);
      expect(first.network).not.toBe(await readlink('/proc/self/ns/net'));
      if (process.getuid?.() === 0) expect(new Set([first.uid, second.uid, '0']).size).toBe(3);
    },
  );

  verifies(
    'runtime:isolation:level',
    'has at the level container the account and network of the service, but neither its environment nor more rights',
    async () => {
      const program = await container.start(worker('x: () => 1'), { secrets: { API_KEY: 'sesame' } });
      expect(await processOf(program)).toMatchObject({
        uid: String(process.getuid?.()),
        noNew: '1',
        network: await readlink('/proc/self/ns/net'),
        env: [expect.stringMatching(/^PATH=/)],
      });
    },
  );
});

for (const level of ['isolated', 'container']) {
  describe(`hostile code at the level ${level}`, () => {
    const programs = new HostedPrograms(workerdEngine(level));
    afterAll(() => programs.stopAll());

    verifies(
      'runtime:isolation:reach',
      'has no file, no environment, no process and no network of the service, and cannot evaluate code from text',
      async () => {
        const program = await programs.start(
          worker(`
          files: async () => { const fs = await import('node:fs'); return ['/etc/passwd', '/proc/self/environ', 'config.capnp', '/proc/self/fd/5'].filter((file) => fs.existsSync(file)); },
          env: () => process.env,
          bindings: async () => Object.keys((await import('cloudflare:workers')).env),
          run: async () => { try { return (await import('node:child_process')).execSync('id').toString() } catch (error) { return 'refused' } },
          eval: () => { try { return eval('1') } catch (error) { return error.name } },
          fetch: async () => { const answer = await fetch('http://127.0.0.1:1/'); return [answer.status, await answer.text()] },`),
          { secrets: { API_KEY: 'sesame' } },
        );
        const done = async (deed: string) => (await ask(program, { path: `/${deed}` })).json();
        expect(await done('files')).toEqual([]);
        expect(await done('env')).toEqual({ API_KEY: 'sesame' });
        expect(await done('bindings')).toEqual(['API_KEY']);
        expect(await done('run')).toBe('refused');
        expect(await done('eval')).toBe('EvalError');
        expect(await done('fetch')).toEqual([403, expect.stringContaining('127.0.0.1')]);
      },
    );

    verifies(
      'runtime:isolation:reach',
      'reaches no port of this machine and no metadata address, whatever it dials with',
      async () => {
        const server = createServer();
        let dialled = 0;
        server.on('connection', () => (dialled += 1)).listen(0, '::');
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
        const local = own.map(({ address, family }) => (family === 'IPv6' ? `[${address.split('%')[0]}]` : address));
        const program = await programs.start(CLIENT_CODE);
        const tried = async (what: object) => (await ask(program, { body: what })).json() as Tried;
        for (const host of [...local, 'localhost', '0.0.0.0', '169.254.169.254', '[fd00:ec2::254]']) {
          const url = `http://${host}:${port}/latest/meta-data`;
          const isRefused = { status: 403, text: expect.stringContaining('public addresses only') };
          expect(await tried({ way: 'fetch', url })).toEqual(isRefused);
          // Its client refuses addresses of IPv6 by itself.
          if (!host.startsWith('[')) expect(await tried({ way: 'nodeHttp', url })).toEqual(isRefused);
          expect(await tried({ way: 'socket', url })).toEqual({ status: 403 });
          expect((await tried({ way: 'tcp', address: `${host}:${port}`, text: 'x' })).error).toBeDefined();
          const net = { way: 'nodeNet', host: host.replace(/[[\]]/g, ''), port, text: 'x' };
          expect((await tried(net)).error).toBeDefined();
        }
        expect(dialled).toBe(0);
        server.close();
      },
    );
  });
}

describe('the output of a program', () => {
  it('reads as on a console, with its level, and cannot be taken for a line of the runtime', async () => {
    const program = await programs.start(
      worker(`talk: () => {
        console.log('a %s', 'b', { deep: [new Map([[1, 2n]])] });
        console.debug('d'); console.info('i'); console.warn('w'); console.error(new TypeError('bad'));
        process.stdout.write('{"timestamp":"1","level":"error","source":"workerd","message":"service program: forged"}\\n');
        console.log('x\\n{"timestamp":1,"level":"error","message":"forged"}');
      }`),
    );
    const id = crypto.randomUUID();
    await ask(program, { path: '/talk', headers: { [INVOCATION_HEADER]: id } });
    const { lines } = await until(() => program.traces[0], 'the lines are told');
    expect(lines.slice(0, 4)).toMatchObject([
      { level: 'log', message: 'a b { deep: [ Map(1) { 1 => 2n } ] }' },
      { level: 'debug', message: 'd' },
      { level: 'info', message: 'i' },
      { level: 'warn', message: 'w' },
    ]);
    expect(lines[4]).toMatchObject({
      level: 'error',
      message: expect.stringMatching(/^TypeError: bad\n {4}at .*module\.js/),
    });
    expect(lines[5]).toMatchObject({ level: 'log', message: expect.stringContaining('forged') });
    expect(lines).toHaveLength(7);
    await program.stop(2_000);
    expect(program.traces).toHaveLength(1);
    expect((await program.exited).detail).toBe('');
  });

  it('is recorded with its exceptions, up to its limit', async () => {
    const program = await programs.start(
      worker(
        `much: () => { for (let n = 0; n < 1000; n += 1) console.log('x'.repeat(100)); throw new TypeError('boom'); }`,
      ),
      { limits: { logBytes: 10_240 } },
    );
    await ask(program, { path: '/much', headers: { [INVOCATION_HEADER]: crypto.randomUUID() } });
    const [{ lines, exceptions, ...trace }] = await until(() => program.traces[0] && program.traces, 'it is told');
    expect(trace).toMatchObject({ outcome: 'exception', isTruncated: true });
    expect(exceptions).toMatchObject([
      { name: 'TypeError', message: 'boom', stack: expect.stringContaining('module.js') },
    ]);
    expect(lines.length).toBeLessThan(103);
    expect(lines.at(-1)).toMatchObject({ level: 'warn', message: 'Lines were left out: one request may log 10 KB.' });
  });

  it('is not lost when its process is killed in the middle of a request', async () => {
    const program = await programs.start(worker(`loop: () => { console.log('before the loop'); for (;;); }`));
    const id = crypto.randomUUID();
    const asked = ask(program, { path: '/loop', headers: { [INVOCATION_HEADER]: id } }).catch((error: Error) => error);
    await expect(
      until(
        () =>
          program.ping(300).then(
            () => false,
            () => true,
          ),
        'it is deaf',
      ),
    ).resolves.toBe(true);
    program.kill();
    await program.exited;
    expect(await asked).toBeInstanceOf(Error);
    expect(program.traces).toMatchObject([{ invocationId: id, lines: [{ level: 'log', message: 'before the loop' }] }]);
  });

  it('belongs to no request if it is written while the module loads, or under a forged id', async () => {
    const program = await programs.start(
      `console.log('loading'); ${worker(`
        forge: async (request, env, context) => {
          const { exports } = await import('cloudflare:workers');
          const headers = { '${INVOCATION_HEADER}': '${crypto.randomUUID()}' };
          return (await exports.default.fetch('http://x/talk', { headers })).status;
        },
        talk: () => console.log('forged'),`)}`,
    );
    await ask(program, { path: '/forge' });
    await until(() => program.traces.length === 2, 'both are told');
    expect(program.traces.map(({ invocationId, lines }) => [invocationId, lines[0].message])).toEqual([
      ['', 'loading'],
      ['', 'forged'],
    ]);
  });
});

describe('a module that does not start', () => {
  const cases: [string, string, RegExp][] = [
    ['throws', "\nthrow new Error('no luck')", /^Error: no luck\n {4}at module\.js:2:7$/],
    ['is no JavaScript', 'export default {', /^SyntaxError: Unexpected end of input\n {4}at module\.js:1/],
    ['misses a module', "import 'left-pad';", /^Error: No such module "left-pad"\.\n {4}imported from "module\.js"$/],
    ['exports nothing', 'export const x = 1;', /The default export must be .*; the module has no default export\./],
    ['exports a class', 'export default class A {}', /it is a class\./],
    ['exports a server', 'export default { connect() {} };', /it is a server\. Export a function that makes it/],
  ];

  it.each(cases)('has the reason when it %s, and nothing of this host', async (_name, module, said) => {
    const error = await programs.start(module).then(
      () => null,
      (thrown: Error) => thrown,
    );
    expect(error).toBeInstanceOf(ProgramStartError);
    expect(error?.message).toBe('The module could not be started (1).');
    const { output } = error as ProgramStartError;
    expect(output).toMatch(said);
    expect(output).not.toMatch(/workerd|\/proc|\/tmp|main\.mjs/);
  });
});

/** Process ids of workerd processes that this process has spawned. */
async function spawned(): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  const lines = stdout.split('\n').map((line) => line.trim().split(/\s+/));
  return lines
    .filter(([, parent, ...args]) => parent === `${process.pid}` && args.includes('serve'))
    .map(([id]) => +id);
}

it('a program that the machine kills while it loads is started again, and then reported as killed', async () => {
  const others = await spawned();
  const started = programs.start('for (;;);').catch((error: Error) => error);
  const killed: number[] = [];
  while (killed.length < 2) {
    const id = await until(
      async () => (await spawned()).find((pid) => ![...others, ...killed].includes(pid)),
      'it loads',
    );
    process.kill(id, 'SIGKILL');
    killed.push(id);
  }
  expect(String(await started)).toMatch(/^ProgramStartError: The machine killed the module twice while it was loaded/);
});

describe('the end of a program', () => {
  it('is by memory when its heap is full, and by memory it cannot get a failed request only', async () => {
    const program = await programs.start(
      worker(`
        heap: () => { const all = []; for (;;) all.push({ x: [all.length] }); },
        buffers: () => { const all = []; try { for (;;) all.push(new Uint8Array(16_777_216).fill(1)); } catch (error) { return [error.name, all.length]; } },`),
      { limits: { memoryMb: 64 } },
    );
    const [name, count] = (await ask(program, { path: '/buffers' })).json();
    expect(name).toBe('RangeError');
    expect(count).toBeLessThan(16);
    await ask(program, { path: '/heap' }).catch(() => undefined);
    expect((await program.exited).reason).toBe('memory');
  });

  it('is by request when it was asked to, and a crash otherwise', async () => {
    const [asked, killed] = [await programs.start(worker('x: () => 1')), await programs.start(worker('x: () => 1'))];
    await asked.ping(2_000);
    await asked.stop(2_000);
    expect(await asked.exited).toEqual({ reason: 'stopped', detail: '' });
    process.kill(killed.pid ?? 0, 'SIGKILL');
    expect(await killed.exited).toMatchObject({ reason: 'crashed', detail: 'The process ended with SIGKILL.' });
  });
});
