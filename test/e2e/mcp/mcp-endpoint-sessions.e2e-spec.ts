import { createHmac } from 'node:crypto';
import { describe, expect, jest } from '@jest/globals';
import { request } from '../../support/mcp/calls.js';
import { ask, initialize, KEY, messagesOf, modern, post, read } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint, TestPubSub, type TestMcpEndpoint } from '../../support/mcp/mcp-endpoint.js';
import { ScriptedChannel } from '../../support/mcp/scripted-channel.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const call = request(1, 'tools/call', { name: 'x' });
const done = { content: [{ type: 'text', text: 'done' }] };
const subscribe = (uri: string, method = 'resources/subscribe') => ({ jsonrpc: '2.0', id: 1, method, params: { uri } });

type Session = Record<string, string>;

function open(url: string, session: Session, signal?: AbortSignal): Promise<Response> {
  return fetch(url, { headers: { authorization: KEY, accept: 'text/event-stream', ...session }, signal });
}

function end(url: string, session: Session): Promise<Response> {
  return fetch(url, { method: 'DELETE', headers: { authorization: KEY, ...session } });
}

/** A channel that answers everything, and two processes of one service that serve it. */
async function twoProcesses(channel: ScriptedChannel): Promise<[TestMcpEndpoint, TestMcpEndpoint]> {
  const relay = new TestPubSub();
  return [await startMcpEndpoint(channel, relay), await startMcpEndpoint(channel, relay)];
}

const answering = () => new ScriptedChannel('legacy', () => done);

describe('a session', () => {
  verifies('mcp:session', 'is good at any process of the service, for its key and its target alone', async () => {
    const [one, two] = await twoProcesses(answering());
    const session = await initialize(one.url);
    for (const { url } of [one, two]) expect((await ask(url, call, session)).body.result).toEqual(done);
    const stolen = { ...session, authorization: 'Bearer two' };
    const elsewhere = one.url.replace('/mcp', '/other');
    const refused = [
      [1, await ask(one.url, call, stolen)],
      [1, await ask(two.url, call, stolen)],
      [1, await ask(elsewhere, call, session)],
      [null, await read(await open(one.url, stolen))],
      [null, await read(await end(one.url, stolen))],
      ['any', await ask(one.url, { jsonrpc: '2.0', id: 'any', result: {} }, stolen)],
    ] as const;
    for (const [id, { status, body }] of refused) {
      expect([status, body.jsonrpc, body.id, body.error.code]).toEqual([404, '2.0', id, -32001]);
    }
    expect((await ask(one.url, call, session)).status).toBe(200);
  });

  verifies('mcp:session', 'returns 404 when it was changed, has expired or was forged', async () => {
    const { url } = await startMcpEndpoint(answering());
    const session = await initialize(url);
    const id = session['mcp-session-id'] ?? '';
    const [, payload = '', signature = ''] = id.split('.');
    const fields = Buffer.from(payload, 'base64url').toString();
    const renewed = Buffer.from(fields.replace(/ \d{10} /, ' 9999999999 ')).toString('base64url');
    const secret = createHmac('sha256', Buffer.alloc(32, 7)).update('slipway mcp sessions').digest();
    const signed = (text: string) => {
      const own = Buffer.from(text).toString('base64url');
      return `sw1.${own}.${createHmac('sha256', secret).update(`${own}\n${KEY} /mcp`).digest('base64url')}`;
    };
    // The signature is rebuilt here, so that only the time makes the difference.
    expect((await ask(url, call, { ...session, 'mcp-session-id': signed(fields) })).status).toBe(200);
    const bad = [signed(fields.replace(/ \d{10} /, ' 1000000000 ')), `sw1.${renewed}.${signature}`, 'sw1.', 'sw1.a.b'];
    for (const other of [...bad, `${id}x`, `${id}.x`, id.slice(0, -1)]) {
      const { status } = await ask(url, call, { ...session, 'mcp-session-id': other });
      expect([other, status]).toEqual([other, 404]);
    }
  });

  verifies(
    'mcp:session',
    'returns 404 to everything legacy except "initialize" when this service did not sign it',
    async () => {
      const { url } = await startMcpEndpoint(answering());
      const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
      for (const id of ['x', 'SW1.a.b', 'f'.repeat(64)]) {
        const session = { 'mcp-session-id': id };
        const first = request(0, 'initialize', { protocolVersion: '2025-11-25' });
        for (const message of [call, note]) expect((await ask(url, message, session)).status).toBe(404);
        expect((await ask(url, first, session)).status).toBe(200);
        for (const answer of [await open(url, session), await end(url, session)]) expect(answer.status).toBe(404);
      }
    },
  );

  verifies(['mcp:session', 'mcp:session-ignored'], 'is ignored in requests of 2026-07-28', async () => {
    const { url, channel } = await startMcpEndpoint(answering());
    const own = await initialize(url);
    const { body, headers } = modern('tools/call', { name: 'x' });
    const { 'mcp-protocol-version': version = '' } = headers;
    for (const id of ['x', 'sw1.a.b', own['mcp-session-id'] ?? '']) {
      const session = { 'mcp-session-id': id };
      expect((await ask(url, body, { ...headers, ...session })).body.result).toMatchObject(done);
      for (const answer of [open, end]) {
        expect((await answer(url, { ...session, 'mcp-protocol-version': version })).status).toBe(405);
      }
    }
    expect(new Set(channel.calls.map(({ caller }) => caller))).toEqual(new Set([`${KEY} /mcp`]));
  });

  verifies('mcp:session', 'closes in every process, with its upstream session, if its client deletes it', async () => {
    const channel = answering();
    const [one, two] = await twoProcesses(channel);
    const session = await initialize(one.url, { roots: {} });
    await ask(two.url, call, session);
    const key = channel.calls[0]?.profile?.key;
    const stream = await open(two.url, session);
    expect((await end(one.url, session)).status).toBe(204);
    expect((await ask(one.url, call, session)).status).toBe(404);
    await until(async () => (await ask(two.url, call, session)).status === 404, 'the other process knows');
    await until(() => channel.released.filter((released) => released === key).length > 1, 'both ended it upstream');
    expect(await stream.text()).toBe('');
    expect((await end(one.url, session)).status).toBe(404);
  });

  verifies(['mcp:session', 'mcp:vanish'], 'has its questions given up when the process ends', async () => {
    const asking = new ScriptedChannel('legacy', async ({ onRequest }) => ({
      a: await onRequest?.('roots/list', '{}'),
    }));
    const { url, stop } = await startMcpEndpoint(asking);
    const stream = messagesOf(await post(url, call, await initialize(url, { roots: {} })));
    await stream.next();
    stop();
    expect((await stream.next()).value.result.a.error.message).toContain('restarted');
  });
});

