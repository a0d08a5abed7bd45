// Also run with the queue on Redis by test:long: jobs, and messages between processes.
/** The run endpoint of a server. Failures that every door has are in `mcp/doors.e2e-spec.ts`. */
import { once } from 'node:events';
import http from 'node:http';
import { text as consume } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import {
  type Json,
  mcpAccept,
  request,
  send,
  times,
  toolCall,
  type Answer,
  type CallOptions,
} from '../../support/mcp/calls.js';
import { expectRpcError } from '../../support/mcp/doors.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { refusedPort, startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { publish, releaseIn } from '../../support/releases/releases.js';
import {
  announceCurrent,
  externalServer,
  publishExternal,
  setCurrent,
  type SeededServer,
} from '../../support/releases/current-releases.js';
import { until } from '../../support/until.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import type { Upstream, UpstreamOptions } from '../../support/upstream/upstream.js';
import { aloneVerifies, longVerifies, verifies } from '../../support/verifies.js';

/** Room for a busy machine: what had no deadline would take for ever. */
const MARGIN_MS = 20_000;

/** Cache lifetime in a process that missed the message about a change. */
const BELIEVED_MS = 5_000;

const app = testApp();
/** Another process. */
let second: TestApp;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => void (second = await app.sibling()));

/** Posts a message to a run endpoint as an MCP client does; `to` is a server or whatever stands behind `/run/`. */
function run(
  account: TestAccount | undefined,
  to: SeededServer | string,
  message: string | object,
  { headers = {}, ...options }: CallOptions & { on?: TestApp } = {},
): Promise<Answer> {
  const path = `/run/${typeof to === 'string' ? to : to.slug}`;
  return send(options.on ?? app, account, path, message, { headers: { ...mcpAccept, ...headers }, ...options });
}

function external(upstream: { url: string }, configSchema?: object): Promise<SeededServer> {
  return externalServer(app, owner, upstream.url, configSchema);
}

/** A new upstream, and a server whose current release it is. */
async function served({ configSchema, ...options }: UpstreamOptions & { configSchema?: object } = {}) {
  const upstream = await start(options);
  return { upstream, server: await external(upstream, configSchema) };
}

const echo = (message: string): object => toolCall(1, 'echo', { message });

function calls(upstream: Upstream): Upstream['requests'] {
  return upstream.requests.filter(({ body }) => (body as Json)?.method === 'tools/call');
}

describe('the address of a server', () => {
  verifies('run:any-key', 'is its slug, with or without /mcp, for any valid key', async () => {
    const { upstream, server } = await served({ sessions: true });
    expect(server.slug).toBe(server.name.replace('/', '--'));
    for (const account of [owner, other, app.operator]) {
      for (const path of [server.slug, `${server.slug}/mcp`, `${server.slug}/`, `${server.slug}/mcp/`]) {
        const { status, body } = await run(account, path, echo('hællo'));
        expect([path, status, body]).toEqual([
          path,
          200,
          { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'hællo' }] } },
        ]);
      }
    }
    expect(upstream.count('initialize')).toBe(3);
  });

  verifies('run:any-key', 'is the namespace for a namespace-only server, and may have capitals', async () => {
    const upstream = await start();
    const namespace = await createNamespace(app, owner);
    const names = [namespace, `${namespace}/My_Server-1`];
    await createServer(app, owner, { namespace, server: '' });
    await createServer(app, owner, { namespace, server: 'My_Server-1' });
    for (const name of names) {
      const server = await publishExternal(app, name, upstream.url);
      expect(server.slug).toBe(name.replace('/', '--'));
      expect((await run(other, server, echo('x'))).status).toBe(200);
    }
  });

  verifies('run:unknown', 'returns 404 and a JSON-RPC error when no server has it, however it is written', async () => {
    const slugs = [uniqueName(), 'a', 'x'.repeat(500), '%00', '..%2F', 'a%20b', '%F0%9F%8C%8A', '-', "'--", 'run'];
    for (const slug of slugs) {
      const answer = await run(owner, slug, echo('x'));
      expectRpcError(answer, 404, null);
    }
  });

  verifies('run:unknown', 'has no other paths while its release runs elsewhere', async () => {
    const { upstream, server } = await served();
    for (const path of ['mcp/mcp', 'files/a.txt', 'sse', '..a', 'MCP']) {
      const answer = await run(owner, `${server.slug}/${path}`, echo('x'));
      expect(expectRpcError(answer, 404, null)).toContain(`${app.url}/run/${server.slug} `);
    }
    expect(upstream.requests).toHaveLength(0);
  });

  verifies('run:not-runnable', 'names what is missing if no release runs over HTTP', async () => {
    const none = await createServer(app, owner);
    const bundle = await setCurrent(app, await createServer(app, owner), { type: 'stdio' });
    const hosted = await setCurrent(app, await createServer(app, owner), { type: 'hosted_shttp' });
    const broken = await setCurrent(app, await createServer(app, owner), { upstreamUrl: null });
    const sentences: [slug: string, sentence: RegExp][] = [
      [none.replace('/', '--'), /has no successful release yet/],
      [bundle.slug, /is a bundle: download it with GET \/servers\/[\w%-]+\/download/],
      [hosted.slug, /was never run here: publish it again/],
      [broken.slug, /has no URL to call/],
    ];
    for (const [slug, sentence] of sentences) {
      for (const method of ['initialize', 'tools/list', 'tools/call', 'ping']) {
        const answer = await run(owner, slug, request('id', method, { name: 'x' }));
        expect(answer.headers.get('x-should-retry')).toBe('false');
        expect(expectRpcError(answer, 409, 'id', -33005)).toMatch(sentence);
      }
      expect((await run(owner, slug, request(1, 'x').toString())).status).toBe(400);
    }
  });
});

