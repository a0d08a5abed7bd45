import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const MEBIBYTE = 1024 * 1024;

const opened: { close(): Promise<void> }[] = [];

const app = testApp();
/** Gives up early; whatever a busy machine may be late with is asked of the other one. */
let hasty: TestApp;
let upstream: Upstream;
const owner = testAccount(app);
const other = testAccount(app);
let namespace: string;
let connection: string;
let server: string;

beforeAll(async () => {
  upstream = await startUpstream();
  hasty = await app.sibling({ MCP_CALL_TIMEOUT_MS: '400' }, { upstreamCallTimeoutMs: 400 });
  server = await createServer(app, owner);
  namespace = server.split('/')[0];
  connection = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path;
});
afterAll(async () => {
  for (const each of opened) await each.close();
});

/** A request whose body is sent as it is written. */
function raw(method: 'put' | 'post', path: string, body: string, type = 'application/json'): supertest.Test {
  const request = supertest(app.url)[method](path);
  return request.set('authorization', `Bearer ${owner.key}`).set('content-type', type).send(body);
}

/** Makes `work` fail unexpectedly: its table is renamed meanwhile. */
async function without(table: string, work: () => Promise<void>): Promise<void> {
  await app.database.query(`ALTER TABLE ${table} RENAME TO gone_${table}`);
  try {
    await work();
  } finally {
    await app.database.query(`ALTER TABLE gone_${table} RENAME TO ${table}`);
  }
}

/** Answers by the status they must have. */
type Answers = [status: number, answer: supertest.Response][];

