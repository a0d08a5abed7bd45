// Also run with the queue on Redis: the counts of all processes.
import type { ServerResponse } from 'node:http';
import { beforeAll, beforeEach, describe, expect, jest } from '@jest/globals';
import { Admission } from '../../../src/modules/auth/admission.service.js';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { RateCounter } from '../../../src/platform/limits/rate-counter.js';
import { testApp, type TestAccount } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { times } from '../../support/mcp/calls.js';
import { openTunnel, type PairingRefused } from '../../support/mcp/uplink-client.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp(
  {
    TRUST_PROXY: '127.0.0.1',
    ACCOUNT_LIMITS: 'keyRequestsPerMinute=20,requestsPerMinute=30,callsAtOnce=2',
    AUTH_FAILURES_MAX: '5',
  },
  { requestsPerAddress: 25 },
);
let account: TestAccount;
let address: string;
let addresses = 0;
let upstream: ScriptedUpstream;
const waiting: (() => void)[] = [];

beforeAll(async () => {
  upstream = await startScripted(({ method, id }, response: ServerResponse) => {
    if (method === 'tools/list') return '{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}';
    const body = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } });
    waiting.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body));
    return undefined;
  });
});
beforeEach(async () => {
  account = await app.account();
  address = `203.0.113.${(addresses += 1)}`;
});