describe('what publishing hands out', () => {
  longVerifies(['run:new-release', 'release:field:mcp-url'], 'serves the newest release', async () => {
    const upstreams = [await start({ sessions: true }), await start({ sessions: true })];
    const name = await createServer(app, owner);
    for (const [i, upstream] of upstreams.entries()) {
      const payload = { type: 'external', upstreamUrl: upstream.url };
      const { status, body } = await publish(app, owner, name, payload);
      expect(status).toBe(202);
      const release = await releaseIn(app, owner, name, body.deploymentId as string, 'SUCCESS');
      expect(release.mcpUrl).toBe(body.mcpUrl);
      const before = calls(upstream).length;
      const slug = String(release.mcpUrl).replace(`${app.url}/run/`, '');
      await until(async () => {
        expect((await run(other, slug, echo(`release ${i}`))).body.result.content[0].text).toBe(`release ${i}`);
        return calls(upstream).length > before;
      }, 'the release is called');
    }
    await upstreams[0].waitFor(({ sessions }) => sessions.size === 0);
  });
});

describe('what the upstream gets', () => {
  verifies('run:key-kept', 'is neither the caller’s key nor any undeclared header or parameter', async () => {
    const upstream = await start({ sessions: true });
    const plain = await external(upstream);
    const configured = await external(upstream, {
      properties: { region: { type: 'string', 'x-from': { query: 'region' } } },
    });
    const headers = {
      cookie: 'sid=s3cret',
      'x-api-key': 's3cret',
      'x-forwarded-for': 's3cret',
      'mcp-session-id': 'smithery-stateless',
    };
    for (const server of [plain, configured]) {
      const { status } = await run(owner, `${server.slug}?api_key=${owner.key}&region=eu`, echo('x'), { headers });
      expect(status).toBe(200);
    }
    const seen = JSON.stringify(upstream.requests.map(({ path, headers: sent, raw }) => [path, sent, raw]));
    expect(seen).not.toContain(owner.key);
    expect(seen).not.toContain('smithery-stateless');
    expect(seen).not.toContain('s3');
    expect(new Set(upstream.requests.map(({ path }) => path))).toEqual(new Set(['/mcp', '/mcp?region=eu']));
    for (const { headers: sent } of upstream.requests) expect(sent).not.toHaveProperty('authorization');
  });

  verifies('run:key-kept', 'is not the key either when a schema asks for it, as none may', async () => {
    const { upstream, server } = await served({
      configSchema: {
        properties: {
          key: { type: 'string', 'x-from': { header: 'Authorization' }, 'x-to': { header: 'x-stolen' } },
          cookie: { type: 'string', 'x-from': { header: 'cookie' }, 'x-to': { query: 'stolen' } },
        },
      },
    });
    expect((await run(owner, server, echo('x'), { headers: { cookie: 'sid=1' } })).status).toBe(200);
    for (const { path, headers } of upstream.requests) {
      expect(path).toBe('/mcp');
      expect(headers).not.toHaveProperty('x-stolen');
    }
  });

  const schema = {
    type: 'object',
    properties: {
      token: {
        type: 'string',
        title: 'Token',
        description: 'Of your account.',
        'x-from': { header: 'X-Weather-Token' },
        'x-to': { header: 'Authorization' },
      },
      region: { type: 'string' },
      unit: { type: 'string', default: 'metric', 'x-from': { query: 'unit' }, 'x-to': { header: 'X-Unit' } },
      days: { type: 'integer', 'x-from': { header: 'x-days' }, 'x-to': { query: 'd' } },
    },
    required: ['token', 'region', 'unit'],
  };

  verifies('run:config', 'is each value of the config schema, where it goes', async () => {
    const upstream = await start();
    const server = await externalServer(app, owner, `${upstream.url}?fixed=a%20b`, schema);
    const headers = { 'x-weather-token': 'Bearer theirs', 'x-days': '3' };
    const { status } = await run(owner, `${server.slug}/mcp?region=n%C3%B6rd%26x&other=1`, echo('x'), { headers });
    expect(status).toBe(200);
    for (const { path, headers: sent } of upstream.requests) {
      const { pathname, searchParams } = new URL(path, upstream.url);
      expect([pathname, Object.fromEntries(searchParams)]).toEqual([
        '/mcp',
        { fixed: 'a b', region: 'nörd&x', d: '3' },
      ]);
      expect(sent).toMatchObject({ authorization: 'Bearer theirs', 'x-unit': 'metric' });
      expect(sent).not.toHaveProperty('x-weather-token');
    }
  });

  verifies('run:config-missing', 'is nothing while required values are missing, and the error names them', async () => {
    const { upstream, server } = await served({ configSchema: schema });
    const http = {
      headers: {
        'X-Weather-Token': { label: 'Token', description: 'Of your account.', required: true },
        'x-days': { label: 'days', required: false },
      },
      query: { region: { label: 'region', required: true }, unit: { label: 'unit', required: false } },
    };
    const asked: [path: string, headers: Record<string, string>, missing: object][] = [
      ['', {}, { headers: ['X-Weather-Token'], query: ['region'] }],
      ['?region=eu', {}, { headers: ['X-Weather-Token'], query: [] }],
      ['?region=', { 'x-weather-token': 't' }, { headers: [], query: ['region'] }],
    ];
    for (const [query, headers, missing] of asked) {
      for (const method of ['initialize', 'tools/list', 'tools/call']) {
        const answer = await run(owner, server.slug + query, request('id', method, { name: 'echo' }), { headers });
        expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([409, 'false']);
        expect(answer.headers.get('www-authenticate')).toBeNull();
        expect(answer.body).toEqual({
          jsonrpc: '2.0',
          id: 'id',
          error: { code: -32002, message: 'Input required', data: { http, missing } },
        });
      }
    }
    const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
    expect((await run(owner, server, note)).status).toBe(202);
    expect(upstream.requests).toHaveLength(0);
  });

  verifies('run:config-missing', 'is nothing while a value has the wrong kind, which no response repeats', async () => {
    const { upstream, server } = await served({ configSchema: schema });
    const headers = { 'x-weather-token': 's3cret', 'x-days': 's3cret' };
    const answer = await run(owner, `${server.slug}?region=x&unit=%0d%0ax-evil:%20s3cret`, request('id', 'ping'), {
      headers,
    });
    const message = expectRpcError(answer, 400, 'id', -32602);
    expect(message).toMatch(/"x-days" must be a whole number/);
    expect(message).toMatch(/"unit" must be/);
    expect(answer.text).not.toContain('s3cret');
    expect(upstream.requests).toHaveLength(0);
  });

  longVerifies('run:channels', 'is one session for callers with the same values alone', async () => {
    const { upstream, server } = await served({
      sessions: true,
      delayInitializeMs: 50,
      configSchema: {
        properties: { token: { type: 'string', 'x-from': { header: 'x-token' } }, mode: { type: 'string' } },
      },
    });
    const told = (i: number) => ({ account: i % 2 ? owner : other, token: `token-${i % 3}`, mode: `mode-${i % 2}` });
    const answers = await Promise.all(
      times(60, (i) => {
        const { account, token, mode } = told(i);
        const message = toolCall(1, 'crosstalk', { token: `${token} ${mode} ${i}` });
        return run(account, `${server.slug}?mode=${mode}`, message, { headers: { 'x-token': token } });
      }),
    );
    expect(answers.map(({ body }) => textOf(body.result))).toEqual(
      times(60, (i) => `${told(i).token} ${told(i).mode} ${i}`),
    );
    expect(upstream.count('initialize')).toBe(6);
    expect(upstream.sessions.size).toBe(6);
    // Every request of a session has the same values.
    const bySession = new Map<string, Set<string>>();
    for (const { path, headers, raw } of calls(upstream)) {
      const sent = `${String(headers['x-token'])} ${path}`;
      const session = String(headers['mcp-session-id']);
      bySession.set(session, (bySession.get(session) ?? new Set()).add(sent));
      const [token, mode] = JSON.parse(raw).params.arguments.token.split(' ');
      expect(sent).toBe(`${token} /mcp?mode=${mode}`);
    }
    expect([...bySession.values()].map(({ size }) => size)).toEqual(times(6, () => 1));
  });
});