describe('a session that is older than the process', () => {
  const setLevel = request(1, 'logging/setLevel', { level: 'info' });

  /** One more process of the service, started seconds after the others. */
  async function laterProcess(channel: ScriptedChannel, relay: TestPubSub): Promise<TestMcpEndpoint> {
    const later = Date.now() + 5_000;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(later);
    try {
      return await startMcpEndpoint(channel, relay);
    } finally {
      clock.mockRestore();
    }
  }

  verifies('mcp:session-restart', 'returns 404 when its state is unknown, and continues when it has none', async () => {
    const relay = new TestPubSub();
    const channel = answering();
    const { url } = await startMcpEndpoint(channel, relay);
    const [plain, capable, loud, subscribed] = [
      await initialize(url),
      await initialize(url, { roots: {} }),
      await initialize(url),
      await initialize(url),
    ];
    expect((await ask(url, setLevel, loud)).body.result).toEqual({});
    expect((await ask(url, subscribe('a://b'), subscribed)).body.result).toEqual({});
    const later = await laterProcess(channel, relay);
    const statusOf = async (at: string, session: Session) => (await ask(at, call, session)).status;
    for (const session of [plain, capable, loud, subscribed]) expect(await statusOf(url, session)).toBe(200);
    expect(await statusOf(later.url, plain)).toBe(200);
    for (const session of [capable, loud, subscribed]) {
      expect(await statusOf(later.url, session)).toBe(404);
      expect((await open(later.url, session)).status).toBe(404);
    }
    // From now on this process knows the state of the session that it refused, and of the one that had none.
    expect((await ask(url, setLevel, plain)).body.result).toEqual({});
    await until(async () => (await statusOf(later.url, plain)) === 200, 'it is served');
    expect(await statusOf(later.url, plain)).toBe(200);
  });

  verifies('mcp:session-restart', 'continues if the server restores the sessions of its clients', async () => {
    const relay = new TestPubSub();
    const channel = answering();
    const capable = await initialize((await startMcpEndpoint(channel, relay)).url, { roots: {} });
    channel.restoresSessions = true;
    expect((await ask((await laterProcess(channel, relay)).url, call, capable)).status).toBe(200);
  });
});

