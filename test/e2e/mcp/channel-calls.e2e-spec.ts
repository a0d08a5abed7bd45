import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, ElicitResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { ServerResponse } from 'node:http';
import { Cancellation } from '../../../src/mcp/protocol/cancellation.js';
import type {
  CallerProfile,
  CallTiming,
  Channel,
  ClientAnswer,
  McpCall,
  McpReply,
} from '../../../src/mcp/protocol/channel.js';
import type { HttpTarget } from '../../../src/mcp/client/http/http-wire.js';
import { completeOrRefuse } from '../../../src/mcp/protocol/messages.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { times } from '../../support/mcp/calls.js';
import { channelsOn, channelTo as channelIn } from '../../support/mcp/channels.js';
import { startSdkSse, startSdkV1 } from '../../support/special-upstreams/sdk-upstream.js';
import { until } from '../../support/until.js';
import { closing, textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';
import {
  answer,
  event,
  legacy,
  modern,
  modernHello,
  refuse,
  startWire,
  stream,
  type WireScript,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';

let egress: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterAll(() => egress.close());

async function wire(script: WireScript): Promise<WireUpstream> {
  return closing(await startWire(script));
}

function channelTo(url: string, target: Partial<HttpTarget> = {}): Channel {
  return closing(channelIn(egress, url, { connectTimeoutMs: 20_000, ...target }));
}

function call(channel: Channel, method: string, params: object = {}, more: Partial<McpCall> = {}): Promise<McpReply> {
  return channel.request({ method, params: JSON.stringify(params), timeoutMs: 20_000, ...more });
}

function resultOf({ text }: McpReply): Record<string, unknown> {
  return (JSON.parse(text) as { result: Record<string, unknown> }).result;
}

const complete = { resultType: 'complete', content: [] };

describe('a request to a modern server', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      deep: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      free: { type: 'string' },
    },
  };
  const invalid = { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } };
  const tools = [
    { name: 'deploy', inputSchema },
    { name: 'broken', inputSchema: invalid },
    { name: 'plain', inputSchema: { type: 'object' } },
  ];

  /** Checks the headers of `deploy` as a strict server does. */
  const strict = (listed: () => object[]) =>
    modern((message, res) => {
      if (message.method === 'tools/list') {
        return answer(res, message, { resultType: 'complete', tools: listed(), ttlMs: 0 });
      }
      const { name } = message.params as { name: string };
      if (name === 'deploy' && message.headers['mcp-param-region'] === undefined) {
        return refuse(res, message.id, 400, -32020);
      }
      return answer(res, message, complete);
    });

  verifies('channel:era', 'has the envelope, and its method and name in headers', async () => {
    const upstream = await wire(modern((message, res) => answer(res, message, complete)));
    const channel = channelTo(upstream.url);
    await call(channel, 'tools/call', { name: 'naïve', arguments: {}, _meta: { traceparent: 't', big: 1 } });
    await call(channel, 'resources/read', { uri: 'docs://a b' });
    await call(channel, 'prompts/list');
    const [first, second, third] = upstream.seen.slice(1);
    expect(first.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': `=?base64?${Buffer.from('naïve').toString('base64')}?=`,
    });
    expect(first.params?._meta).toEqual({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'slipway', version: expect.any(String) },
      traceparent: 't',
      big: 1,
    });
    expect(second.headers['mcp-name']).toBe('docs://a b');
    expect([third.headers['mcp-method'], third.headers['mcp-name']]).toEqual(['prompts/list', undefined]);
    expect(upstream.seen.some(({ headers }) => headers['mcp-session-id'] !== undefined)).toBe(false);
  });

  verifies('channel:era', 'repeats the arguments that a tool marks, learnt from its list', async () => {
    const upstream = await wire(strict(() => tools));
    const channel = channelTo(upstream.url);
    const listed = resultOf(await call(channel, 'tools/list')).tools as { name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(['deploy', 'plain']);
    const args = { region: 'zürich', deep: { count: 42 }, dry: false, free: 'x' };
    expect((await call(channel, 'tools/call', { name: 'deploy', arguments: args })).error).toBeNull();
    const sent = upstream.seen.at(-1)?.headers ?? {};
    expect(sent).toMatchObject({
      'mcp-param-region': `=?base64?${Buffer.from('zürich').toString('base64')}?=`,
      'mcp-param-count': '42',
      'mcp-param-dry': 'false',
    });
    expect(Object.keys(sent).filter((name) => name.startsWith('mcp-param-'))).toHaveLength(3);
    expect(upstream.count('tools/call')).toBe(1);
  });

  verifies('channel:era', 'is mended by reading the tools when its headers are refused, once', async () => {
    const upstream = await wire(strict(() => tools));
    const channel = channelTo(upstream.url);
    const args = { region: 'eu', deep: { count: 2 ** 53 }, dry: null };
    expect((await call(channel, 'tools/call', { name: 'deploy', arguments: args })).error).toBeNull();
    expect([upstream.count('tools/list'), upstream.count('tools/call')]).toEqual([1, 2]);
    const sent = upstream.seen.at(-1)?.headers ?? {};
    expect([sent['mcp-param-region'], sent['mcp-param-count'], sent['mcp-param-dry']]).toEqual([
      'eu',
      undefined,
      undefined,
    ]);

    const { error } = await call(channel, 'tools/call', { name: 'deploy', arguments: {} });
    expect(error?.code).toBe(-32020);
    expect([upstream.count('tools/list'), upstream.count('tools/call')]).toEqual([2, 4]);
  });

  verifies('channel:era', 'declares the capabilities of its caller in each request to a modern server', async () => {
    const upstream = await wire(modern((message, res) => answer(res, message, complete)));
    const channel = channelTo(upstream.url);
    const profile = { key: 'a', capabilities: { elicitation: { form: {} } } };
    await Promise.all([
      call(channel, 'tools/call', { name: 't' }, { profile }),
      call(channel, 'tools/call', { name: 't' }),
    ]);
    const declared = upstream.seen
      .slice(1)
      .map(({ params }) => (params?._meta as object)['io.modelcontextprotocol/clientCapabilities' as never]);
    expect(declared).toEqual([profile.capabilities, {}]);
  });
});