describe('what a server remembers in its session', () => {
  verifies('run:channels', 'is never seen by another account', async () => {
    const { upstream, server } = await served({ sessions: true });
    for (const account of [owner, other, owner, other]) {
      expect((await run(account, server, echo('x'))).status).toBe(200);
    }
    expect(upstream.count('initialize')).toBe(2);
    const sessions = calls(upstream).map(({ headers }) => headers['mcp-session-id']);
    expect(sessions[0]).toBe(sessions[2]);
    expect(sessions[1]).toBe(sessions[3]);
    expect(sessions[0]).not.toBe(sessions[1]);
  });
});

describe('a change of the server', () => {
  aloneVerifies('run:renamed', 'takes effect immediately for the slug; the old one is unknown', async () => {
    const { upstream, server } = await served({ sessions: true });
    let known = server.slug;
    const isUnknownAtOnce = async () => {
      expect((await run(owner, known, echo('x'))).status).toBe(200);
      const slug = uniqueName('renamed');
      await app.database.query('UPDATE servers SET slug = $2 WHERE id = $1', [server.serverId, slug]);
      const from = performance.now();
      app.get(PubSub).publish('servers.changed', { id: server.serverId, slug });
      await until(async () => (await run(owner, known, echo('x'))).status === 404, 'the old slug is unknown');
      known = slug;
      return performance.now() - from < BELIEVED_MS - 2_000;
    };
    // Again where the machine took that long.
    await until(isUnknownAtOnce, 'the old slug is unknown at once');
    expect((await run(owner, known, echo('new'))).body.result.content[0].text).toBe('new');
    expect(upstream.count('initialize')).toBe(1);
  });

  longVerifies('run:renamed', 'takes effect within 5 s if the message is lost', async () => {
    const server = await external(await start());
    const gone = await external(await start());
    for (const one of [server, gone]) expect((await run(owner, one, echo('x'))).status).toBe(200);
    const slug = uniqueName('renamed');
    await app.database.query('UPDATE servers SET slug = $2 WHERE id = $1', [server.serverId, slug]);
    await app.database.query('DELETE FROM servers WHERE id = $1', [gone.serverId]);
    expect((await run(owner, slug, echo('x'))).status).toBe(200);
    const unknown = async () => {
      const answers = await Promise.all([run(owner, server, echo('x')), run(owner, gone, echo('x'))]);
      return answers.every(({ status }) => status === 404);
    };
    await until(unknown, 'both are unknown', BELIEVED_MS + MARGIN_MS);
  });

  verifies('run:new-release', 'closes its sessions in every process when it is a deletion', async () => {
    const { upstream, server } = await served({ sessions: true });
    for (const on of [app, second]) expect((await run(owner, server, echo('x'), { on })).status).toBe(200);
    expect(upstream.sessions.size).toBe(2);
    await app.database.query('DELETE FROM servers WHERE id = $1', [server.serverId]);
    app.get(PubSub).publish('servers.deleted', { id: server.serverId, slug: '' });
    await upstream.waitFor(({ sessions }) => sessions.size === 0);
    for (const on of [app, second]) expect((await run(owner, server, echo('x'), { on })).status).toBe(404);
  });

  verifies('run:new-release', 'leads to the new release immediately; running calls finish where they are', async () => {
    const [before, after] = [await start({ sessions: true }), await start({ sessions: true })];
    const server = await external(before);
    const held = run(owner, server, toolCall('held', 'hold'));
    await before.waitFor((u) => u.count('tools/call') === 1);
    await publishExternal(app, server.name, after.url);
    await until(
      async () => {
        await run(owner, server, echo('x'));
        return after.count('tools/call') > 0;
      },
      'the new release is called',
      2_000,
    );
    const seen = before.count('tools/call');
    for (const i of times(5, (n) => n)) expect((await run(owner, server, echo(`${i}`))).status).toBe(200);
    expect(before.count('tools/call')).toBe(seen);
    expect(before.sessions.size).toBe(1);
    before.release();
    expect((await held).body).toMatchObject({ id: 'held', result: { content: [{ text: 'released' }] } });
    // The old session ends when its last call does.
    await before.waitFor(({ sessions }) => sessions.size === 0);
    expect(after.sessions.size).toBe(1);
  });

  aloneVerifies('run:new-release', 'reaches every process, and a first release a server that had none', async () => {
    const name = await createServer(app, owner);
    const slug = name.replace('/', '--');
    for (const on of [app, second]) expect((await run(owner, slug, echo('x'), { on })).status).toBe(409);
    const isToldAtOnce = async () => {
      const upstream = await start();
      const server = await setCurrent(app, name, { upstreamUrl: upstream.url });
      const from = performance.now();
      announceCurrent(second, server);
      for (const on of [app, second]) {
        await until(async () => {
          await run(owner, slug, echo('x'), { on });
          return upstream.count('initialize') >= (on === app ? 1 : 2);
        }, 'the process calls the release');
      }
      return performance.now() - from < BELIEVED_MS - 2_000;
    };
    // The first release, and the next one: before what was believed of the last grew old. Again where the machine took that long.
    for (let releases = 0; releases < 2; releases += 1) await until(isToldAtOnce, 'every process is told');
  });
});