describe('the stream of a session', () => {
  verifies('mcp:session-stream', 'sends list changes, and updates of subscribed resources', async () => {
    const channel = answering();
    const [one, two] = await twoProcesses(channel);
    const session = await initialize(one.url);
    expect((await ask(one.url, subscribe('a://early'), session)).body.result).toEqual({});
    const response = await open(one.url, session);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    const stream = messagesOf(response);
    const wants = (...uris: string[]) =>
      until(
        () =>
          channel.listeners.size === 1 &&
          [...channel.listeners].every(({ filter }) => String(filter.resourceSubscriptions ?? []) === String(uris)),
        `it listens to ${uris.join(', ')}`,
      );
    await wants('a://early');
    // Said to another process, it reaches the one that holds the stream.
    expect((await ask(two.url, subscribe('a://late'), session)).body.result).toEqual({});
    await wants('a://early', 'a://late');
    await ask(two.url, subscribe('a://early', 'resources/unsubscribe'), session);
    await wants('a://late');
    channel.tell('notifications/resources/updated', { uri: 'a://early' });
    channel.tell('notifications/message', { level: 'error', data: 1 });
    channel.tell('notifications/resources/updated', { uri: 'a://late' });
    channel.tell('notifications/tools/list_changed');
    const [first, second] = [await stream.next(), await stream.next()].map(({ value }) => value);
    expect(first).toEqual({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a://late' } });
    expect(second.method).toBe('notifications/tools/list_changed');
  });

  verifies('mcp:session-stream', 'is one: a second here is refused, and one elsewhere takes over', async () => {
    const [one, two] = await twoProcesses(answering());
    const session = await initialize(one.url);
    const first = await open(one.url, session);
    const second = await read(await open(one.url, session));
    expect([second.status, second.body.jsonrpc, one.front.stats().streams]).toEqual([409, '2.0', 1]);
    const third = await open(two.url, session);
    expect(await first.text()).toBe('');
    expect(third.status).toBe(200);
    await third.body?.cancel();
  });

  verifies(['mcp:session-stream', 'mcp:vanish'], 'leaves no listener behind when its client has left', async () => {
    const { url, channel } = await startMcpEndpoint(answering());
    const session = await initialize(url);
    for (let round = 0; round < 2; round += 1) {
      const leaving = new AbortController();
      await open(url, session, leaving.signal);
      await until(() => channel.listeners.size === 1, 'it is listened to');
      leaving.abort();
      await until(() => channel.listeners.size === 0, 'nobody listens');
    }
  });

  verifies('mcp:session-stream', 'continues when the stream of the upstream ends and begins again', async () => {
    const { url, channel } = await startMcpEndpoint(answering());
    const stream = messagesOf(await open(url, await initialize(url)));
    await until(() => channel.listeners.size === 1, 'it is listened to');
    const [before] = channel.listeners;
    channel.listeners.clear();
    before?.listener.onEnd(null);
    await until(() => channel.listeners.size === 1, 'it is listened to again');
    channel.tell('notifications/prompts/list_changed');
    // The lists may have changed in between.
    expect((await stream.next()).value.method).toBe('notifications/tools/list_changed');
    let told = (await stream.next()).value.method;
    if (told === 'notifications/resources/list_changed') told = (await stream.next()).value.method;
    expect(told).toBe('notifications/prompts/list_changed');
  });

  verifies('mcp:session-stream', 'ends with the process', async () => {
    const { url, stop } = await startMcpEndpoint(answering());
    const response = await open(url, await initialize(url));
    stop();
    expect(await response.text()).toBe('');
  });

  verifies('mcp:session-stream', 'is bounded in number for each account, whatever its keys', async () => {
    const { url } = await startMcpEndpoint(answering());
    const streams = await Promise.all(Array.from({ length: 128 }, async () => open(url, await initialize(url))));
    expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]));
    const more = await read(await open(url, await initialize(url)));
    expect([more.status, more.headers.get('retry-after')]).toEqual([429, '1']);
    const { body, headers } = modern('subscriptions/listen', { notifications: { toolsListChanged: true } });
    expect((await ask(url, body, headers)).body.error.code).toBe(-32603);
    const sibling = await initialize(url, {}, '2025-11-25', 'Bearer sibling');
    expect((await open(url, { ...sibling, 'x-account': KEY })).status).toBe(429);
    const other = await initialize(url, {}, '2025-11-25', 'Bearer two');
    const theirs = await open(url, other);
    expect(theirs.status).toBe(200);
    for (const { body: stream } of [...streams, theirs]) await stream?.cancel();
  });

  verifies('mcp:session-stream', 'needs a session to subscribe in, and an upstream that lets one', async () => {
    const { url, channel } = await startMcpEndpoint(new ScriptedChannel('legacy', () => done, { resources: {} }));
    const session = await initialize(url);
    for (const headers of [{}, session]) {
      for (const method of ['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel']) {
        expect((await ask(url, subscribe('a', method), headers as Session)).body.error.code).toBe(-32601);
      }
    }
    const able = await startMcpEndpoint(answering());
    const own = await initialize(able.url);
    expect((await ask(able.url, { ...subscribe(''), params: {} }, own)).body.error.code).toBe(-32602);
    for (let i = 0; i < 100; i += 1) await ask(able.url, subscribe(`a://${i}`), own);
    expect((await ask(able.url, subscribe('a://more'), own)).body.error.code).toBe(-32603);
    expect((await ask(able.url, subscribe('a://1'), own)).body.result).toEqual({});
    const wordy = await initialize(able.url);
    const long = (i: number) => subscribe(`a://${i}/${'x'.repeat(4_000)}`);
    for (let i = 0; i < 16; i += 1) expect((await ask(able.url, long(i), wordy)).body.result).toEqual({});
    expect((await ask(able.url, long(16), wordy)).body.error.code).toBe(-32603);
    expect(channel.calls).toEqual([]);
  });
});