describe('every error', () => {
  verifies('error:shape:registry', 'is {error} and nothing else for servers and namespaces', async () => {
    const path = `/servers/${encodeURIComponent(server)}`;
    const answers: Answers = [
      [400, await app.as(owner).put('/namespaces/No')],
      [400, await app.as(owner).put('/namespaces/servers')],
      [400, await app.as(owner).get('/namespaces?pageSize=51')],
      [400, await app.as(owner).put(path, { displayName: 7 })],
      [400, await raw('put', path, '{')],
      [400, await raw('put', path, '"text"')],
      [400, await raw('put', path, '{}', 'application/json; charset=klingon')],
      [401, await app.as().get('/namespaces')],
      [401, await app.as().delete(path)],
      [403, await app.as(other).delete(`/namespaces/${namespace}`)],
      [403, await app.as(other).put(path, {})],
      [404, await app.as(owner).get(`${path}-none`)],
      [404, await app.as(other).delete(path)],
      [404, await app.as(owner).delete('/namespaces/no-such-one')],
      [405, await app.as(owner).post(path, {})],
      [409, await app.as(other).put(`/namespaces/${namespace}`)],
      [409, await app.as(owner).delete(`/namespaces/${namespace}`)],
      [413, await raw('put', path, `{"description":"${'x'.repeat(MEBIBYTE)}"}`)],
    ];
    await without('servers', async () => {
      answers.push([500, await app.as(owner).get(path)], [500, await app.as(owner).get('/namespaces?hasServers=1')]);
    });
    for (const [status, answer] of answers) {
      const { url, method } = answer.request as unknown as { url: string; method: string };
      expect([method, url, answer.status, answer.text]).toEqual([method, url, status, answer.text]);
      expect(answer.body).toEqual({ error: expect.stringMatching(/\S/) });
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
    }
  });

  verifies('error:shape:connect', 'is {error, message}, both strings, on a REST route of connections', async () => {
    const needy = await startUpstream({ requireHeaders: { authorization: 'Bearer right' } });
    opened.push(needy);
    const wants = await createConnection(app, owner, { mcpUrl: needy.url }, { namespace });
    const html = await startFaulty('html');
    opened.push(html);
    const page = await createConnection(app, owner, { mcpUrl: html.url }, { namespace });
    const call = (path: string, tool: string, body: object = {}) => app.as(owner).post(`${path}/.tools/${tool}`, body);
    const answers: Answers = [
      [400, await app.as(owner).put(connection, { nonsense: 1 })],
      [400, await app.as(owner).post(`/connect/${namespace}`, {})],
      [400, await app.as(owner).get(`/connect/${namespace}?limit=0`)],
      [400, await app.as(owner).get(`/connect/${namespace}?cursor=x`)],
      [400, await raw('put', connection, '{')],
      [400, await raw('post', `${connection}/.tools/echo`, '{')],
      [400, await raw('post', `${connection}/.tools/echo`, '[]')],
      [401, await app.as().get(connection)],
      [401, await app.as().post(`${connection}/.tools/echo`, {})],
      [404, await app.as(owner).get('/connect/no-such-one')],
      [404, await app.as(other).get(connection)],
      [404, await app.as(owner).get(`${connection}/.tools/none`)],
      [404, await call(connection, 'none')],
      [404, await app.as(owner).post(`${connection}/nothing/here`, {})],
      [404, await app.as(owner).get('/connect')],
      [409, await app.as(owner).put(connection, { mcpUrl: 'http://127.0.0.1:9/other' })],
      [409, await call(wants.path, 'echo')],
      [413, await raw('put', connection, `{"name":"${'x'.repeat(MEBIBYTE)}"}`)],
      [422, await call(connection, 'rpc_error')],
      [502, await call(page.path, 'echo')],
      [502, await app.as(owner).get(`${page.path}/.tools`)],
      [504, await hasty.as(owner).post(`${connection}/.tools/hold`, {})],
    ];
    upstream.release();
    await without('connections', async () => {
      answers.push([500, await app.as(owner).get(`/connect/${namespace}`)]);
      answers.push([500, await call(`/connect/${namespace}/fresh`, 'echo')]);
    });
    for (const [status, answer] of answers) {
      const { url, method } = answer.request as unknown as { url: string; method: string };
      expect([method, url, answer.status, answer.text]).toEqual([method, url, status, answer.text]);
      expect(answer.body).toEqual({ error: expect.stringMatching(/^[a-z_]+$/), message: expect.stringMatching(/\S/) });
    }
  });

  verifies(
    'error:not-found-text',
    'has the message “Resource not found” for a missing resource under connections',
    async () => {
      const answers = [
        await app.as(owner).get('/connect/no-such-one'),
        await app.as(owner).post('/connect/no-such-one', { mcpUrl: upstream.url }),
        await app.as(owner).get(`/connect/${namespace}/none`),
        await app.as(owner).delete(`/connect/${namespace}/none`),
        await app.as(owner).get(`/connect/${namespace}/none/.tools`),
        await app.as(owner).get(`${connection}/.tools/none`),
        await app.as(owner).post(`${connection}/.tools/none`, {}),
        await app.as(owner).post(`/connect/${namespace}/none/.tools/echo`, {}),
        await app.as(other).get(connection),
        await app.as(other).get(`/connect/${namespace}/.tools`),
      ];
      for (const { status, body } of answers) {
        expect([status, body]).toEqual([404, { error: 'not_found', message: 'Resource not found' }]);
      }
    },
  );

  verifies('error:hint', 'names the missing resource and the nearest name for the owner', async () => {
    const [, name = ''] = server.split('/');
    const misspelt = `${name.slice(0, -1)}-`;
    const id = connection.split('/').at(-1) ?? '';
    const hints: [supertest.Test, string][] = [
      [app.as(owner).get(`/connect/${namespace}x`), `You have no such namespace. Did you mean "${namespace}"?`],
      [
        app.as(owner).get(`/connect/${namespace}/${id}x`),
        `Your namespace "${namespace}" has no such connection. Did you mean "${id}"?`,
      ],
      [app.as(owner).get(`${connection}/.tools/ecko`), `The connection "${id}" has no such tool. Did you mean "echo"?`],
      [
        app.as(owner).post(`${connection}/.tools/ecko`, {}),
        `The connection "${id}" has no such tool. Did you mean "echo"?`,
      ],
      [
        app.as(owner).get(`/servers/${namespace}%2F${misspelt}`),
        `Your namespace "${namespace}" has no such server. Did you mean "${name}"?`,
      ],
      [
        app.as(owner).get(`/servers/${namespace}%2F${misspelt}/releases`),
        `Your namespace "${namespace}" has no such server. Did you mean "${name}"?`,
      ],
    ];
    for (const [request, hint] of hints) {
      const { status, body, headers } = await request;
      expect([status, headers['slipway-hint']]).toEqual([404, hint]);
      expect(['not_found', 'Server not found']).toContain(body.error);
    }
    const claim = 'Claim one with PUT /namespaces/{name}.';
    const missing = { error: 'not_found', message: 'Resource not found' };
    const unknown = { error: 'Nothing answers GET /server. GET /docs lists every operation.' };
    for (const [path, expected, hint] of [
      ['/namespace', missing, `You have no such namespace. ${claim} Did you mean /namespaces?`],
      ['/server?q=weather', unknown, 'Did you mean /servers?'],
      ['/unlike-every-path', missing, `You have no such namespace. ${claim}`],
    ] as const) {
      const { status, body, headers } = await app.as(owner).get(path);
      expect([status, body, headers['slipway-hint']]).toEqual([404, expected, hint]);
    }
    const never = await app.as(owner).get(`/servers/${namespace}%2Foa/releases`);
    expect(never.body).toEqual({ error: 'Server not found' });
    expect(never.headers['slipway-hint']).toContain('3 to 39');
  });

  verifies('error:hint:stranger', 'is the same for other accounts, whether the resource exists or not', async () => {
    const pairs = [
      [connection, `/connect/${uniqueName('no')}/${uniqueName('no')}`],
      [`/connect/${namespace}`, `/connect/${uniqueName('no')}`],
      [`/servers/${encodeURIComponent(server)}/releases`, `/servers/${uniqueName('no')}%2Fnothing/releases`],
    ];
    for (const [foreign, missing] of pairs) {
      const [{ text, headers }, none] = [await app.as(other).get(foreign), await app.as(other).get(missing)];
      expect([text, headers['slipway-hint']]).toEqual([none.text, none.headers['slipway-hint']]);
    }
    const releases = await app.as(other).get(`/servers/${encodeURIComponent(server)}/releases`);
    const readable = await app.as(other).get(`/servers/${encodeURIComponent(server)}`);
    expect([readable.status, releases.status, releases.body]).toEqual([200, 404, { error: 'Server not found' }]);
    expect(releases.headers['slipway-hint']).toMatch(
      /^Only the owner of a server may do this, and you have no such namesp/,
    );
    const misspelt = await app.as(other).get(`/servers/${encodeURIComponent(`${server}x`)}`);
    expect(misspelt.body).toEqual({ error: 'Server not found' });
    expect(misspelt.headers['slipway-hint']).toBe('GET /servers finds the servers that you can read.');
  });

  verifies('error:no-retry-409', 'with status 409 has `x-should-retry: false`', async () => {
    const needy = await startUpstream({ requireHeaders: { authorization: 'Bearer right' } });
    opened.push(needy);
    const wants = await createConnection(app, owner, { mcpUrl: needy.url }, { namespace });
    const conflicts = [
      await app.as(other).put(`/namespaces/${namespace}`),
      await app.as(owner).delete(`/namespaces/${namespace}`),
      await app.as(owner).put(connection, { mcpUrl: 'http://127.0.0.1:9/other' }),
      await app.as(owner).post(`${wants.path}/.tools/echo`, {}),
      await app.as(owner).get(`${wants.path}/.tools`),
      await app.as(app.operator).post('/accounts', { name: owner.name, kind: 'user' }),
    ];
    for (const { status, headers, text } of conflicts) {
      expect([status, headers['x-should-retry'], text]).toEqual([409, 'false', text]);
    }
  });
});