describe('a call', () => {
  verifies('run:new-release', 'goes to the release that is current when its slow body ends', async () => {
    const [before, after] = [await start(), await start()];
    const server = await external(before);
    expect((await run(owner, server, echo('x'))).status).toBe(200);
    const text = JSON.stringify(echo('slow'));
    const headers = { authorization: `Bearer ${owner.key}`, 'content-length': String(text.length) };
    const slow = http.request(`${app.url}/run/${server.slug}`, { method: 'POST', headers });
    const answer = once(slow, 'response').then(([response]) => consume(response as http.IncomingMessage));
    await new Promise((resolve) => slow.write(text.slice(0, 10), resolve));
    // A round trip later the service has read what was sent before.
    expect((await run(owner, server, echo('x'))).status).toBe(200);
    await publishExternal(app, server.name, after.url);
    await until(async () => {
      await run(owner, server, echo('x'));
      return after.count('tools/call') > 0;
    }, 'the new release is called');
    slow.end(text.slice(10));
    expect(JSON.parse(await answer)).toMatchObject({ result: { content: [{ text: 'slow' }] } });
    expect(calls(after).some(({ raw }) => raw.includes('"slow"'))).toBe(true);
  });
});

verifies('mcp:auth-required', 'a rejected value of the caller is named by its place, and not repeated', async () => {
  const upstream = await start({ requireHeaders: { authorization: 'right' } });
  const server = await external(upstream, {
    properties: { key: { type: 'string', 'x-from': { header: 'x-key' }, 'x-to': { header: 'authorization' } } },
  });
  const wrong = await run(owner, server, request('id', 'tools/list'), { headers: { 'x-key': 's3cret' } });
  expect(expectRpcError(wrong, 200, 'id', -33001)).toContain('header "x-key"');
  expect(wrong.text).not.toContain('s3cret');
  const right = await run(owner, server, echo('x'), { headers: { 'x-key': 'right' } });
  expect(right.body.result.content[0].text).toBe('x');
});