describe('a result of a modern server', () => {
  const asks = {
    resultType: 'input_required',
    inputRequests: { a: { method: 'elicitation/create', params: {} } },
    requestState: 's',
  };

  verifies('mcp:input', 'passes unchanged, and is an error for callers that cannot answer', async () => {
    const results = [
      asks,
      { resultType: 'task', taskId: '1' },
      { resultType: 'complete', content: [] },
      { content: [] },
    ];
    for (const [i, code] of ['input_required', 'upstream_error', null, null].entries()) {
      const upstream = await wire(modern((message, res) => answer(res, message, results[i])));
      const reply = await call(channelTo(upstream.url), 'tools/call', { name: 't' });
      expect([reply.era, resultOf(reply)]).toEqual(['modern', results[i]]);
      if (code === null) expect(completeOrRefuse(reply)).toBe(reply);
      else expect(() => completeOrRefuse(reply)).toThrow(expect.objectContaining({ code }));
    }
  });

  verifies('mcp:input', 'of a type that MCP does not know is no answer', async () => {
    const upstream = await wire(modern((message, res) => answer(res, message, { resultType: 'odd' })));
    await expect(call(channelTo(upstream.url), 'tools/call', { name: 't' })).rejects.toThrow(/type "odd"/);
  });
});

describe('a caller that can answer requests', () => {
  const profileOf = (key: string): CallerProfile => ({ key, capabilities: { elicitation: {} } });
  const schema = { type: 'object' as const, properties: { name: { type: 'string' as const } } };

  /** A server whose tools ask their user: `post` on the stream of the call, `get` on the stream of the session. */
  function asking(): McpServerV1 {
    const server = new McpServerV1({ name: 'asks', version: '1' }, { capabilities: { tools: {} } });
    server.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    server.server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      const request = { method: 'elicitation/create' as const, params: { message: 'Who?', requestedSchema: schema } };
      const asked =
        params.name === 'post'
          ? extra.sendRequest(request, ElicitResultSchema)
          : server.server.request(request, ElicitResultSchema);
      const { action, content } = await asked;
      return { content: [{ type: 'text', text: `${action} ${String(content?.name)}` }] };
    });
    return server;
  }

  const answering =
    (name: string): McpCall['onRequest'] =>
    async (method, params) => {
      expect([method, JSON.parse(params ?? '')]).toMatchObject(['elicitation/create', { message: 'Who?' }]);
      return { result: JSON.stringify({ action: 'accept', content: { name } }) };
    };

  const transports: [string, () => Promise<{ url: string; close(): Promise<void> }>][] = [
    ['streamable HTTP', () => startSdkV1({ stateful: true, json: false, make: asking })],
    ['HTTP+SSE', () => startSdkSse(asking)],
  ];
  for (const [transport, startIt] of transports) {
    for (const tool of ['post', 'get']) {
      verifies('mcp:input', `is asked over ${transport}, and only about its own calls: ${tool}`, async () => {
        const channel = channelTo(closing(await startIt()).url);
        const calls = times(5, (i) =>
          call(channel, 'tools/call', { name: tool }, { profile: profileOf(`p${i}`), onRequest: answering(`n${i}`) }),
        );
        const texts = (await Promise.all(calls)).map((reply) => textOf(resultOf(reply)));
        expect(texts).toEqual(times(5, (i) => `accept n${i}`));
      });
    }
  }

  verifies('mcp:input', 'has a session of its own, opened once and ended with it; others declare nothing', async () => {
    const upstream = await wire(
      legacy((message, res) => (message.http === 'GET' ? res.writeHead(405).end() : answer(res, message, complete))),
    );
    const channel = channelTo(upstream.url);
    const profile = profileOf('mine');
    await Promise.all(times(10, () => call(channel, 'tools/call', { name: 't' }, { profile })));
    await Promise.all(times(10, () => call(channel, 'tools/call', { name: 't' })));
    const declared = upstream.seen
      .filter(({ method }) => method === 'initialize')
      .map(({ params }) => JSON.stringify(params?.capabilities));
    expect(declared.sort()).toEqual(['{"elicitation":{}}', '{}']);
    await channel.release('other');
    expect(upstream.count('DELETE')).toBe(0);
    await channel.release('mine');
    expect(upstream.seen.at(-1)).toMatchObject({ http: 'DELETE', headers: { 'mcp-session-id': 'session-1' } });
    await call(channel, 'tools/call', { name: 't' }, { profile });
    expect(upstream.count('initialize')).toBe(3);
  });

  /** Asks in the stream of each call, and answers it when that is answered. */
  async function curious(method: string) {
    const open = new Map<string, { res: ServerResponse; id: number | undefined }>();
    const upstream = await wire(
      legacy((message, res) => {
        if (message.http === 'GET') return void res.writeHead(405).end();
        stream(res);
        const asked = `q${open.size}`;
        open.set(asked, { res, id: message.id });
        return event(res, { id: asked, method, params: { a: 1 } });
      }),
    );
    /** Ends the call with what was answered. */
    const end = async () => {
      const posted = await until(() => upstream.seen.find(({ id }) => open.has(String(id))), 'an answer was posted');
      const { res, id } = open.get(String(posted.id)) as { res: ServerResponse; id: number };
      event(res, { id, result: {} });
      res.end();
      return posted;
    };
    return { upstream, end };
  }

  verifies('mcp:input', 'is missing: the server receives an error, and its ping is answered', async () => {
    for (const [method, outcome] of [
      ['elicitation/create', { error: { code: -32601 } }],
      ['odd/method', { error: { code: -32601 } }],
      ['ping', { result: {} }],
    ] as const) {
      const { upstream, end } = await curious(method);
      const reply = call(channelTo(upstream.url), 'tools/call', { name: 't' });
      expect(await end()).toMatchObject(outcome);
      await reply;
    }
  });

  verifies('mcp:input', 'may take longer to answer than the call may take', async () => {
    const { upstream, end } = await curious('sampling/createMessage');
    let reply: (answer: ClientAnswer) => void = () => undefined;
    const answered = new Promise<ClientAnswer>((resolve) => (reply = resolve));
    const running = call(
      channelTo(upstream.url),
      'tools/call',
      { name: 't' },
      { profile: profileOf('a'), onRequest: () => answered, timeoutMs: 1_500 },
    );
    await upstream.came('tools/call');
    const from = Date.now();
    await until(() => Date.now() - from > 3_100, 'two deadlines passed');
    reply({ error: { code: -1, message: 'declined' } });
    expect(await end()).toMatchObject({ error: { code: -1, message: 'declined' } });
    expect((await running).error).toBeNull();
  });
});

