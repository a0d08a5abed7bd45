/** A channel to an upstream: its session, the ids and the cancellation of its calls, and how they break, at REST and MCP. */
import { beforeAll, describe, expect } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import { eventsOf, mcp, mcpAccept, open, request, send, times, toolCall, type Json } from '../../support/mcp/calls.js';
import { doorsOf, expectFailure } from '../../support/mcp/doors.js';
import { createConnection } from '../../support/factories.js';
import {
  sendJson,
  type ScriptedMessage,
  type ScriptedUpstream,
} from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import type { RecordedRequest, Upstream, UpstreamOptions } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const kinds: [string, UpstreamOptions][] = [
  ['JSON', {}],
  ['event streams', { sse: true }],
  ['JSON with sessions', { sessions: true }],
  ['event streams with sessions', { sessions: true, sse: true }],
];

const app = testApp();
/** Another process. */
let second: TestApp;
const owner = testAccount(app);
const other = testAccount(app);
const { connect, connected, scripted, rest, ask, session } = doorsOf(app, owner);

beforeAll(async () => void (second = await app.sibling()));

function messageOf({ body }: RecordedRequest): { id?: number; method?: string; params?: Json } {
  return body ?? {};
}

function seen(upstream: Upstream, method: string): RecordedRequest[] {
  return upstream.requests.filter((one) => messageOf(one).method === method);
}

/** The ids that were named by the cancel notifications the upstream saw. */
function cancelledIds(upstream: Upstream): unknown[] {
  return seen(upstream, 'notifications/cancelled').map((one) => messageOf(one).params.requestId);
}

/** Half of the callers over REST, half over MCP, all of the latter with `id: 1`; gives the text each got. */
function crosstalk(on: TestApp, path: string, count: number): Promise<string[]> {
  return Promise.all(
    times(count, async (i) => {
      const args = { token: `token-${i}` };
      if (i % 2 === 0) return textOf((await rest(path, 'crosstalk', args, { on })).body);
      const { body } = await ask(path, toolCall(1, 'crosstalk', args), { on });
      expect(body.id).toBe(1);
      return textOf(body.result);
    }),
  );
}

describe.each(kinds)('one channel to an upstream that answers %s', (_, options) => {
  verifies('channel:ids-never-cross', '200 callers with one id each get their own answer', async () => {
    const { upstream, path } = await connected(options);
    const answers = await Promise.all(times(200, (i) => ask(path, toolCall(1, 'crosstalk', { token: `token-${i}` }))));
    expect(answers.map(({ body }) => [body.id, textOf(body.result)])).toEqual(times(200, (i) => [1, `token-${i}`]));
    const ids = seen(upstream, 'tools/call').map((one) => messageOf(one).id);
    expect(new Set(ids).size).toBe(200);
    expect(upstream.count('initialize')).toBe(1);
    expect(upstream.sessions.size).toBe(options.sessions ? 1 : 0);
  });

  verifies('channel:single-flight', '50 concurrent first calls open one session, in a new process too', async () => {
    const { upstream, path } = await connected({ ...options, delayInitializeMs: 50 });
    expect(upstream.count('initialize')).toBe(1);
    expect(await crosstalk(second, path, 50)).toEqual(times(50, (i) => `token-${i}`));
    expect(upstream.count('initialize')).toBe(2);
    expect(upstream.count('notifications/initialized')).toBe(2);
  });
});