describe('a path that no route serves', () => {
  verifies('error:unknown-path', 'returns 404 in the shape of its prefix, with and without a key', async () => {
    const registry = [
      '/Nowhere',
      '/api',
      '/api/v1/things',
      '/api/servers',
      '/servers/a/b/c/d/e',
      '/health/more',
      '/x',
      '/%00',
    ];
    const connect = [
      '/connect',
      `${new URL('/connect/abc/def/more/and/more', app.url).pathname}`,
      '/some-namespace/a/b/c/d',
    ];
    for (const account of [undefined, owner]) {
      for (const path of registry) {
        const { status, body } = await app.as(account).get(path);
        expect([path, status, body]).toEqual([path, 404, { error: expect.stringMatching(/^Nothing answers GET \//) }]);
      }
      for (const path of connect) {
        const { status, body } = await app.as(account).get(path);
        expect([path, status, body]).toEqual([
          path,
          404,
          { error: 'not_found', message: expect.stringMatching(/^Nothing answers GET \/connect/) },
        ]);
      }
    }
  });

  verifies('error:method', 'returns 405 with Allow for another method, before the key is read', async () => {
    const target = `/servers/${encodeURIComponent(server)}`;
    const allowed: [string, string][] = [
      ['/namespaces', 'GET, HEAD, OPTIONS, POST'],
      ['/health', 'GET, HEAD, OPTIONS'],
      [`${target}/releases`, 'GET, HEAD, OPTIONS, PUT'],
      [connection, 'DELETE, GET, HEAD, OPTIONS, PUT'],
      [`${connection}/.tools/echo`, 'GET, HEAD, OPTIONS, POST'],
      [`${connection}/mcp`, 'DELETE, GET, HEAD, OPTIONS, POST'],
    ];
    for (const account of [undefined, owner]) {
      for (const [path, allow] of allowed) {
        const { status, headers } = await app.as(account).patch(path, {});
        expect([path, status, headers.allow]).toEqual([path, 405, allow]);
      }
    }
    const { body } = await app.as().post('/namespaces/acme', {});
    expect(body).toEqual({ error: 'POST is not allowed: this path takes DELETE, PATCH, PUT.' });
    expect((await app.as().patch(connection, {})).body.error).toBe('method_not_allowed');
  });

  verifies('error:method', 'returns 204 with Allow to OPTIONS where a route exists, and 404 elsewhere', async () => {
    const known = await supertest(app.url).options('/namespaces/acme');
    expect([known.status, known.headers.allow, known.text]).toEqual([204, 'DELETE, OPTIONS, PATCH, PUT', '']);
    const mcp = await supertest(app.url).options(`${connection}/mcp`);
    expect([mcp.status, mcp.headers.allow]).toEqual([204, 'DELETE, GET, HEAD, OPTIONS, POST']);
    for (const path of ['/Nowhere', '/.well-known/anything', '/.well-known/oauth-protected-resource']) {
      expect([path, (await supertest(app.url).options(path)).status]).toEqual([path, 404]);
      expect([path, (await app.as(owner).get(path)).status]).toEqual([path, 404]);
    }
  });

  verifies('error:unknown-path', 'with broken percent-encoding is refused in the shape of its prefix', async () => {
    for (const path of ['/servers/%E0%A4%A', '/namespaces/%', '/%zz']) {
      const response = await supertest(app.url).delete(path).set('authorization', `Bearer ${owner.key}`);
      expect([path, [400, 404].includes(response.status)]).toEqual([path, true]);
      expect(response.body).toEqual({ error: expect.stringMatching(/\S/) });
    }
    const response = await app.as(owner).get(`/connect/${namespace}/%E0%A4%A`);
    expect([400, 404]).toContain(response.status);
    expect(response.body).toEqual({ error: expect.any(String), message: expect.any(String) });
  });
});

describe('a body', () => {
  verifies('error:bad-json', 'returns 400 with the reason if it is not JSON, in the shape of its prefix', async () => {
    // The upstream has been greeted, so nothing but a call would reach it now.
    expect((await app.as(owner).post(`${connection}/.tools/echo`, { message: 'hi' })).status).toBe(200);
    const asked = upstream.requests.length;
    for (const text of ['{', '{"a": }', 'nonsense', '{"displayName": "x"', "{'a': 1}", '[1,2', '{"a":1}}', 'null x']) {
      const registry = await raw('put', `/servers/${encodeURIComponent(server)}`, text);
      expect([text, registry.status]).toEqual([text, 400]);
      expect(registry.body).toEqual({ error: expect.stringMatching(/^The body is not valid JSON: /) });
      for (const answer of [await raw('put', connection, text), await raw('post', `${connection}/.tools/echo`, text)]) {
        expect([text, answer.status]).toEqual([text, 400]);
        expect(answer.body).toEqual({
          error: 'validation_error',
          message: expect.stringMatching(/^The body is not valid JSON: /),
        });
      }
    }
    expect(upstream.requests.length).toBe(asked);
  });

  verifies('error:bad-json', 'is not ignored when it is sent as a form or as text', async () => {
    const text = '{"name": "renamed", "displayName": "renamed"}';
    const advice = 'Send the body as JSON, with Content-Type: application/json';
    for (const type of ['application/x-www-form-urlencoded', 'text/plain']) {
      const registry = await raw('put', `/servers/${encodeURIComponent(server)}`, text, type);
      expect([registry.status, registry.body]).toEqual([400, { error: advice }]);
      for (const answer of [
        await raw('put', connection, text, type),
        await raw('post', `/connect/${namespace}`, text, type),
      ]) {
        expect([answer.status, answer.body]).toEqual([400, { error: 'validation_error', message: advice }]);
      }
      // A tool's arguments are read whatever they are called.
      expect((await raw('post', `${connection}/.tools/echo`, '{"message": "hi"}', type)).status).toBe(200);
      expect((await raw('put', connection, '', type)).status).toBe(200);
    }
  });

  verifies(
    'error:body-too-large',
    'returns 413 over 1 MB in the shape of its prefix; one of 1 MB is read',
    async () => {
      const filled = (bytes: number, key: string) => {
        const frame = JSON.stringify({ [key]: '' });
        return `${frame.slice(0, -2)}${'x'.repeat(bytes - frame.length)}"}`;
      };
      const path = `/servers/${encodeURIComponent(server)}`;
      const cases: ['put' | 'post', string, object][] = [
        ['put', path, { error: expect.stringContaining(String(MEBIBYTE)) }],
        ['put', connection, { error: 'validation_error', message: expect.stringContaining(String(MEBIBYTE)) }],
        [
          'post',
          `/connect/${namespace}`,
          { error: 'validation_error', message: expect.stringContaining(String(MEBIBYTE)) },
        ],
      ];
      for (const [method, target, body] of cases) {
        const over = await raw(method, target, filled(MEBIBYTE + 1, 'unknown'));
        expect([target, over.status, over.body]).toEqual([target, 413, body]);
        const full = await raw(method, target, filled(MEBIBYTE, 'unknown'));
        expect([target, full.status]).not.toEqual([target, 413]);
      }
    },
  );

  verifies('error:body-too-large', 'may be 16 MB for a tool call, and one byte more returns 413', async () => {
    const limit = 16 * MEBIBYTE;
    const send = (bytes: number) => {
      const frame = JSON.stringify({ message: '' });
      const body = `${frame.slice(0, -2)}${'x'.repeat(bytes - frame.length)}"}`;
      return supertest(app.url)
        .post(`${connection}/.tools/echo`)
        .set('authorization', `Bearer ${owner.key}`)
        .set('content-type', 'application/json')
        .send(body);
    };
    const over = await send(limit + 1);
    expect([over.status, over.body]).toEqual([
      413,
      { error: 'validation_error', message: expect.stringContaining(String(limit)) },
    ]);
    const asked = upstream.count('tools/call');
    const beyondOrdinary = await send(2 * MEBIBYTE);
    expect(beyondOrdinary.status).toBe(200);
    expect(upstream.count('tools/call')).toBe(asked + 1);
    expect(upstream.requests.at(-1)?.raw.length).toBeGreaterThan(2 * MEBIBYTE);
  });
});

describe('an unexpected failure', () => {
  verifies('error:internal', 'returns 500 without internal details, with `x-should-retry: false`', async () => {
    const ns = await createNamespace(app, owner, uniqueName('ns'));
    await without('connections', async () => {
      const rest = await app.as(owner).get(`/connect/${ns}`);
      expect([rest.status, rest.body]).toEqual([500, { error: 'internal_error', message: 'Internal server error' }]);
      const mcp = await app.as(owner).post(`/connect/${ns}/c/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      expect([mcp.status, mcp.body]).toEqual([
        500,
        { jsonrpc: '2.0', id: null, error: { code: -32603, message: 'Internal server error' } },
      ]);
      for (const { headers } of [rest, mcp]) {
        expect(headers['x-should-retry']).toBe('false');
        expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
      }
    });
    await without('servers', async () => {
      const response = await app.as(owner).get(`/servers/${encodeURIComponent(server)}`);
      expect([response.status, response.text]).toEqual([500, '{"error":"Internal server error"}']);
    });
    expect((await app.as(owner).get(`/connect/${ns}`)).status).toBe(200);
  });
});