describe('a legacy answer whose stream breaks', () => {
  const said = (message: { id?: number }) => ({ id: message.id, result: { said: 'all' } });

  verifies('channel:resume', 'is resumed after the last event, and called once', async () => {
    for (const how of ['cut', 'ended'] as const) {
      let asked: { id?: number } = {};
      const heard: string[] = [];
      const upstream = await wire(
        legacy((message, res, nth) => {
          stream(res);
          if (message.http === 'GET') {
            if (nth === 1) return void res.destroy();
            event(res, { method: 'notifications/message', params: { n: 2 } }, 'e2');
            event(res, said(asked), 'e3');
            return void res.end();
          }
          asked = message;
          res.write('retry: 10\n\n');
          event(res, { method: 'notifications/message', params: { n: 1 } }, 'e1');
          return how === 'ended' ? res.end() : setTimeout(() => res.destroy(), 50);
        }),
      );
      const onNotification = (text: string) => heard.push(text);
      const reply = await call(channelTo(upstream.url), 'tools/call', { name: 't' }, { onNotification });
      expect(resultOf(reply)).toEqual({ said: 'all' });
      expect(heard).toHaveLength(2);
      expect(upstream.count('tools/call')).toBe(1);
      const gets = upstream.seen.filter(({ http }) => http === 'GET');
      expect(gets.map(({ headers }) => [headers['last-event-id'], headers['mcp-session-id']])).toEqual([
        ['e1', 'session-1'],
        ['e1', 'session-1'],
      ]);
    }
  });

  verifies('channel:resume', 'is polled for as long as the server sends new events', async () => {
    let asked: { id?: number } = {};
    const upstream = await wire(
      legacy((message, res, nth) => {
        stream(res);
        if (message.http === 'POST') asked = message;
        else if (nth === 6) event(res, said(asked));
        return res.end(`retry: 1\nid: e${upstream.seen.length}\ndata:\n\n`);
      }),
    );
    expect(resultOf(await call(channelTo(upstream.url), 'tools/call', { name: 't' }))).toEqual({ said: 'all' });
    expect([upstream.count('GET'), upstream.count('tools/call')]).toEqual([6, 1]);
  });

  verifies('channel:resume', 'is given up after three tries that bring nothing, and is unknown then', async () => {
    const upstream = await wire(
      legacy((message, res) => {
        stream(res);
        return res.end(message.http === 'POST' ? 'retry: 1\nid: e1\ndata:\n\n' : ': nothing\n\n');
      }),
    );
    const channel = channelTo(upstream.url);
    await expect(call(channel, 'tools/call', { name: 't' })).rejects.toMatchObject({ outcomeUnknown: true });
    expect([upstream.count('GET'), upstream.count('tools/call')]).toEqual([3, 1]);
  });

  verifies('channel:resume', 'ends when its caller disconnects meanwhile, and is cancelled at the server', async () => {
    const upstream = await wire(
      legacy((message, res) => {
        if (message.http !== 'POST') return void res.writeHead(503).end();
        stream(res);
        return res.end('retry: 60000\nid: e1\ndata:\n\n');
      }),
    );
    const cancellation = new Cancellation();
    const running = call(channelTo(upstream.url), 'tools/call', { name: 't' }, { cancellation });
    await upstream.came('tools/call');
    cancellation.cancel();
    await expect(running).rejects.toThrow(/left/);
    await upstream.came('notifications/cancelled');
  });

  verifies('channel:resume', 'of a modern server is lost', async () => {
    const upstream = await wire(
      modern((_message, res) => {
        stream(res);
        return res.end('retry: 1\nid: e1\ndata:\n\n');
      }),
    );
    const channel = channelTo(upstream.url);
    await expect(call(channel, 'tools/call', { name: 't' })).rejects.toMatchObject({ outcomeUnknown: true });
    expect([upstream.count('GET'), upstream.count('tools/call')]).toEqual([0, 1]);
  });
});