/** A request from {@link address}. */
function send(path: string, key?: string, { method = 'GET', from = address, of = app } = {}): Promise<Response> {
  const headers = { 'x-forwarded-for': from, ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  return fetch(`${of.url}${path}`, { method, headers });
}

/** Sends requests until one is 429: a new minute may begin in between. */
async function exhaust(request: () => Promise<Response>, max: number): Promise<Response> {
  for (let sent = 0; sent <= 2 * max; sent += 1) {
    const response = await request();
    if (response.status === 429) return response;
  }
  throw new Error(`${2 * max} requests were answered`);
}

const ofRest = {
  error: expect.stringMatching(/^This key has sent 20 requests in this minute, its limit\. Try again in/),
};

describe('requests beyond the limit', () => {
  verifies('limits:requests', 'return 429 for a key, in the body of their path, and other keys pass', async () => {
    const refused = await exhaust(() => send('/accounts/me', account.key), 20);
    expect(await refused.json()).toEqual(ofRest);
    expect(refused.headers.get('connection')).toBe('close');
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(60);
    const [rest, tool, mcp] = await Promise.all([
      exhaust(() => send('/connect/none', account.key), 20),
      exhaust(() => send('/connect/none/c/.tools/t', account.key, { method: 'POST' }), 20),
      exhaust(() => send('/connect/none/c/mcp', account.key, { method: 'POST' }), 20),
    ]);
    expect(await rest.json()).toEqual({ error: 'rate_limited', message: ofRest.error });
    expect(await tool.json()).toEqual({ error: 'rate_limited', message: ofRest.error });
    expect(await mcp.json()).toEqual({ jsonrpc: '2.0', id: null, error: { code: -33429, message: ofRest.error } });
    expect((await send('/accounts/me', (await app.account()).key)).status).toBe(200);
  });

  verifies('limits:requests', 'return 429 for an account, whichever of its keys is used', async () => {
    const { body } = await app.as(account).post('/accounts/me/api-keys', { name: 'another' });
    const keys = [account.key, (body as { key: string }).key];
    let turn = 0;
    const refused = await exhaust(() => send('/accounts/me', keys[(turn += 1) % 2]), 30);
    expect(await refused.json()).toEqual({ error: expect.stringMatching(/^This account has sent 30 requests/) });
  });

  verifies('limits:requests', 'return 429 for an address without a valid key, and a valid key passes', async () => {
    const refused = await exhaust(() => send('/servers'), 25);
    expect(await refused.json()).toEqual({ error: expect.stringMatching(/^This address has sent 25 requests/) });
    expect((await exhaust(() => send('/oauth/client.json'), 25)).status).toBe(429);
    expect((await send('/accounts/me', account.key)).status).toBe(200);
    expect((await send('/servers', undefined, { from: '203.0.113.250' })).status).toBe(401);
    for (const path of ['/health', '/ready']) expect((await send(path)).status).toBe(200);
  });

  verifies('limits:requests', 'are foretold by `RateLimit` and `RateLimit-Policy`', async () => {
    const first = await send('/accounts/me', account.key);
    expect(first.headers.get('ratelimit-policy')).toBe('"key";q=20;w=60, "account";q=30;w=60');
    expect(first.headers.get('ratelimit')).toMatch(/^"key";r=19;t=\d+, "account";r=29;t=\d+$/);
    const call = await send('/run/none', account.key, { method: 'POST' });
    expect(call.headers.get('ratelimit')).toMatch(/^"key";r=1[89];t=\d+, "account";r=2[89];t=\d+$/);
    expect((await send('/servers')).headers.get('ratelimit-policy')).toBe('"address";q=25;w=60');
  });

  verifies('limits:requests', 'are the messages of a batch, one by one', async () => {
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const post = (messages: number) =>
      fetch(`${app.url}${path}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${account.key}`,
          'content-type': 'application/json',
          'mcp-protocol-version': '2025-03-26',
        },
        body: JSON.stringify(times(messages, (id) => ({ jsonrpc: '2.0', id, method: 'ping' }))),
      });
    expect((await post(8)).status).toBe(200);
    const refused = await exhaust(() => post(8), 20);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await refused.json()).toEqual({ jsonrpc: '2.0', id: null, error: { code: -33429, message: ofRest.error } });
    const { headers } = await send('/accounts/me', account.key);
    expect(headers.get('ratelimit')).toContain('"key";r=0;');
  });

  verifies('limits:requests', 'are the messages of a batch over HTTP+SSE, refused where it is posted', async () => {
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const authorization = `Bearer ${account.key}`;
    const headers = { authorization, accept: 'text/event-stream' };
    const stream = await fetch(`${app.url}${path}/mcp`, { headers });
    const events = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let read = '';
    const reads = async (text: string) => {
      while (!read.includes(text)) {
        const { value, done } = (await events?.read()) ?? {};
        if (done !== false) throw new Error(`the stream ended after ${read}`);
        read += value;
      }
    };
    await reads('\n\n');
    const address = new URL(/data: (\S+)/.exec(read)?.[1] ?? '', app.url);
    const post = (body: unknown) =>
      fetch(address, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
    expect((await post({ jsonrpc: '2.0', id: 'begun', method: 'initialize', params })).status).toBe(202);
    await reads('"begun"');
    const refused = await exhaust(
      () => post(times(8, (id) => ({ jsonrpc: '2.0', id: `ping ${id}`, method: 'ping' }))),
      20,
    );
    expect(await refused.json()).toEqual({ jsonrpc: '2.0', id: null, error: { code: -33429, message: ofRest.error } });
    // The stream goes on: a message that is allowed in the next minute, or an answer that was begun.
    await reads('"ping 7"');
    await events?.cancel();
  });

  verifies('limits:requests', 'in another process count where Redis holds the counts', async () => {
    const sibling = await app.sibling();
    await exhaust(() => send('/accounts/me', account.key), 20);
    const other = () => send('/accounts/me', account.key, { of: sibling });
    expect((await other()).status).toBe(200);
    if (app.env.redisUrl === null) return sibling.close();
    await until(async () => {
      await send('/accounts/me', account.key);
      return (await other()).status === 429;
    }, 'the other process learns of them');
    await sibling.close();
  });
});

describe('wrong keys', () => {
  verifies('limits:failures', 'get 429 with a growing Retry-After, even in parallel; a valid key passes', async () => {
    const wrong = await Promise.all(times(12, () => send('/accounts/me', generateApiKey())));
    const statuses = wrong.map(({ status }) => status).sort();
    expect(statuses).toEqual([...times(5, () => 401), ...times(7, () => 429)]);
    const waits = wrong.map(({ headers }) => Number(headers.get('retry-after'))).filter(Boolean);
    expect(waits.sort((a, b) => a - b)).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect((await send('/accounts/me', account.key)).status).toBe(200);
    expect((await send('/accounts/me', generateApiKey(), { from: '203.0.113.251' })).status).toBe(401);
  });
});

