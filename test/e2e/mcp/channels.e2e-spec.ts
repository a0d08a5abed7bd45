import { beforeAll, describe, expect } from '@jest/globals';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import {
  eventsOf,
  mcp,
  mcpAccept,
  open,
  request,
  send,
  times,
  toolCall,
  type Answer,
  type Json,
} from '../../support/mcp/calls.js';
import { createConnection } from '../../support/factories.js';
import {
  sendJson,
  startScripted,
  type Script,
  type ScriptedMessage,
  type ScriptedUpstream,
} from '../../support/special-upstreams/scripted-upstream.js';
import { initialize } from '../../support/mcp/mcp-calls.js';
import { until } from '../../support/until.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import type { RecordedRequest, Upstream, UpstreamOptions } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const CALL_MS = 1_500;
/** Room for a busy machine: what had no deadline would take for ever. */
const MARGIN_MS = 20_000;

const kinds: [string, UpstreamOptions][] = [
  ['JSON', {}],
  ['event streams', { sse: true }],
  ['JSON with sessions', { sessions: true }],
  ['event streams with sessions', { sessions: true, sse: true }],
];

const app = testApp();
/** Another process; and one that gives up early. */
let second: TestApp;
let hasty: TestApp;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => {
  second = await app.sibling();
  hasty = await app.sibling({
    UPSTREAM_CALL_TIMEOUT_MS: `${CALL_MS}`,
    MCP_CALL_TIMEOUT_MS: `${CALL_MS}`,
    UPSTREAM_CONNECT_TIMEOUT_MS: `${CALL_MS}`,
  });
});

async function connect(mcpUrl: string, fields: object = {}): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl, ...fields })).path;
}

function rest(path: string, tool: string, args: object = {}, signal?: AbortSignal): Promise<Answer> {
  return send(app, owner, `${path}/.tools/${tool}`, args, { signal });
}

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
      if (i % 2 === 0) return textOf((await send(on, owner, `${path}/.tools/crosstalk`, args)).body);
      const { body } = await mcp(on, owner, path, toolCall(1, 'crosstalk', args));
      expect(body.id).toBe(1);
      return textOf(body.result);
    }),
  );
}

describe.each(kinds)('one channel to an upstream that answers %s', (_, options) => {
  verifies('channel:ids-never-cross', '200 callers with one id each get their own answer', async () => {
    const upstream = await start(options);
    const path = await connect(upstream.url);
    const answers = await Promise.all(
      times(200, (i) => mcp(app, owner, path, toolCall(1, 'crosstalk', { token: `token-${i}` }))),
    );
    expect(answers.map(({ body }) => [body.id, textOf(body.result)])).toEqual(times(200, (i) => [1, `token-${i}`]));
    const ids = seen(upstream, 'tools/call').map((one) => messageOf(one).id);
    expect(new Set(ids).size).toBe(200);
    expect(upstream.count('initialize')).toBe(1);
    expect(upstream.sessions.size).toBe(options.sessions ? 1 : 0);
  });

  verifies(
    'channel:single-flight',
    '50 first calls at once open one session, in a process that never had one',
    async () => {
      const upstream = await start({ ...options, delayInitializeMs: 50 });
      const path = await connect(upstream.url);
      expect(upstream.count('initialize')).toBe(1);
      expect(await crosstalk(second, path, 50)).toEqual(times(50, (i) => `token-${i}`));
      expect(upstream.count('initialize')).toBe(2);
      expect(upstream.count('notifications/initialized')).toBe(2);
    },
  );
});