describe('results that stay good', () => {
  const listing = (ttlMs: number | undefined) =>
    modern((message, res, nth) => {
      const ttl = ttlMs === undefined ? {} : { ttlMs, cacheScope: 'public' };
      return answer(res, message, { resultType: 'complete', tools: [], prompts: [], contents: [], nth, ...ttl });
    });
  const nth = async (reply: Promise<McpReply>) => resultOf(await reply).nth;

  verifies('channel:cache-hints', 'are given again, by method and params, whatever the progress token', async () => {
    const upstream = await wire(listing(60_000));
    const channel = channelTo(upstream.url);
    for (const token of [1, 2]) {
      expect(await nth(call(channel, 'tools/list', { _meta: { progressToken: token } }))).toBe(1);
    }
    expect(await nth(call(channel, 'tools/list', { cursor: 'c' }))).toBe(2);
    expect(await nth(call(channel, 'resources/read', { uri: 'a' }))).toBe(1);
    expect(await nth(call(channel, 'resources/read', { uri: 'b' }))).toBe(2);
    expect(await nth(call(channel, 'resources/read', { uri: 'a' }))).toBe(1);
  });

  verifies(
    'channel:cache-hints',
    'are of one channel and one set of capabilities, and not of rounds of input',
    async () => {
      const upstream = await wire(listing(60_000));
      const channels = channelsOn(egress);
      const [a, b] = times(2, () =>
        closing(channels.channelTo({ url: new URL(upstream.url), headers: {}, connectTimeoutMs: 20_000 })),
      );
      expect(await nth(call(a, 'tools/list'))).toBe(1);
      expect(await nth(call(b, 'tools/list'))).toBe(2);
      const profile = { key: 'k', capabilities: { roots: {} } };
      expect(await nth(call(a, 'tools/list', {}, { profile }))).toBe(3);
      expect(await nth(call(a, 'tools/list'))).toBe(1);
      for (const params of [
        { uri: 'a', requestState: 's' },
        { uri: 'a', inputResponses: {} },
      ]) {
        const before = upstream.count('resources/read');
        await call(a, 'resources/read', params);
        await call(a, 'resources/read', params);
        expect(upstream.count('resources/read')).toBe(before + 2);
      }
      expect(await nth(call(a, 'tools/call', { name: 't' }))).toBe(1);
      expect(await nth(call(a, 'tools/call', { name: 't' }))).toBe(2);
    },
  );

  verifies('channel:cache-hints', 'end with their time, and without a time are not kept', async () => {
    for (const ttlMs of [undefined, 0, -5]) {
      const upstream = await wire(listing(ttlMs));
      const channel = channelTo(upstream.url);
      expect([await nth(call(channel, 'tools/list')), await nth(call(channel, 'tools/list'))]).toEqual([1, 2]);
    }
    const upstream = await wire(listing(150));
    const channel = channelTo(upstream.url);
    expect(await nth(call(channel, 'tools/list'))).toBe(1);
    await until(async () => (await nth(call(channel, 'tools/list'))) === 2, 'the list was read anew');
  });
});