describe('the record of invocations', () => {
  describe('with requests that name a server', () => {
    const heard: Invocation[] = [];
    let url: (one: SeededServer, path?: string) => string;
    let served: Record<'server' | 'bundle' | 'dead' | 'locked', SeededServer>;

    beforeAll(async () => {
      const on = await app.sibling();
      try {
        Object.assign(on.get(InvocationsService), { record: (invocation: Invocation) => heard.push(invocation) });
        const upstream = await start();
        served = {
          server: await external(upstream, { properties: { token: { type: 'string' } }, required: ['token'] }),
          bundle: await setCurrent(app, await createServer(app, owner), { type: 'stdio' }),
          dead: await externalServer(app, owner, await refusedPort()),
          locked: await external(closing(await startFaulty('needs-auth'))),
        };
        const { server, bundle, dead, locked } = served;
        url = (one, path = '') => `${on.url}/run/${one.slug}${path}`;
        const path = `${server.slug}/mcp?token=s3cret`;

        await run(owner, path, echo('s3cret'), { on });
        await run(owner, path, toolCall(1, 'fail'), { on });
        await run(owner, path, toolCall(1, 'rpc_error'), { on });
        await run(owner, path, request(1, 'tools/list'), { on });
        await run(owner, path, { jsonrpc: '2.0', method: 'notifications/initialized' }, { on });
        await run(owner, server, request(1, 'tools/list'), { on });
        await run(owner, path, '{"broken', { on });
        await run(owner, path, echo('x'), { on, headers: { origin: 'https://evil.example' } });
        await run(owner, `${server.slug}/files?token=s3cret`, echo('x'), { on });
        await run(owner, bundle, echo('x'), { on });
        await run(owner, dead, echo('x'), { on });
        await run(owner, locked, request(1, 'tools/list'), { on });
        await run(owner, 'no-such-server', echo('x'), { on });
        await run(undefined, server, echo('x'), { on });
        const leaving = new AbortController();
        const call = expect(run(owner, path, toolCall(1, 'hold'), { on, signal: leaving.signal })).rejects.toThrow();
        await upstream.waitFor((u) => calls(u).some(({ raw }) => raw.includes('"hold"')));
        leaving.abort();
        await call;
        await until(() => heard.at(-1)?.toolName === 'hold', 'the call is over');
        await run(owner, path, request(1, 'ping'), { on });
      } finally {
        await on.close();
      }
    });

    it('contains the outcome of each', () => {
      const { server, bundle, dead, locked } = served;
      const mcp = url(server, '/mcp');
      expect(
        heard.map((one) => [
          one.url,
          one.rpcMethod,
          one.toolName,
          one.status,
          one.outcome,
          one.exceptions[0]?.name ?? null,
        ]),
      ).toEqual([
        [mcp, 'tools/call', 'echo', 200, 'ok', null],
        [mcp, 'tools/call', 'fail', 200, 'toolError', 'ToolError'],
        [mcp, 'tools/call', 'rpc_error', 200, 'rpcError', 'RpcError'],
        [mcp, 'tools/list', null, 200, 'ok', null],
        [mcp, 'notifications/initialized', null, 202, 'ok', null],
        [url(server), 'tools/list', null, 409, 'denied', 'InputRequiredError'],
        [mcp, null, null, 400, 'denied', null],
        [mcp, null, null, 403, 'denied', 'ForbiddenError'],
        [url(server, '/files'), null, null, 404, 'denied', 'NotFoundError'],
        [url(bundle), 'tools/call', 'echo', 409, 'denied', 'NotRunnableError'],
        [url(dead), 'tools/call', 'echo', 200, 'exception', 'UpstreamError'],
        [url(locked), 'tools/list', null, 200, 'exception', 'ServerAuthRequiredError'],
        [mcp, 'tools/call', 'hold', 202, 'canceled', 'CallerLeftError'],
        [mcp, 'ping', null, 200, 'ok', null],
      ]);
    });

    verifies('runtime-log:answered-errors', 'contains the text of an error that the server answered with', () => {
      const texts = heard.slice(1, 3).map(({ exceptions }) => exceptions.map(({ message }) => message));
      expect(texts).toEqual([['The tool failed'], ['-32602: The tool refused the arguments']]);
    });

    it('contains the reason of an upstream failure, and no secret', () => {
      expect(heard[10].exceptions[0].message).toContain('127.0.0.1');
      expect(JSON.stringify(heard)).not.toContain('s3cret');
    });
  });
});