describe('a lost session', () => {
  const notFound = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}';
  const callsIn = (upstream: ScriptedUpstream) =>
    upstream.seen.filter(({ method }) => method === 'tools/call').map(({ session }) => session);

  for (const forgottenSessionStatus of [404, 400] as const) {
    for (const sse of [false, true]) {
      verifies(
        'channel:reinitialize',
        `is opened again once for 50 calls after ${forgottenSessionStatus} (streams: ${sse})`,
        async () => {
          const options = { sessions: true, forgottenSessionStatus, sse, delayInitializeMs: 20 };
          const { upstream, path } = await connected(options);
          for (const initializes of [2, 3]) {
            upstream.forgetSessions();
            expect(await crosstalk(app, path, 50)).toEqual(times(50, (i) => `token-${i}`));
            expect(upstream.count('initialize')).toBe(initializes);
            expect(upstream.sessions.size).toBe(1);
          }
        },
      );
    }
  }

  verifies('channel:reinitialize', 'is opened again without the dead id, and a call runs once', async () => {
    const { upstream, path } = await connected({ sessions: true });
    const [dead] = upstream.sessions;
    upstream.forgetSessions();
    expect((await rest(path, 'echo', { message: 'again' })).status).toBe(200);
    const initialize = seen(upstream, 'initialize').at(-1);
    expect(initialize?.headers['mcp-session-id']).toBeUndefined();
    const calls = seen(upstream, 'tools/call').map(({ headers }) => headers['mcp-session-id']);
    expect(calls).toEqual([dead, [...upstream.sessions][0]]);
  });

  verifies('channel:reinitialize', 'is an error, not an endless loop, when it is lost repeatedly', async () => {
    const { upstream, path } = await scripted((_message, res) => sendJson(res, notFound, 404), { sessions: true });
    const answer = await rest(path, 'echo');
    expectFailure(answer, 502, 'upstream_error');
    expect(answer.body.message).toContain('answered 404');
    expect(callsIn(upstream)).toEqual(['session-1', 'session-2']);
    expect(upstream.count('initialize')).toBe(2);
  });

  verifies('channel:reinitialize', 'costs one handshake, also when a call observes the loss late', async () => {
    let refuseLate: (() => void) | undefined;
    const { upstream, path } = await scripted(
      ({ session, params }, res) => {
        if (session !== 'session-1') return '{"content":[]}';
        const refuse = () => sendJson(res, notFound, 404);
        if (params?.name === 'late') refuseLate = refuse;
        else refuse();
      },
      { sessions: true },
    );
    const late = rest(path, 'late');
    while (!refuseLate) await rest(path, 'early');
    expect((await rest(path, 'early')).status).toBe(200);
    refuseLate();
    expect((await late).status).toBe(200);
    expect(upstream.count('initialize')).toBe(2);
    expect(upstream.seen.at(-1)?.session).toBe('session-2');
  });

  const rpcRefusal = (code: number) => `{"jsonrpc":"2.0","id":null,"error":{"code":${code},"message":"No session"}}`;
  const refusals: [number, string, string][] = [
    [400, 'text/plain', 'Invalid or missing session ID'],
    [400, 'application/json', rpcRefusal(-32602)],
    [409, 'application/json', '{"error":"unknown session"}'],
    [422, 'application/json', '{"detail":"session"}'],
    [500, 'text/plain', 'Internal Server Error'],
    [500, 'application/json', rpcRefusal(-32603)],
  ];

  /** A connection to a server that answers so each request that `isRefused`. */
  const forgetful = (
    [status, type, body]: [number, string, string],
    isRefused: (message: ScriptedMessage) => boolean,
  ) =>
    scripted(
      (message, res) => {
        if (!isRefused(message)) return message.method === 'tools/list' ? '{"tools":[]}' : '{"content":[]}';
        res.writeHead(status, { 'content-type': type }).end(body);
      },
      { sessions: true },
    );

  for (const refusal of refusals) {
    verifies(
      'channel:session-in-doubt',
      `refused with ${refusal.join(' ')} fails one call at most, not the next`,
      async () => {
        let lost = '';
        const { upstream, path } = await forgetful(refusal, ({ session }) => session === lost);
        expect((await rest(path, 't')).status).toBe(200);
        lost = 'session-1';
        const failed = await rest(path, 't');
        const isTold = /session ID|unknown session/.test(refusal[2]);
        // The server lists no tool: to an error of JSON-RPC the answer is that there is none.
        expect(failed.status).toBe(isTold ? 200 : refusal[2].startsWith('{"jsonrpc"') ? 404 : 502);
        if (!isTold) expect((await rest(path, 't')).status).toBe(200);
        expect(callsIn(upstream)).toEqual(['session-1', 'session-1', 'session-2']);
        expect((await ask(path, toolCall(1, 't'))).body.result).toEqual({ content: [] });
        await until(() => upstream.count('ping') === 2, 'the new session was probed too');
      },
    );
  }

  verifies('channel:session-in-doubt', 'lost twice within 30 seconds is healed twice', async () => {
    const lost: string[] = [];
    const { upstream, path } = await forgetful(refusals[3], ({ session }) => lost.includes(session ?? ''));
    expect((await rest(path, 't')).status).toBe(200);
    for (const round of [1, 2]) {
      lost.push(`session-${round}`);
      expect((await rest(path, 't')).status).not.toBe(200);
      expect((await rest(path, 't')).status).toBe(200);
      await until(() => upstream.count('ping') === 2 * round, 'the new session was probed too');
    }
    expect(upstream.count('initialize')).toBe(3);
  });

  verifies('channel:session-in-doubt', 'is the same for an MCP client with a session of its own', async () => {
    let lost: string[] = [];
    const { upstream, path } = await forgetful(refusals[3], ({ session }) => lost.includes(session ?? ''));
    const headers = await session(path, { roots: {} });
    const call = () => ask(path, toolCall(1, 't'), { headers });
    expect((await call()).body.result).toEqual({ content: [] });
    lost = upstream.seen.flatMap((message) => message.session ?? []);
    expect((await call()).body.error.message).toMatch(/answered 422/);
    expect((await call()).body.result).toEqual({ content: [] });
  });

  verifies('channel:session-in-doubt', 'is not dropped where ping succeeds, and many calls share a ping', async () => {
    const { upstream, path } = await forgetful(refusals[4], ({ method }) => method === 'tools/call');
    for (const answer of await Promise.all(times(5, () => rest(path, 't')))) expect(answer.status).toBe(502);
    expect((await rest(path, 't')).status).toBe(502);
    expect([upstream.count('ping'), upstream.count('initialize')]).toEqual([2, 1]);
  });

  verifies('channel:session-in-doubt', 'is dropped once in 30 seconds for a server with a broken ping', async () => {
    const { upstream, path } = await forgetful(refusals[4], ({ method }) => method !== 'tools/list');
    for (let call = 0; call < 4; call += 1) expect((await rest(path, 't')).status).toBe(502);
    expect(callsIn(upstream)).toEqual(['session-1', 'session-2', 'session-2', 'session-2']);
    expect(upstream.count('ping')).toBe(2);
  });

  verifies('channel:session-in-doubt', 'is not assumed if the server is busy or replies to the request', async () => {
    for (const status of [403, 408, 413, 429, 502, 503, 504, 500]) {
      const { upstream, path } = await scripted(
        ({ id, method }, res) => {
          if (method !== 'tools/call') return '{"tools":[]}';
          const isRead = status === 500;
          sendJson(res, isRead ? `{"jsonrpc":"2.0","id":${id},"error":{"code":-32603,"message":"no"}}` : '{}', status);
        },
        { sessions: true },
      );
      expect((await rest(path, 't')).status).not.toBe(200);
      expect([status, upstream.count('ping'), upstream.count('initialize')]).toEqual([status, 0, 1]);
    }
  });

  verifies('channel:reinitialize', 'leaves calls alone that run', async () => {
    const { upstream, path } = await connected({ sessions: true });
    const running = rest(path, 'hold');
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    upstream.forgetSessions();
    expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    upstream.release();
    expect((await running).status).toBe(200);
  });

  verifies('channel:reinitialize', 'is not confused with an unknown method that returns 404', async () => {
    const { upstream, path } = await scripted(({ id }, res) =>
      sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"Method not found"}}`, 404),
    );
    expect((await ask(path, request(1, 'odd/method'))).body.error.code).toBe(-32601);
    expect(upstream.count('odd/method')).toBe(1);
  });
});

describe('a caller that leaves', () => {
  for (const [kind, options] of [...kinds, ['2026-07-28', { modernOnly: true }] as const]) {
    for (const face of ['REST', 'MCP']) {
      verifies('channel:cancel', `cancels its own call over ${face} at an upstream (${kind})`, async () => {
        const { upstream, path } = await connected(options);
        const leaving = new AbortController();
        const call = (signal?: AbortSignal) =>
          face === 'REST' ? rest(path, 'hold', {}, { signal }) : ask(path, toolCall('theirs', 'hold'), { signal });
        const left = expect(call(leaving.signal)).rejects.toThrow();
        await upstream.waitFor((u) => u.count('tools/call') === 1);
        const stays = call();
        await upstream.waitFor((u) => u.count('tools/call') === 2);
        leaving.abort();
        await left;
        const [first, second] = seen(upstream, 'tools/call');
        await upstream.waitFor(() => first.aborted);
        // To a server of 2026-07-28 the closed socket is the cancel.
        const notes = options.modernOnly ? 0 : 1;
        await upstream.waitFor((u) => u.count('notifications/cancelled') === notes);
        expect(cancelledIds(upstream)).toEqual(notes ? [messageOf(first).id] : []);
        expect(second.closedAt).toBeUndefined();
        for (const { headers } of seen(upstream, 'notifications/cancelled')) {
          expect(headers['mcp-session-id']).toBe(first.headers['mcp-session-id']);
        }
        upstream.release();
        expect((await stays).status).toBe(200);
        expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
        expect(upstream.count('notifications/cancelled')).toBe(notes);
      });
    }
  }

  verifies('channel:cancel', 'while the session opens disturbs no other, and its call is not sent', async () => {
    const { upstream, path } = await connected({ delayInitializeMs: 300 });
    const leaving = new AbortController();
    const left = expect(rest(path, 'hold', {}, { on: second, signal: leaving.signal })).rejects.toThrow();
    await upstream.waitFor((u) => u.count('initialize') === 2);
    const stays = rest(path, 'echo', { message: 'stays' }, { on: second });
    leaving.abort();
    await left;
    expect(textOf((await stays).body)).toBe('stays');
    expect(seen(upstream, 'tools/call').map((one) => messageOf(one).params.name)).toEqual(['echo']);
    expect(upstream.count('initialize')).toBe(2);
  });
});

describe('notifications/cancelled of a client', () => {
  const cancelled = (requestId: unknown) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId, reason: 'spec' },
  });

  verifies('channel:cancel', 'cancels the call with that id and completes its request, and no other', async () => {
    const { upstream, path } = await connected({ sessions: true });
    const calls = ['a', 'b', 7, '7'].map((id) => ask(path, toolCall(id, 'hold', { id })));
    await upstream.waitFor((u) => u.count('tools/call') === 4);
    const idUpstream = (id: unknown) =>
      messageOf(
        seen(upstream, 'tools/call').find((one) => messageOf(one).params.arguments.id === id) as RecordedRequest,
      ).id;

    expect((await ask(path, cancelled('b'))).status).toBe(202);
    expect((await ask(path, cancelled(7))).status).toBe(202);
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 2);
    expect(cancelledIds(upstream)).toEqual([idUpstream('b'), idUpstream(7)]);
    // The exchange of a cancelled request ends, since a client may never close it, without an answer.
    for (const i of [1, 2]) expect(await calls[i]).toMatchObject({ status: 202, text: '' });
    upstream.release();
    for (const i of [0, 3]) expect(textOf((await calls[i]).body.result)).toBe('released');
  });

  verifies('channel:cancel', 'completes a response that is already an event stream', async () => {
    const { upstream, path } = await connected({
      tools: [
        {
          name: 'reports',
          inputSchema: {},
          call: async ({ exchange, held }) => {
            exchange.send({ method: 'notifications/message', params: {} });
            await held();
            return {};
          },
        },
      ],
    });
    // A client with a session would resume a stream that ends without an answer.
    for (const [headers, ends] of [
      [{}, []],
      [await session(path), [{ code: -33004, message: 'The call was cancelled' }]],
    ] as const) {
      const all = { ...mcpAccept, ...headers };
      const response = await open(app, owner, `${path}/mcp`, toolCall('a', 'reports'), { headers: all });
      await send(app, owner, `${path}/mcp`, cancelled('a'), { headers: all });
      const events = eventsOf(await response.text()).map((event) => JSON.parse(event));
      expect(events.flatMap(({ method, error }) => error ?? (method === undefined ? 'an answer' : []))).toEqual(ends);
    }
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 2);
  });

  verifies('channel:cancel', 'cancels none when the id is ambiguous, unknown or over', async () => {
    const { upstream, path } = await connected();
    await ask(path, toolCall('over', 'echo', { message: '' }));
    const calls = [1, 1, 2].map((id) => ask(path, toolCall(id, 'hold')));
    await upstream.waitFor((u) => u.count('tools/call') === 4);
    for (const id of [1, 'over', 'unknown', '2', null, { id: 2 }]) {
      expect((await ask(path, cancelled(id))).status).toBe(202);
    }
    upstream.release();
    for (const call of calls) expect(textOf((await call).body.result)).toBe('released');
    expect(upstream.count('notifications/cancelled')).toBe(0);
  });

  verifies('channel:cancel', 'cancels nothing of another tenant, another session or another connection', async () => {
    const { upstream, path } = await connected();
    const beside = await connect(upstream.url);
    const theirs = (await createConnection(app, other, { mcpUrl: upstream.url })).path;
    const headers = await session(path);
    let isOver = false;
    const call = ask(path, toolCall(1, 'hold'), { headers }).finally(() => (isOver = true));
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    expect((await mcp(app, other, path, cancelled(1), { headers })).status).toBe(404);
    for (const [account, at] of [
      [other, theirs],
      [owner, beside],
    ] as const) {
      expect((await mcp(app, account, at, cancelled(1), { headers })).status).toBe(404);
      expect((await mcp(app, account, at, cancelled(1))).status).toBe(202);
    }
    expect((await ask(path, cancelled(1), { headers: await session(path) })).status).toBe(202);
    expect((await ask(path, cancelled(1))).status).toBe(202);
    // A round trip later whatever they cancelled would show.
    expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    expect([isOver, upstream.count('notifications/cancelled')]).toEqual([false, 0]);
    expect((await ask(path, cancelled(1), { headers })).status).toBe(202);
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 1);
    expect(await call).toMatchObject({ status: 202, text: '' });
  });
});

describe('a connection that breaks', () => {
  for (const [kind, options] of kinds) {
    verifies('channel:outcome-unknown', `in a tool call is reported so and not repeated: ${kind}`, async () => {
      const { upstream, path } = await connected(options);
      const answer = await rest(path, 'cut');
      expectFailure(answer, 502, 'upstream_error');
      expect(answer.body.message).toMatch(/unknown/);
      expect(upstream.count('tools/call')).toBe(1);
      const { status, body } = await ask(path, toolCall(1, 'cut'));
      expect([status, body.id]).toEqual([200, 1]);
      expect(body.error.message).toMatch(/unknown/);
      expect(upstream.count('tools/call')).toBe(2);
      expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    });
  }

  verifies('channel:outcome-unknown', 'leaves the outcome unknown after an empty event stream or a 5xx', async () => {
    const ends: ((res: ServerResponse) => unknown)[] = [
      (res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
      (res) => res.writeHead(500).end(),
      (res) => res.writeHead(504, { 'content-type': 'text/html' }).end('<html>'),
      (res) => res.destroy(),
    ];
    for (const end of ends) {
      const { upstream, path } = await scripted(({ method }, res) => {
        if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
        end(res);
      });
      expect((await rest(path, 't')).status).toBe(502);
      expect((await ask(path, toolCall(1, 't'))).body.error).toBeDefined();
      expect(upstream.count('tools/call')).toBe(2);
    }
  });

  verifies('channel:outcome-unknown', 'in a read is repeated once, and the reader sees no error', async () => {
    for (const reset of [true, false]) {
      const { upstream, path } = await scripted((_message, res, nth) => {
        if (nth % 2 === 0) return '{"tools":[]}';
        if (reset) res.destroy();
        else res.writeHead(200, { 'content-length': '100' }).write('{"half', () => res.destroy());
      });
      expect(await ask(path, request(1, 'tools/list'))).toMatchObject({ body: { result: { tools: [] } } });
      const list = await send(app, owner, `${path}/.tools`, undefined, { method: 'GET' });
      expect([list.status, list.text]).toEqual([200, '{"tools":[]}']);
      expect(upstream.count('tools/list')).toBe(4);
    }
  });

  verifies('channel:outcome-unknown', 'in every try of a read is an error after two', async () => {
    const { upstream, path } = await scripted((_message, res) => void res.destroy());
    const { status, body } = await ask(path, request(1, 'resources/list'));
    expect([status, body.id, typeof body.error.code]).toEqual([200, 1, 'number']);
    expect(upstream.count('resources/list')).toBe(2);
  });
});

describe('a server that asks its client', () => {
  verifies('channel:sse', 'receives replies even when more calls ask concurrently than there are sockets', async () => {
    const { path } = await connected({ sse: true });
    // Open sockets first: calls that all start at once then take every one of them before anything else does.
    await Promise.all(times(100, () => rest(path, 'echo', { message: '' }, { on: second })));
    const answers = await Promise.all(times(80, () => rest(path, 'asks', {}, { on: second })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe('the headers of a connection', () => {
  const renew = async (path: string) =>
    expect((await app.as(owner).put(path, { headers: { 'X-Token': 'new' } })).status).toBe(200);

  verifies('channel:headers-changed', 'are replaced by PUT for every caller', async () => {
    const { upstream, path } = await connected({ sessions: true }, { headers: { 'X-Token': 'old', 'X-Gone': '1' } });
    await crosstalk(app, path, 10);
    expect(seen(upstream, 'tools/call').every(({ headers }) => headers['x-token'] === 'old')).toBe(true);

    const running = rest(path, 'hold');
    await upstream.waitFor((u) => u.count('tools/call') === 11);
    await renew(path);
    const before = upstream.requests.length;
    await crosstalk(app, path, 20);
    const later = upstream.requests.slice(before).filter(({ method }) => method === 'POST');
    expect(later.length).toBeGreaterThanOrEqual(20);
    for (const { headers } of later) expect([headers['x-token'], headers['x-gone']]).toEqual(['new', undefined]);
    upstream.release();
    expect((await running).status).toBe(200);
    // The old session is ended once its last call is over.
    await upstream.waitFor((u) => u.sessions.size === 1);
  });

  verifies('channel:headers-changed', 'are taken over by another process, which then never sends the old', async () => {
    const { upstream, path } = await connected({}, { headers: { 'X-Token': 'old' } });
    await crosstalk(second, path, 4);
    await renew(path);
    const token = async () => {
      await rest(path, 'echo', { message: '' }, { on: second });
      return seen(upstream, 'tools/call').at(-1)?.headers['x-token'];
    };
    await until(async () => (await token()) === 'new', 'it is told, or looks again');
    const before = upstream.requests.length;
    await crosstalk(second, path, 20);
    for (const { headers } of upstream.requests.slice(before)) expect(headers['x-token']).toBe('new');
  });
});