describe('a bearer token', () => {
  /** Takes only this token. */
  async function guarded(good: () => string, script: WireScript = (message, res) => answer(res, message, complete)) {
    const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };
    return wire((message, res, nth) =>
      message.headers.authorization === `Bearer ${good()}`
        ? modern(script)(message, res, nth)
        : res.writeHead(401, challenge).end(),
    );
  }

  verifies('channel:bearer', 'that was refused is requested once more, and the call sent once more', async () => {
    let good = 'one';
    const asked: (string | undefined)[] = [];
    const upstream = await guarded(() => good);
    let token = 'one';
    const bearer = async (rejected?: string) => {
      asked.push(rejected);
      if (rejected === 'one') token = 'two';
      return token;
    };
    const channel = channelTo(upstream.url, { bearer });
    await call(channel, 'tools/call', { name: 't' });
    good = 'two';
    expect((await call(channel, 'tools/call', { name: 't' })).error).toBeNull();
    expect(asked).toEqual([undefined, undefined, undefined, 'one']);
    expect(upstream.count('tools/call')).toBe(3);
    good = 'three';
    await expect(call(channel, 'tools/call', { name: 't' })).rejects.toMatchObject({
      code: 'auth_required',
      challenges: ['Bearer error="invalid_token"'],
    });
    expect(upstream.count('tools/call')).toBe(4);
  });

  verifies('channel:bearer', 'goes with every request of a session, its streams and its end', async () => {
    const upstream = await wire(
      legacy((message, res) => {
        if (message.http !== 'GET') return answer(res, message, complete);
        stream(res);
      }),
    );
    const channel = channelTo(upstream.url, { bearer: async () => 'tok', headers: { 'x-own': '1' } });
    const profile = { key: 'a', capabilities: { roots: {} } };
    await call(channel, 'tools/call', { name: 't' }, { profile });
    await upstream.came('GET');
    await channel.close();
    expect(upstream.count('DELETE')).toBe(1);
    for (const { headers } of upstream.seen)
      expect(headers).toMatchObject({ authorization: 'Bearer tok', 'x-own': '1' });
  });

  verifies('channel:bearer', 'that cannot be had ends the call with the reason', async () => {
    const upstream = await guarded(() => 'x');
    const channel = channelTo(upstream.url, { bearer: () => Promise.reject(new Error('no token today')) });
    await expect(call(channel, 'tools/list')).rejects.toThrow('no token today');
    expect(upstream.seen).toEqual([]);
  });
});