describe('a lost session', () => {
  for (const forgottenSessionStatus of [404, 400] as const) {
    for (const sse of [false, true]) {
      verifies(
        'channel:reinitialize',
        `refused with ${forgottenSessionStatus} (event streams: ${sse}) is opened once more for 50 calls at once`,
        async () => {
          const upstream = await start({ sessions: true, forgottenSessionStatus, sse, delayInitializeMs: 20 });
          const path = await connect(upstream.url);
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

  verifies('channel:reinitialize', 'is opened anew without the dead id, and a call runs once', async () => {
    const upstream = await start({ sessions: true });
    const path = await connect(upstream.url);
    const [dead] = upstream.sessions;
    upstream.forgetSessions();
    expect((await rest(path, 'echo', { message: 'again' })).status).toBe(200);
    const initialize = seen(upstream, 'initialize').at(-1);
    expect(initialize?.headers['mcp-session-id']).toBeUndefined();
    const calls = seen(upstream, 'tools/call').map(({ headers }) => headers['mcp-session-id']);
    expect(calls).toEqual([dead, [...upstream.sessions][0]]);
  });

  verifies('channel:reinitialize', 'that is lost repeatedly is an error, not an endless loop', async () => {
    const notFound = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}';
    const script: Script = (_message, res) => sendJson(res, notFound, 404);
    const upstream = closing(await startScripted(script, { sessions: true }));
    const path = await connect(upstream.url);
    const answer = await rest(path, 'echo');
    expect([answer.status, answer.body.error]).toEqual([502, 'upstream_error']);
    expect(answer.body.message).toContain('answered 404');
    const calls = upstream.seen.filter(({ method }) => method === 'tools/call');
    expect(calls.map(({ session }) => session)).toEqual(['session-1', 'session-2']);
    expect(upstream.count('initialize')).toBe(2);
  });

  verifies(
    'channel:reinitialize',
    'costs one handshake, also when a call observes the loss later than others',
    async () => {
      const notFound = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}';
      let refuseLate: (() => void) | undefined;
      const upstream = closing(
        await startScripted(
          ({ session, params }, res) => {
            if (session !== 'session-1') return '{"content":[]}';
            const refuse = () => sendJson(res, notFound, 404);
            if (params?.name === 'late') refuseLate = refuse;
            else refuse();
          },
          { sessions: true },
        ),
      );
      const path = await connect(upstream.url);
      const late = rest(path, 'late');
      while (!refuseLate) await rest(path, 'early');
      expect((await rest(path, 'early')).status).toBe(200);
      refuseLate();
      expect((await late).status).toBe(200);
      expect(upstream.count('initialize')).toBe(2);
      expect(upstream.seen.at(-1)?.session).toBe('session-2');
    },
  );

  const rpcRefusal = (code: number) => `{"jsonrpc":"2.0","id":null,"error":{"code":${code},"message":"No session"}}`;
  const refusals: [number, string, string][] = [
    [400, 'text/plain', 'Invalid or missing session ID'],
    [400, 'application/json', rpcRefusal(-32001)],
    [400, 'application/json', rpcRefusal(-32602)],
    [409, 'application/json', '{"error":"unknown session"}'],
    [422, 'application/json', '{"detail":"session"}'],
    [500, 'text/plain', 'Internal Server Error'],
    [500, 'application/json', rpcRefusal(-32603)],
  ];

  /** A server that answers so, in a session that `isLost`, each request that `isRefused`. */
  async function startForgetful(
    [status, type, body]: [number, string, string],
    isRefused: (message: ScriptedMessage) => boolean,
  ) {
    return closing(
      await startScripted(
        (message, res) => {
          if (!isRefused(message)) return message.method === 'tools/list' ? '{"tools":[]}' : '{"content":[]}';
          res.writeHead(status, { 'content-type': type }).end(body);
        },
        { sessions: true },
      ),
    );
  }

  const callsIn = (upstream: ScriptedUpstream) =>
    upstream.seen.filter(({ method }) => method === 'tools/call').map(({ session }) => session);

  for (const refusal of refusals) {
    verifies(
      'channel:session-in-doubt',
      `refused with ${refusal.join(' ')} fails one call, and the next one opens another`,
      async () => {
        let lost = '';
        const upstream = await startForgetful(refusal, ({ session }) => session === lost);
        const path = await connect(upstream.url);
        expect((await rest(path, 't')).status).toBe(200);
        lost = 'session-1';
        const failed = await rest(path, 't');
        expect([failed.status, await rest(path, 't')]).toEqual([
          refusal[2].startsWith('{"jsonrpc"') ? failed.status : 502,
          expect.objectContaining({ status: 200 }),
        ]);
        expect(failed.status).not.toBe(200);
        expect(callsIn(upstream)).toEqual(['session-1', 'session-1', 'session-2']);
        expect((await mcp(app, owner, path, toolCall(1, 't'))).body.result).toEqual({ content: [] });
        expect(upstream.count('ping')).toBe(1);
      },
    );
  }

  verifies('channel:session-in-doubt', 'is the same for an MCP client with a session of its own', async () => {
    let lost: string[] = [];
    const upstream = await startForgetful(refusals[0], ({ session }) => lost.includes(session ?? ''));
    const path = await connect(upstream.url);
    const client = { name: 'c', version: '1' };
    const hello = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: client };
    const { headers } = await mcp(app, owner, path, request(0, 'initialize', hello));
    const session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    const call = () => mcp(app, owner, path, toolCall(1, 't'), { headers: session });
    expect((await call()).body.result).toEqual({ content: [] });
    lost = upstream.seen.flatMap((message) => message.session ?? []);
    expect((await call()).body.error.message).toMatch(/answered 400/);
    expect((await call()).body.result).toEqual({ content: [] });
  });

  verifies('channel:session-in-doubt', 'is not dropped where ping is answered, and probed once for many', async () => {
    const upstream = await startForgetful(refusals[5], ({ method }) => method === 'tools/call');
    const path = await connect(upstream.url);
    for (const answer of await Promise.all(times(5, () => rest(path, 't')))) expect(answer.status).toBe(502);
    expect((await rest(path, 't')).status).toBe(502);
    expect([upstream.count('ping'), upstream.count('initialize')]).toEqual([1, 1]);
  });

  verifies('channel:session-in-doubt', 'of a server with a broken ping is dropped once in 30 seconds', async () => {
    const upstream = await startForgetful(refusals[5], ({ method }) => method !== 'tools/list');
    const path = await connect(upstream.url);
    for (let call = 0; call < 4; call += 1) expect((await rest(path, 't')).status).toBe(502);
    expect(callsIn(upstream)).toEqual(['session-1', 'session-2', 'session-2', 'session-2']);
    expect(upstream.count('ping')).toBe(1);
  });

  verifies(
    'channel:session-in-doubt',
    'is not what the answer of a busy server, or one with our id, means',
    async () => {
      for (const status of [403, 408, 413, 429, 502, 503, 504, 500]) {
        const upstream = closing(
          await startScripted(
            ({ id, method }, res) => {
              if (method !== 'tools/call') return '{"tools":[]}';
              const isRead = status === 500;
              sendJson(
                res,
                isRead ? `{"jsonrpc":"2.0","id":${id},"error":{"code":-32603,"message":"no"}}` : '{}',
                status,
              );
            },
            { sessions: true },
          ),
        );
        const path = await connect(upstream.url);
        expect((await rest(path, 't')).status).not.toBe(200);
        expect([status, upstream.count('ping'), upstream.count('initialize')]).toEqual([status, 0, 1]);
      }
    },
  );

  verifies('channel:reinitialize', 'leaves calls alone that run', async () => {
    const upstream = await start({ sessions: true });
    const path = await connect(upstream.url);
    const running = rest(path, 'hold');
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    upstream.forgetSessions();
    expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    upstream.release();
    expect((await running).status).toBe(200);
  });

  verifies('channel:reinitialize', 'is not confused with an unknown method that answers 404', async () => {
    const upstream = closing(
      await startScripted(({ id }, res) =>
        sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"Method not found"}}`, 404),
      ),
    );
    const answer = await mcp(app, owner, await connect(upstream.url), request(1, 'odd/method'));
    expect(answer.body.error.code).toBe(-32601);
    expect(upstream.count('odd/method')).toBe(1);
  });
});

describe('a caller that leaves', () => {
  for (const [kind, options] of kinds) {
    for (const face of ['REST', 'MCP']) {
      verifies('channel:cancel', `by ${face} cancels its own call at an upstream that answers ${kind}`, async () => {
        const upstream = await start(options);
        const path = await connect(upstream.url);
        const leaving = new AbortController();
        const { signal } = leaving;
        const call = (of?: AbortSignal) =>
          face === 'REST'
            ? rest(path, 'hold', {}, of)
            : mcp(app, owner, path, toolCall('theirs', 'hold'), { signal: of });
        const left = expect(call(signal)).rejects.toThrow();
        await upstream.waitFor((u) => u.count('tools/call') === 1);
        const stays = call();
        await upstream.waitFor((u) => u.count('tools/call') === 2);
        leaving.abort();
        await left;
        await upstream.waitFor((u) => u.count('notifications/cancelled') === 1);
        const [first, second] = seen(upstream, 'tools/call');
        expect(cancelledIds(upstream)).toEqual([messageOf(first).id]);
        await upstream.waitFor(() => first.aborted);
        expect(second.closedAt).toBeUndefined();
        const [note] = seen(upstream, 'notifications/cancelled');
        expect(note.headers['mcp-session-id']).toBe(first.headers['mcp-session-id']);

        upstream.release();
        expect((await stays).status).toBe(200);
        expect(upstream.count('notifications/cancelled')).toBe(1);
        expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
      });
    }
  }

  verifies(
    'channel:cancel',
    'closes the socket of an upstream of 2026-07-28, to which that is the cancel',
    async () => {
      const upstream = await start({ modernOnly: true });
      const path = await connect(upstream.url);
      const leaving = new AbortController();
      const left = expect(rest(path, 'hold', {}, leaving.signal)).rejects.toThrow();
      await upstream.waitFor((u) => u.count('tools/call') === 1);
      leaving.abort();
      await left;
      await upstream.waitFor((u) => seen(u, 'tools/call')[0].aborted);
      expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
      expect(upstream.count('notifications/cancelled')).toBe(0);
    },
  );

  verifies(
    'channel:cancel',
    'while the session opens does not disturb the others, and its call is not sent',
    async () => {
      const upstream = await start({ delayInitializeMs: 300 });
      const path = await connect(upstream.url);
      const leaving = new AbortController();
      const left = expect(send(second, owner, `${path}/.tools/hold`, {}, { signal: leaving.signal })).rejects.toThrow();
      await upstream.waitFor((u) => u.count('initialize') === 2);
      const stays = send(second, owner, `${path}/.tools/echo`, { message: 'stays' });
      leaving.abort();
      await left;
      expect(textOf((await stays).body)).toBe('stays');
      expect(seen(upstream, 'tools/call').map((one) => messageOf(one).params.name)).toEqual(['echo']);
      expect(upstream.count('initialize')).toBe(2);
    },
  );
});

describe('notifications/cancelled of a client', () => {
  const cancelled = (requestId: unknown) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId, reason: 'spec' },
  });

  verifies('channel:cancel', 'cancels the call with that id, ends its request, and no other', async () => {
    const upstream = await start({ sessions: true });
    const path = await connect(upstream.url);
    const calls = ['a', 'b', 7, '7'].map((id) => mcp(app, owner, path, toolCall(id, 'hold', { id })));
    await upstream.waitFor((u) => u.count('tools/call') === 4);
    const idUpstream = (id: unknown) =>
      messageOf(
        seen(upstream, 'tools/call').find((one) => messageOf(one).params.arguments.id === id) as RecordedRequest,
      ).id;

    expect((await mcp(app, owner, path, cancelled('b'))).status).toBe(202);
    expect((await mcp(app, owner, path, cancelled(7))).status).toBe(202);
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 2);
    expect(cancelledIds(upstream)).toEqual([idUpstream('b'), idUpstream(7)]);
    // The exchange of a cancelled request ends, since a client may never close it, without an answer.
    for (const i of [1, 2]) expect(await calls[i]).toMatchObject({ status: 202, text: '' });
    upstream.release();
    for (const i of [0, 3]) expect(textOf((await calls[i]).body.result)).toBe('released');
  });

  verifies('channel:cancel', 'ends an answer that is an event stream already', async () => {
    const upstream = await start({
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
    const path = await connect(upstream.url);
    const session = await initialize(`${app.url}${path}/mcp`, {}, '2025-11-25', `Bearer ${owner.key}`);
    // A client with a session would resume a stream that ends without an answer.
    for (const [headers, ends] of [
      [{}, []],
      [session, [{ code: -33004, message: 'The call was cancelled' }]],
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
    const upstream = await start();
    const path = await connect(upstream.url);
    await mcp(app, owner, path, toolCall('over', 'echo', { message: '' }));
    const calls = [1, 1, 2].map((id) => mcp(app, owner, path, toolCall(id, 'hold')));
    await upstream.waitFor((u) => u.count('tools/call') === 4);
    for (const id of [1, 'over', 'unknown', '2', null, { id: 2 }]) {
      expect((await mcp(app, owner, path, cancelled(id))).status).toBe(202);
    }
    upstream.release();
    for (const call of calls) expect(textOf((await call).body.result)).toBe('released');
    expect(upstream.count('notifications/cancelled')).toBe(0);
  });

  verifies('channel:cancel', 'of another tenant, another session or another connection cancels nothing', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const beside = await connect(upstream.url);
    const theirs = (await createConnection(app, other, { mcpUrl: upstream.url })).path;
    const begin = async () => {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
      const answer = await mcp(app, owner, path, request(0, 'initialize', params));
      return { 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' };
    };
    const headers = await begin();
    let isOver = false;
    const call = mcp(app, owner, path, toolCall(1, 'hold'), { headers }).finally(() => (isOver = true));
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    expect((await mcp(app, other, path, cancelled(1), { headers })).status).toBe(404);
    for (const [account, at] of [
      [other, theirs],
      [owner, beside],
    ] as const) {
      expect((await mcp(app, account, at, cancelled(1), { headers })).status).toBe(404);
      expect((await mcp(app, account, at, cancelled(1))).status).toBe(202);
    }
    expect((await mcp(app, owner, path, cancelled(1), { headers: await begin() })).status).toBe(202);
    expect((await mcp(app, owner, path, cancelled(1))).status).toBe(202);
    // A round trip later whatever they cancelled would show.
    expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    expect([isOver, upstream.count('notifications/cancelled')]).toEqual([false, 0]);
    expect((await mcp(app, owner, path, cancelled(1), { headers })).status).toBe(202);
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 1);
    expect(await call).toMatchObject({ status: 202, text: '' });
  });
});

describe('limits', () => {
  const halves: Record<string, (id: number | undefined) => [type: string, text: string]> = {
    'half a JSON': (id) => ['application/json', `{"jsonrpc":"2.0","id":${id},"result":{`],
    'an empty event stream': () => ['text/event-stream', ''],
    'half an event': (id) => ['text/event-stream', `event: message\ndata: {"jsonrpc":"2.0","id":${id},"result":{}}\n`],
  };
  for (const [what, half] of Object.entries(halves)) {
    verifies('call:timeout', `an upstream that stalls after ${what} ends at the deadline`, async () => {
      const closed: Promise<unknown>[] = [];
      const upstream = closing(
        await startScripted(({ id }, res) => {
          const [type, text] = half(id);
          closed.push(once(res, 'close'));
          res.writeHead(200, { 'content-type': type });
          res.flushHeaders();
          res.write(text);
        }),
      );
      const path = await connect(upstream.url);
      for (const face of ['REST', 'MCP']) {
        const from = performance.now();
        const answer =
          face === 'REST'
            ? await send(hasty, owner, `${path}/.tools/t`, {})
            : await mcp(hasty, owner, path, toolCall(1, 't'));
        const ms = performance.now() - from;
        expect(ms).toBeLessThan(CALL_MS + MARGIN_MS);
        expect(ms).toBeGreaterThan(CALL_MS - 50);
        if (face === 'REST') expect([answer.status, answer.body.error]).toEqual([504, 'timeout']);
        else expect([answer.status, typeof answer.body.error.code]).toEqual([200, 'number']);
      }
      expect(upstream.count('tools/call')).toBe(2);
      await Promise.all(closed);
    });
  }

  verifies('call:timeout', 'the error states the whole time, not the rest after a handshake', async () => {
    const path = await connect((await start({ delayInitializeMs: CALL_MS / 2 })).url);
    const { body } = await send(hasty, owner, `${path}/.tools/hold`, {});
    expect(body.message).toMatch(
      / did not answer completely within 1\.5 s: it is too slow or overloaded, or the request takes longer\. /,
    );
  });

  const MB = 1024 * 1024;
  const floods: Record<string, { type: string; length?: number; head: string }> = {
    'a JSON without a length': { type: 'application/json', head: '{"jsonrpc":"2.0","id":1,"result":{"pad":"' },
    'a JSON that announces its length': { type: 'application/json', length: 17 * MB, head: '{"pad":"' },
    'one endless line of an event stream': { type: 'text/event-stream', head: 'data: {"pad":"' },
    'one endless event of many lines': { type: 'text/event-stream', head: 'data: {}\ndata: ' },
  };
  for (const [what, { type, length, head }] of Object.entries(floods)) {
    verifies('channel:byte-cap', `${what} ends the call with an error, soon, and closes the socket`, async () => {
      let sent = 0;
      let ended: Promise<unknown> | undefined;
      const upstream = closing(
        await startScripted((_message, res) => {
          ended = once(res, 'close');
          res.writeHead(200, { 'content-type': type, ...(length ? { 'content-length': length } : {}) });
          res.write(head);
          if (length) return;
          const chunk = what.includes('many lines') ? `${'x'.repeat(1000)}\ndata: `.repeat(64) : 'x'.repeat(64 * 1024);
          const pour = () => {
            while (!res.destroyed && sent < 200 * MB && res.write(chunk)) sent += chunk.length;
          };
          res.on('drain', pour);
          pour();
        }),
      );
      const path = await connect(upstream.url);
      const answer = await rest(path, 't');
      expect([answer.status, answer.body.error]).toEqual([502, 'upstream_error']);
      expect(answer.headers.get('x-should-retry')).toBe('false');
      expect(answer.body.message).toMatch(/larger than \d+ MB/);
      expect(upstream.count('tools/call')).toBe(1);
      await ended;
      expect(sent).toBeLessThan(40 * MB);
    });
  }

  verifies('channel:byte-cap', 'an answer just below the limit passes, by JSON and by event stream', async () => {
    for (const [options, bytes] of [
      [{}, 15 * MB],
      [{ sse: true }, 15 * MB],
    ] as const) {
      const path = await connect((await start(options)).url);
      const answer = await rest(path, 'big', { bytes });
      expect([answer.status, textOf(answer.body).length]).toEqual([200, bytes]);
      const over = await rest(path, 'big', { bytes: bytes + 2 * MB });
      expect([over.status, over.body.error]).toEqual([502, 'upstream_error']);
    }
  });
});

describe('a connection that breaks', () => {
  for (const [kind, options] of kinds) {
    verifies('channel:outcome-unknown', `in a tool call is reported so and not repeated: ${kind}`, async () => {
      const upstream = await start(options);
      const path = await connect(upstream.url);
      const answer = await rest(path, 'cut');
      expect([answer.status, answer.body.error]).toEqual([502, 'upstream_error']);
      expect(answer.body.message).toMatch(/unknown/);
      expect(answer.headers.get('x-should-retry')).toBe('false');
      expect(upstream.count('tools/call')).toBe(1);
      const { status, body } = await mcp(app, owner, path, toolCall(1, 'cut'));
      expect([status, body.id]).toEqual([200, 1]);
      expect(body.error.message).toMatch(/unknown/);
      expect(upstream.count('tools/call')).toBe(2);
      expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    });
  }

  verifies(
    'channel:outcome-unknown',
    'by an event stream that ends without an answer, or a 5xx, is unknown too',
    async () => {
      const ends: ((res: ServerResponse) => unknown)[] = [
        (res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
        (res) => res.writeHead(500).end(),
        (res) => res.writeHead(504, { 'content-type': 'text/html' }).end('<html>'),
        (res) => res.destroy(),
      ];
      for (const end of ends) {
        const upstream = closing(
          await startScripted(({ method }, res) => {
            if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
            end(res);
          }),
        );
        const path = await connect(upstream.url);
        expect((await rest(path, 't')).status).toBe(502);
        expect((await mcp(app, owner, path, toolCall(1, 't'))).body.error).toBeDefined();
        expect(upstream.count('tools/call')).toBe(2);
      }
    },
  );

  verifies('channel:outcome-unknown', 'in a read is repeated once, and the reader sees no error', async () => {
    for (const reset of [true, false]) {
      const upstream = closing(
        await startScripted((_message, res, nth) => {
          if (nth % 2 === 0) return '{"tools":[]}';
          if (reset) res.destroy();
          else res.writeHead(200, { 'content-length': '100' }).write('{"half', () => res.destroy());
        }),
      );
      const path = await connect(upstream.url);
      expect(await mcp(app, owner, path, request(1, 'tools/list'))).toMatchObject({ body: { result: { tools: [] } } });
      const list = await send(app, owner, `${path}/.tools`, undefined, { method: 'GET' });
      expect([list.status, list.text]).toEqual([200, '{"tools":[]}']);
      expect(upstream.count('tools/list')).toBe(4);
    }
  });

  verifies('channel:outcome-unknown', 'in every try of a read is an error after two', async () => {
    const upstream = closing(await startScripted((_message, res) => void res.destroy()));
    const path = await connect(upstream.url);
    const { status, body } = await mcp(app, owner, path, request(1, 'resources/list'));
    expect([status, body.id, typeof body.error.code]).toEqual([200, 1, 'number']);
    expect(upstream.count('resources/list')).toBe(2);
  });
});

describe('a server that asks its client', () => {
  verifies(
    'channel:sse',
    'receives the answer also when more calls send requests at once than there are sockets',
    async () => {
      const path = await connect((await start({ sse: true })).url);
      // Open sockets first: calls that all start at once then take every one of them before anything else does.
      await Promise.all(times(100, () => send(second, owner, `${path}/.tools/echo`, { message: '' })));
      const answers = await Promise.all(times(80, () => send(second, owner, `${path}/.tools/asks`, {})));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    },
  );
});

describe('the headers of a connection', () => {
  verifies('channel:headers-changed', 'are replaced by PUT for every caller', async () => {
    const upstream = await start({ sessions: true });
    const path = await connect(upstream.url, { headers: { 'X-Token': 'old', 'X-Gone': '1' } });
    await crosstalk(app, path, 10);
    expect(seen(upstream, 'tools/call').every(({ headers }) => headers['x-token'] === 'old')).toBe(true);

    const running = rest(path, 'hold');
    await upstream.waitFor((u) => u.count('tools/call') === 11);
    await app
      .as(owner)
      .put(path, { headers: { 'X-Token': 'new' } })
      .expect(200);
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

  verifies(
    'channel:headers-changed',
    'another process takes over the new ones, and then never sends the old',
    async () => {
      const upstream = await start();
      const path = await connect(upstream.url, { headers: { 'X-Token': 'old' } });
      await crosstalk(second, path, 4);
      await app
        .as(owner)
        .put(path, { headers: { 'X-Token': 'new' } })
        .expect(200);
      const token = async () => {
        await send(second, owner, `${path}/.tools/echo`, { message: '' });
        return seen(upstream, 'tools/call').at(-1)?.headers['x-token'];
      };
      await until(async () => (await token()) === 'new', 'it is told, or looks again');
      const before = upstream.requests.length;
      await crosstalk(second, path, 20);
      for (const { headers } of upstream.requests.slice(before)) expect(headers['x-token']).toBe('new');
    },
  );
});