describe('a refused attempt', () => {
  /** Doors of a connection: the guard of the routes, the fast path for REST and MCP, the handshake of a tunnel. */
  const doors: Record<string, (path: string, headers: Record<string, string>) => Promise<[number, unknown]>> = {
    guard: (path, headers) => answerOf(fetch(app.url + path, { method: 'DELETE', headers })),
    tool: (path, headers) => answerOf(fetch(`${app.url}${path}/.tools/t`, { method: 'POST', headers })),
    mcp: (path, headers) => answerOf(fetch(`${app.url}${path}/mcp`, { method: 'POST', headers })),
    tunnel: (path, headers) =>
      openTunnel(app, undefined, path, { headers }).then(
        () => [101, {}],
        ({ status, body }: PairingRefused) => [status, body],
      ),
  };

  async function answerOf(sent: Promise<Response>): Promise<[number, unknown]> {
    const response = await sent;
    return [response.status, await response.json()];
  }

  verifies(
    'limits:failures',
    'has one response and one count over every interface, and a missing key is no failure',
    async () => {
      const { path } = await createConnection(app, account, { transport: 'uplink' });
      const { body } = await app.as(account).post('/accounts/me/api-keys', { name: 'narrow', scopes: ['read'] });
      const narrow = body as { id: string; key: string };
      const stranger = await app.account();
      const attempts: [status: number, authorization: string | undefined, failures: number, counted: unknown[]][] = [
        [401, undefined, 0, ['address']],
        [401, 'Basic a2V5', 1, ['address']],
        [401, `Bearer ${generateApiKey()}`, 1, ['address']],
        [403, `Bearer ${narrow.key}`, 0, [narrow.id, account.id]],
        [404, `Bearer ${stranger.key}`, 0, [expect.any(String), stranger.id]],
      ];
      const counter = app.get(RateCounter);
      const [admit, add, fail] = [
        jest.spyOn(app.get(Admission), 'admit'),
        jest.spyOn(counter, 'add'),
        jest.spyOn(counter, 'addFailure'),
      ];
      for (const [status, authorization, failures, counted] of attempts) {
        const from = `203.0.113.${(addresses += 1)}`;
        const headers = { 'x-forwarded-for': from, ...(authorization !== undefined && { authorization }) };
        const words = new Set<string>();
        for (const [name, knock] of Object.entries(doors)) {
          for (const spy of [admit, add, fail]) spy.mockClear();
          const [answered, answer] = await knock(path, headers);
          const { message, error } = answer as { message?: string; error: { message: string } };
          words.add((message ?? error.message).replace(/"\w+(:[^"]*)?"/g, '""'));
          const found = [admit.mock.calls.length, fail.mock.calls.length, add.mock.calls.map(([key]) => key)];
          const keys = counted.map((key) => (key === 'address' ? expect.stringContaining(from) : key));
          expect([name, answered, ...found]).toEqual([name, status, 1, failures, keys]);
        }
        expect([...words]).toHaveLength(1);
      }
    },
  );
});

describe('calls in flight', () => {
  verifies('limits:calls-at-once', 'beyond the limit of an account are 429 until one has ended', async () => {
    const { path } = await createConnection(app, account, { mcpUrl: upstream.url });
    const call = () => app.as(account).post(`${path}/.tools/wait`, {});
    const running = times(2, () => call().then(({ status }) => status));
    await until(() => waiting.length === 2, 'two calls are at work');
    const refused = await call();
    expect([refused.status, refused.body]).toEqual([
      429,
      { error: 'rate_limited', message: expect.stringMatching(/^This account has 2 calls at work/) },
    ]);
    for (const answer of waiting.splice(0)) answer();
    expect(await Promise.all(running)).toEqual([200, 200]);
    const next = call().then(({ status }) => status);
    await until(() => waiting.length === 1, 'another call is at work');
    for (const answer of waiting.splice(0)) answer();
    expect(await next).toBe(200);
  });
});