describe('the timing of a call', () => {
  it('contains the duration of each phase', async () => {
    const upstream = await wire(legacy((message, res) => void setTimeout(() => answer(res, message, modernHello), 80)));
    const channel = channelTo(upstream.url.replace('127.0.0.1', 'localhost'));
    const [cold, warm]: CallTiming[] = [{}, {}];
    await call(channel, 'tools/call', { name: 't' }, { timing: cold });
    await call(channel, 'tools/call', { name: 't' }, { timing: warm });
    for (const { firstByteMs } of [cold, warm]) expect(firstByteMs).toBeGreaterThanOrEqual(70);
    expect(warm.connectMs).toBe(0);
    expect(cold.queueMs).toBeGreaterThan(0);
    for (const timing of [cold, warm]) {
      for (const ms of Object.values(timing) as number[]) expect(ms).toBeGreaterThanOrEqual(0);
    }
  });
});

describe('a method of any name', () => {
  it('reaches a modern server, which answers that the method is unknown', async () => {
    const upstream = await wire(modern(({ id }, res) => refuse(res, id, 404, -32601)));
    const { error } = await call(channelTo(upstream.url), 'größe\r\nx: y');
    expect(error?.code).toBe(-32601);
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'mcp-method': '=?base64?Z3LDtsOfZQ0KeDogeQ==?=' });
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('x');
  });
});

describe('a call without a waiting caller', () => {
  it('ends no process: a stream whose token cannot be had is tried again', async () => {
    const streams: ServerResponse[] = [];
    const upstream = await wire(
      legacy((message, res) => {
        if (message.http !== 'GET') return answer(res, message, { content: [] });
        stream(res);
        streams.push(res);
      }),
    );
    let refused = 0;
    let isAway = false;
    const bearer = (): Promise<string> => {
      if (!isAway) return Promise.resolve('token');
      refused += 1;
      return Promise.reject(new Error('the store is away'));
    };
    const channel = channelTo(upstream.url, { bearer });
    const profile = { key: 'k', capabilities: { roots: {} } };
    await call(channel, 'tools/call', { name: 't' }, { profile });
    isAway = true;
    streams[0]?.end();
    await until(() => refused > 0, 'the stream is asked for');
    isAway = false;
    await until(() => streams.length === 2, 'it is open again');
  });

  it('fills no memory: answers that the upstream does not take are dropped', async () => {
    let told: ServerResponse | undefined;
    const held: ServerResponse[] = [];
    const upstream = await wire(
      legacy((message, res) => {
        if (message.result !== undefined) return held.push(res);
        if (message.http !== 'GET') return answer(res, message, {});
        stream(res);
        told = res;
      }),
    );
    const channel = channelTo(upstream.url);
    let heard = 0;
    const listener = { onNotification: () => void (heard += 1), onEnd: () => undefined };
    await channel.listen({ toolsListChanged: true }, listener, { timeoutMs: 20_000 });
    for (let i = 0; i < 300 && told; i += 1) event(told, { id: i, method: 'ping' });
    if (told) event(told, { method: 'notifications/tools/list_changed' });
    await until(() => heard === 1, 'everything was read');
    const answers = () => upstream.seen.filter(({ result }) => result !== undefined).length;
    await until(() => answers() === 256, 'as many as may wait came');
    await call(channel, 'tools/call', { name: 't' });
    expect(answers()).toBe(256);
    for (const res of held) res.writeHead(202).end();
  });
});