describe('a subscription of 2026-07-28', () => {
  const listen = (notifications: object, id: unknown = 'sub-1') =>
    modern('subscriptions/listen', { notifications }, { id });
  const mark = { 'io.modelcontextprotocol/subscriptionId': 'sub-1' };

  verifies('mcp:subscriptions', 'acknowledges its filter, then sends what matches, under its id', async () => {
    const { url, channel } = await startMcpEndpoint(answering());
    const wanted = { toolsListChanged: true, resourceSubscriptions: ['a://b'] };
    const { body, headers } = listen({ ...wanted, promptsListChanged: false, odd: 1 });
    const response = await post(url, body, headers);
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    const stream = messagesOf(response);
    expect((await stream.next()).value).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: mark, notifications: wanted },
    });
    channel.tell('notifications/prompts/list_changed');
    channel.tell('notifications/resources/updated', { uri: 'a://c' });
    channel.tell('notifications/resources/updated', { uri: 'a://b', _meta: { own: 1 } });
    channel.tell('notifications/tools/list_changed');
    expect((await stream.next()).value).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri: 'a://b', _meta: { ...mark, own: 1 } },
    });
    expect((await stream.next()).value).toMatchObject({
      method: 'notifications/tools/list_changed',
      params: { _meta: mark },
    });
  });

  verifies(
    'mcp:subscriptions',
    'completes with a result when the process closes it, also after the upstream has closed its stream',
    async () => {
      for (const finish of ['process', 'upstream']) {
        const { url, stop, channel } = await startMcpEndpoint(answering());
        const { body, headers } = listen({ toolsListChanged: true });
        const stream = messagesOf(await post(url, body, headers));
        await stream.next();
        if (finish === 'upstream') {
          for (const { listener } of [...channel.listeners]) listener.onEnd(null);
          // It is listened to again, and its lists may have changed meanwhile.
          expect((await stream.next()).value).toMatchObject({ method: 'notifications/tools/list_changed' });
        }
        stop();
        expect((await stream.next()).value).toEqual({
          jsonrpc: '2.0',
          id: 'sub-1',
          result: { resultType: 'complete', _meta: mark },
        });
        expect((await stream.next()).done).toBe(true);
      }
    },
  );

  verifies(['mcp:subscriptions', 'mcp:vanish'], 'leaves no listener behind when its client has left', async () => {
    const { url, channel } = await startMcpEndpoint(answering());
    const leaving = new AbortController();
    const { body, headers } = listen({ toolsListChanged: true });
    await post(url, body, headers, leaving.signal);
    await until(() => channel.listeners.size === 1, 'it is listened to');
    leaving.abort();
    await until(() => channel.listeners.size === 0, 'nobody listens');
  });

  verifies('mcp:subscriptions', 'is refused when it is not of the revision’s form', async () => {
    const { url } = await startMcpEndpoint(answering());
    const uris = Array.from({ length: 101 }, (_, i) => `a://${i}`);
    for (const notifications of [undefined, [], { resourceSubscriptions: 'a' }, { resourceSubscriptions: uris }]) {
      const { body, headers } = modern('subscriptions/listen', { notifications });
      expect((await ask(url, body, headers)).body.error.code).toBe(-32602);
    }
    const { body, headers } = listen({});
    expect((await ask(url, body, { ...headers, accept: 'application/json' })).status).toBe(406);
  });
});
