/** A channel alone, to servers every byte of which is written by hand, and to those of the official packages. */
import { describe, expect, it } from '@jest/globals';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, ElicitResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { ServerResponse } from 'node:http';
import { HttpChannels } from '../../../src/mcp/client/http/http-channel.js';
import type { HttpTarget } from '../../../src/mcp/client/http/http-wire.js';
import { EraMemory } from '../../../src/mcp/eras/era-memory.js';
import { ErasRepository } from '../../../src/mcp/eras/era.repository.js';
import { Cancellation } from '../../../src/mcp/protocol/cancellation.js';
import type {
  CallerProfile,
  CallTiming,
  Channel,
  ClientAnswer,
  McpCall,
  McpReply,
} from '../../../src/mcp/protocol/channel.js';
import { completeOrRefuse } from '../../../src/mcp/protocol/messages.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { testApp } from '../../support/app.js';
import { times } from '../../support/mcp/calls.js';
import { startFaulty, type FaultKind } from '../../support/special-upstreams/faulty-upstreams.js';
import { startSdkSse, startSdkV1, startSdkV2, type SdkUpstream } from '../../support/special-upstreams/sdk-upstream.js';
import { until } from '../../support/until.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';
import {
  answer,
  event,
  legacy,
  legacyHello,
  modern,
  modernHello,
  refuse,
  startWire,
  stream,
  type WireMessage,
  type WireScript,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';

const app = testApp();

/** Channels of one more process on the same database. */
function process(): HttpChannels {
  return new HttpChannels(app.get(Egress), new EraMemory(app.get(ErasRepository)), app.env);
}

function channelTo(url: string, target: Partial<HttpTarget> = {}, channels = process()): Channel {
  return closing(channels.channelTo({ url: new URL(url), headers: {}, connectTimeoutMs: 20_000, ...target }));
}

function call(channel: Channel, method: string, params: object = {}, more: Partial<McpCall> = {}): Promise<McpReply> {
  return channel.request({ method, params: JSON.stringify(params), timeoutMs: 20_000, ...more });
}

function resultOf({ text }: McpReply): Record<string, unknown> {
  return (JSON.parse(text) as { result: Record<string, unknown> }).result;
}

async function echo(channel: Channel, message: string, more: Partial<McpCall> = {}): Promise<string> {
  return textOf(resultOf(await call(channel, 'tools/call', { name: 'echo', arguments: { message } }, more)));
}

/** A tool call's answer that gives the message back. */
const echoes: WireScript = (message, res) => {
  const args = message.params?.arguments as { message: string };
  return answer(res, message, { resultType: 'complete', content: [{ type: 'text', text: args.message }] });
};

async function wire(script: WireScript): Promise<WireUpstream> {
  return closing(await startWire(script));
}

async function wired(script: WireScript, target?: Partial<HttpTarget>) {
  const upstream = await wire(script);
  return { upstream, channel: channelTo(upstream.url, target) };
}

const complete = { resultType: 'complete', content: [] };
const rpc = (upstream: WireUpstream) => upstream.seen.map(({ method, http }) => method ?? http);

describe('servers of every kind', () => {
  const kinds: [string, () => Promise<SdkUpstream>, string][] = [
    ['SDK v1 with sessions', () => startSdkV1({ stateful: true, json: false }), 'legacy'],
    ['SDK v1 without sessions', () => startSdkV1({ stateful: false, json: true }), 'legacy'],
    ['SDK v1 over HTTP+SSE', () => startSdkSse(), 'legacy'],
    ['SDK v2 for both eras', () => startSdkV2({ legacy: 'stateless' }), 'modern'],
    ['SDK v2 for 2026-07-28 alone', () => startSdkV2({ legacy: 'reject' }), 'modern'],
  ];
  for (const [what, startIt, era] of kinds) {
    verifies('channel:era', `are found out and called: ${what}`, async () => {
      const { url } = closing(await startIt());
      const channel = channelTo(url);
      expect((await channel.open(5_000)).era).toBe(era);
      const messages = times(20, (i) => `hællo ${i}`);
      expect(await Promise.all(messages.map((message) => echo(channel, message)))).toEqual(messages);
      const { result } = await channel.request({ method: 'tools/list', timeoutMs: 20_000 });
      expect(result).not.toBeNull();
      // The verdict is there for the next process, whose first call needs no handshake to know it.
      expect(await echo(channelTo(url), 'again')).toBe('again');
    });
  }
});

describe('finding out', () => {
  /** Answers of a server to `server/discover`, and the era that follows from each. */
  const outcomes: [string, (message: WireMessage, res: ServerResponse, nth: number) => unknown, 'modern' | 'legacy'][] =
    [
      ['a result with our version', (message, res) => answer(res, message, modernHello), 'modern'],
      [
        'a result without type, ttl and scope',
        (message, res) => answer(res, message, { supportedVersions: ['2026-07-28'], capabilities: {} }),
        'modern',
      ],
      [
        'a result with legacy versions only',
        (message, res) => answer(res, message, { ...modernHello, supportedVersions: ['2025-11-25'] }),
        'legacy',
      ],
      ['a result without versions', (message, res) => answer(res, message, { capabilities: {} }), 'legacy'],
      ['-32601 with status 200', ({ id }, res) => refuse(res, id, 200, -32601), 'legacy'],
      ['-32601 with status 404', ({ id }, res) => refuse(res, id, 404, -32601), 'legacy'],
      ['-32000 without an id', (_message, res) => refuse(res, null, 400, -32000), 'legacy'],
      [
        '-32022 with legacy versions',
        ({ id }, res) => refuse(res, id, 400, -32022, { supported: ['2025-06-18'] }),
        'legacy',
      ],
      [
        '-32022 with our version, once',
        (message, res, nth) =>
          nth === 1
            ? refuse(res, message.id, 400, -32022, { supported: ['2026-07-28'] })
            : answer(res, message, modernHello),
        'modern',
      ],
      [
        '-32020, once',
        (message, res, nth) => (nth === 1 ? refuse(res, message.id, 400, -32020) : answer(res, message, modernHello)),
        'modern',
      ],
      ['-32020 again and again', ({ id }, res) => refuse(res, id, 400, -32020), 'legacy'],
      ['-32021 again and again', ({ id }, res) => refuse(res, id, 400, -32021), 'legacy'],
      [
        'a web page with status 404',
        (_message, res) => res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>'),
        'legacy',
      ],
      ['status 405', (_message, res) => res.writeHead(405).end(), 'legacy'],
      ['status 415', (_message, res) => res.writeHead(415).end(), 'legacy'],
      ['nothing, with status 200', (_message, res) => res.writeHead(200).end(), 'legacy'],
      ['status 500, as servers do that stumble over it', (_message, res) => res.writeHead(500).end(), 'legacy'],
    ];
  for (const [what, discover, era] of outcomes) {
    verifies('channel:era', `takes ${what} for ${era}`, async () => {
      const { upstream, channel } = await wired((message, res, nth) => {
        if (message.method === 'server/discover') return discover(message, res, nth);
        if (message.method === 'initialize') return answer(res, message, legacyHello);
        return message.id === undefined ? res.writeHead(202).end() : echoes(message, res, nth);
      });
      expect(await echo(channel, 'x')).toBe('x');
      expect((await channel.open(20_000)).era).toBe(era);
      const [first] = upstream.seen;
      expect(first.method).toBe('server/discover');
      expect(first.headers).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' });
      const initialize = upstream.seen.find(({ method }) => method === 'initialize');
      expect(initialize?.headers['mcp-protocol-version']).toBeUndefined();
      expect(upstream.count('initialize')).toBe(era === 'legacy' ? 1 : 0);
      expect(upstream.count('tools/call')).toBe(1);
    });
  }

  verifies('channel:era', 'takes a server that names no version and no initialize for modern after all', async () => {
    const { channel } = await wired((message, res, nth) => {
      if (message.method === 'server/discover') return answer(res, message, { capabilities: {} });
      if (message.method === 'initialize') return refuse(res, message.id, 404, -32601);
      return echoes(message, res, nth);
    });
    expect(await echo(channel, 'x')).toBe('x');
    expect((await channel.open(20_000)).era).toBe('modern');
  });

  const undecided: [string, WireScript, RegExp][] = [
    ['401', (_message, res) => res.writeHead(401).end(), /answered 401/],
    ['403', (_message, res) => res.writeHead(403).end(), /answered 403/],
    ['429', (_message, res) => res.writeHead(429).end(), /answered 429/],
    ['502', (_message, res) => res.writeHead(502).end(), /answered 502/],
    ['503', (_message, res) => res.writeHead(503).end(), /answered 503/],
    ['302', (_message, res) => res.writeHead(302, { location: 'https://elsewhere.example/mcp' }).end(), /elsewhere/],
    [
      '-32022 and versions nobody knows',
      ({ id }, res) => refuse(res, id, 400, -32022, { supported: ['2099-01-01'] }),
      /refused/,
    ],
    ['a reset', (_message, res) => res.destroy(), /broke/],
  ];
  for (const [what, script, sentence] of undecided) {
    verifies('channel:era', `learns nothing from ${what}, and says what happened`, async () => {
      let isWell = false;
      const upstream = await wire((message, res, nth) =>
        isWell ? modern(echoes)(message, res, nth) : script(message, res, nth),
      );
      await expect(echo(channelTo(upstream.url), 'x')).rejects.toThrow(sentence);
      expect(new Set(rpc(upstream))).toEqual(new Set(['server/discover']));
      isWell = true;
      expect(await echo(channelTo(upstream.url), 'y')).toBe('y');
    });
  }

  for (const kind of ['html', 'not-found', 'empty', 'garbage', 'not-rpc', 'server-error'] as FaultKind[]) {
    verifies('channel:era', `gives up soon on what is not an MCP endpoint: ${kind}`, async () => {
      const faulty = closing(await startFaulty(kind));
      await expect(channelTo(faulty.url).open(20_000)).rejects.toMatchObject({ code: 'upstream_error' });
      expect(faulty.hits()).toBeLessThanOrEqual(3);
    });
  }
});

describe('the detected era', () => {
  verifies('channel:era', 'costs a legacy server one extra request, once for all processes', async () => {
    const upstream = await start({ sessions: true });
    for (const channels of [process(), process(), process()]) {
      await Promise.all(times(10, (i) => echo(channelTo(upstream.url, {}, channels), `${i}`)));
    }
    expect(upstream.count('server/discover')).toBe(1);
    expect(upstream.count('initialize')).toBe(30);
  });

  verifies('channel:era', 'costs a modern server nothing at all from then on', async () => {
    const upstream = await start({ modernOnly: true });
    await echo(channelTo(upstream.url), 'first');
    const before = upstream.requests.length;
    await echo(channelTo(upstream.url), 'second');
    expect(upstream.requests).toHaveLength(before + 1);
  });

  verifies('channel:era', 'is kept by address, without it: it may carry a credential', async () => {
    const upstream = await start();
    const url = `${upstream.url}?key=very-secret`;
    await echo(channelTo(url), 'x');
    const rows: unknown = await app.database.query('SELECT * FROM upstream_eras');
    expect(JSON.stringify(rows)).not.toContain('very-secret');
    await echo(channelTo(upstream.url), 'x');
    expect(upstream.count('server/discover')).toBe(2);
  });

  verifies('channel:era', 'is not shared after a refusal, which may be about credentials', async () => {
    const upstream = await start({ requireHeaders: { 'x-key': 'good' } });
    const channels = process();
    const outcomes = await Promise.allSettled([
      echo(channelTo(upstream.url, {}, channels), 'none'),
      echo(channelTo(upstream.url, { headers: { 'x-key': 'good' } }, channels), 'good'),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });

  /** A server that becomes another at the same address. */
  async function changing(first: WireScript): Promise<{ upstream: WireUpstream; become(script: WireScript): void }> {
    let script = first;
    const upstream = await wire((message, res, nth) => script(message, res, nth));
    return { upstream, become: (next) => (script = next) };
  }

  const asLegacy = legacy(echoes);
  const asModern = modern(echoes);
  const oddly = (refusal: (message: WireMessage, res: ServerResponse) => unknown): WireScript =>
    legacy((message, res, nth) =>
      message.headers['mcp-method'] === undefined ? echoes(message, res, nth) : refusal(message, res),
    );
  const modernToLegacy: [string, WireScript][] = [
    ['with -32022', oddly(({ id }, res) => refuse(res, id, 400, -32022, { supported: ['2025-11-25'] }))],
    ['with 404 and no JSON', oddly((_message, res) => res.writeHead(404).end('no'))],
    ['with 405', oddly((_message, res) => res.writeHead(405).end())],
    ['with -32000 to nobody', oddly((_message, res) => refuse(res, null, 400, -32000))],
  ];
  for (const [how, script] of modernToLegacy) {
    verifies('channel:era', `is detected again when a modern server is legacy now: ${how}`, async () => {
      const { upstream, become } = await changing(asModern);
      await echo(channelTo(upstream.url), 'a');
      become(script);
      const channel = channelTo(upstream.url);
      expect(await echo(channel, 'b')).toBe('b');
      expect((await channel.open(20_000)).era).toBe('legacy');
      expect(upstream.count('server/discover')).toBe(2);
      await echo(channelTo(upstream.url), 'c');
      expect(upstream.count('server/discover')).toBe(2);
    });
  }

  verifies('channel:era', 'is detected again after a response of legacy shape, which is returned', async () => {
    const { upstream, become } = await changing(asModern);
    await echo(channelTo(upstream.url), 'a');
    // The server runs calls that declare 2026-07-28.
    become(legacy((message, res) => answer(res, message, { content: [{ type: 'text', text: 'ran' }] })));
    const channel = channelTo(upstream.url);
    expect(await echo(channel, 'b')).toBe('ran');
    expect(upstream.count('tools/call')).toBe(2);
    await upstream.came('tools/call', 2);
    expect((await channel.open(20_000)).era).toBe('legacy');
    expect(upstream.count('server/discover')).toBe(2);
  });

  verifies('channel:era', 'is detected again when a legacy server has become modern', async () => {
    const { upstream, become } = await changing(asLegacy);
    await echo(channelTo(upstream.url), 'a');
    become(asModern);
    const channel = channelTo(upstream.url);
    expect(await echo(channel, 'b')).toBe('b');
    expect((await channel.open(20_000)).era).toBe('modern');
    expect(upstream.count('server/discover')).toBe(2);
  });

  verifies('channel:era', 'is not doubted by failures that say nothing of it', async () => {
    let isDown = false;
    const upstream = await wire((message, res, nth) =>
      isDown ? res.writeHead(503).end() : modern(echoes)(message, res, nth),
    );
    await echo(channelTo(upstream.url), 'a');
    isDown = true;
    await expect(echo(channelTo(upstream.url), 'b')).rejects.toThrow(/answered 503/);
    isDown = false;
    await echo(channelTo(upstream.url), 'c');
    expect(upstream.count('server/discover')).toBe(1);
    expect(upstream.count('initialize')).toBe(0);
  });

  verifies('channel:era', 'is detected again after its lifetime, also in a process that has it cached', async () => {
    const memory = new EraMemory(app.get(ErasRepository));
    const url = new URL('https://mcp.example.com/expiring');
    let probes = 0;
    const settle = (msLeft: number) =>
      memory.settle(url, () => {
        probes += 1;
        const learnedAt = Date.now();
        return Promise.resolve({ kind: 'streamable', reason: 'x', learnedAt, expiresAt: learnedAt + msLeft });
      });
    await settle(-1);
    await settle(60_000);
    await settle(60_000);
    expect(probes).toBe(2);
  });

  verifies('channel:era', 'is used without the database', async () => {
    const upstream = await start();
    const away = () => Promise.reject(new Error('away'));
    const memory = new EraMemory({ read: away, write: away, forget: away });
    const channels = new HttpChannels(app.get(Egress), memory, app.env);
    expect(await echo(channelTo(upstream.url, {}, channels), 'x')).toBe('x');
    expect(await echo(channelTo(upstream.url, {}, channels), 'y')).toBe('y');
    expect(upstream.count('server/discover')).toBe(1);
  });
});

describe('a server of both eras', () => {
  const isModern = ({ headers }: WireMessage) => headers['mcp-protocol-version'] === '2026-07-28';
  const answers: WireScript = (message, res, nth) =>
    message.method === 'tools/call' ? echoes(message, res, nth) : answer(res, message, { tools: [] });
  const dual: WireScript = (message, res, nth) =>
    (isModern(message) ? modern(answers) : legacy(answers))(message, res, nth);
  const legacyEcho = (channel: Channel) => {
    return call(channel, 'tools/call', { name: 'echo', arguments: { message: 'x' } }, { era: 'legacy' });
  };

  verifies('mcp:both-eras', 'serves each call in the era that it needs, by every process', async () => {
    const { upstream, channel } = await wired(dual);
    await echo(channel, 'x');
    expect((await channel.open(20_000)).era).toBe('modern');
    expect(upstream.count('initialize')).toBe(0);
    expect((await legacyEcho(channel)).era).toBe('legacy');
    expect((await channel.open(20_000, 'legacy')).era).toBe('legacy');
    expect(upstream.seen.at(-1)?.headers['mcp-session-id']).toBe('session-1');
    await echo(channel, 'x');
    expect(upstream.seen.at(-1)?.headers['mcp-session-id']).toBeUndefined();
    const other = channelTo(upstream.url);
    expect((await legacyEcho(other)).era).toBe('legacy');
    expect((await other.open(20_000)).era).toBe('modern');
    expect([upstream.count('initialize'), upstream.count('server/discover')]).toEqual([2, 2]);
    const [{ kind }] = await app.database.query(
      'SELECT kind FROM upstream_eras ORDER BY learned_at DESC, expires_at DESC LIMIT 1',
    );
    expect(kind).toBe('both');
  });

  verifies('mcp:both-eras', 'serves all calls in the modern one where it opens no session', async () => {
    const statelessly: WireScript = (message, res, nth) =>
      (isModern(message) ? modern(answers) : legacy(answers, { sessions: false }))(message, res, nth);
    for (const script of [statelessly, modern(echoes)]) {
      const { upstream, channel } = await wired(script);
      for (let round = 0; round < 2; round += 1) expect((await legacyEcho(channel)).era).toBe('modern');
      expect(upstream.count('initialize')).toBe(1);
    }
  });

  verifies('mcp:both-eras', 'is used in the modern era after it dropped its sessions', async () => {
    let script = dual;
    const upstream = await wire((...given) => script(...given));
    expect((await legacyEcho(channelTo(upstream.url))).era).toBe('legacy');
    script = modern(echoes);
    expect((await legacyEcho(channelTo(upstream.url))).era).toBe('modern');
  });

  verifies('mcp:both-eras', 'serves the modern era while it fails to open a session', async () => {
    let isDown = true;
    const { channel } = await wired((message, res, nth) =>
      isDown && !isModern(message) ? res.writeHead(503).end() : dual(message, res, nth),
    );
    expect((await legacyEcho(channel)).era).toBe('modern');
    isDown = false;
    await until(async () => (await legacyEcho(channel)).era === 'legacy', 'its session is open');
  });

  verifies('mcp:log-level', 'has the log level of each caller in the session of that caller', async () => {
    const { upstream, channel } = await wired(dual);
    const call = (key: string, level: string) =>
      channel.request({
        method: 'tools/list',
        timeoutMs: 20_000,
        era: 'legacy',
        profile: { key, capabilities: {}, level, mayShare: true },
      });
    for (const level of ['info', 'info', 'debug']) await call('a', level);
    await call('b', 'error');
    const levels = upstream.seen.filter(({ method }) => method === 'logging/setLevel');
    expect(levels.map(({ params, headers }) => [params?.level, headers['mcp-session-id']])).toEqual([
      ['info', 'session-2'],
      ['debug', 'session-2'],
      ['error', 'session-3'],
    ]);
  });
});

describe('HTTP+SSE', () => {
  verifies('channel:sse', 'runs calls side by side, each with its own answer, and ends with the channel', async () => {
    const upstream = closing(await startSdkSse());
    const channel = channelTo(upstream.url);
    const messages = times(50, (i) => `m${i}`);
    expect(await Promise.all(messages.map((message) => echo(channel, message)))).toEqual(messages);
    expect(upstream.streams()).toBe(1);
    await channel.close();
    await expect(echo(channel, 'x')).rejects.toThrow();
  });

  /** The old transport by hand: answers when it is told to. */
  async function byHand(endpoint = '/messages') {
    const downlinks: ServerResponse[] = [];
    const upstream = await wire((message, res) => {
      if (message.http === 'GET') {
        downlinks.push(res);
        stream(res);
        return res.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      }
      if (message.path === '/mcp') return res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>');
      res.writeHead(202).end();
      const down = downlinks.at(-1) as ServerResponse;
      if (message.method === 'initialize') event(down, { id: message.id, result: legacyHello });
      if (message.method === 'tools/list') event(down, { id: message.id, result: { tools: [] } });
    });
    return { upstream, downlinks };
  }

  verifies('channel:sse', 'fails what runs when the stream is lost, and opens a new one for the next', async () => {
    const { upstream, downlinks } = await byHand();
    const channel = channelTo(upstream.url);
    await channel.open(20_000);
    const call = channel.request({ method: 'tools/call', params: '{"name":"t"}', timeoutMs: 20_000 });
    const failed = expect(call).rejects.toMatchObject({
      outcomeUnknown: true,
      message: expect.stringMatching(/unknown; it was not repeated/),
    });
    await upstream.came('tools/call');
    downlinks[0].destroy();
    await failed;
    expect((await channel.request({ method: 'tools/list', timeoutMs: 20_000 })).result).not.toBeNull();
    expect([upstream.count('tools/call'), downlinks.length]).toEqual([1, 2]);
  });

  verifies('channel:sse', 'cancels at the server when a caller disconnects, and at the deadline', async () => {
    const { upstream } = await byHand();
    const channel = channelTo(upstream.url);
    await channel.open(20_000);
    await expect(echo(channel, 'x', { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'timeout',
      outcomeUnknown: true,
    });
    await upstream.came('notifications/cancelled');
    const call = upstream.seen.find(({ method }) => method === 'tools/call');
    const note = upstream.seen.find(({ method }) => method === 'notifications/cancelled');
    expect(note?.params?.requestId).toBe(call?.id);
  });

  verifies('channel:sse', 'sends nothing to an address on another site', async () => {
    const other = await wire((_message, res) => res.writeHead(202).end());
    const { upstream } = await byHand(other.url);
    await expect(channelTo(upstream.url).open(20_000)).rejects.toThrow();
    expect(other.seen).toEqual([]);
  });
});

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
    const { upstream, channel } = await wired(modern((message, res) => answer(res, message, complete)));
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
    const { upstream, channel } = await wired(strict(() => tools));
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

  verifies('channel:era', 'is repaired by reading the tools when its headers are rejected, once', async () => {
    const { upstream, channel } = await wired(strict(() => tools));
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
    const { upstream, channel } = await wired(modern((message, res) => answer(res, message, complete)));
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
      {
        ...asks,
        inputRequests: { p: { method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example/x' } } },
      },
    ];
    for (const [i, code] of ['input_required', 'upstream_error', null, null, 'input_required'].entries()) {
      const upstream = await wire(modern((message, res) => answer(res, message, results[i])));
      const reply = await call(channelTo(upstream.url), 'tools/call', { name: 't' });
      expect([reply.era, resultOf(reply)]).toEqual(['modern', results[i]]);
      if (code === null) expect(completeOrRefuse(reply)).toBe(reply);
      else expect(() => completeOrRefuse(reply)).toThrow(expect.objectContaining({ code }));
      if (i === 4) expect(() => completeOrRefuse(reply)).toThrow('Open https://a.example/x , then call again.');
    }
  });

  verifies('mcp:input', 'is rejected if MCP does not know its type', async () => {
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

  const transports: [string, () => Promise<SdkUpstream>][] = [
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
    const { upstream, channel } = await wired(
      legacy((message, res) => (message.http === 'GET' ? res.writeHead(405).end() : answer(res, message, complete))),
    );
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

  verifies('mcp:input', 'is missing: the server receives an error, and a reply to its ping', async () => {
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

  verifies('channel:resume', 'is given up at the timeout of the call, and is unknown then', async () => {
    const { upstream, channel } = await wired(
      legacy((message, res) => {
        stream(res);
        return res.end(message.http === 'POST' ? 'retry: 1\nid: e1\ndata:\n\n' : ': nothing\n\n');
      }),
    );
    await expect(call(channel, 'tools/call', { name: 't' })).rejects.toMatchObject({ outcomeUnknown: true });
    expect(upstream.count('GET')).toBeGreaterThan(3);
    expect(upstream.count('tools/call')).toBe(1);
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
    await expect(running).rejects.toThrow(/disconnected/);
    await upstream.came('notifications/cancelled');
  });

  verifies('channel:resume', 'is lost where the server is modern', async () => {
    const { upstream, channel } = await wired(
      modern((_message, res) => {
        stream(res);
        return res.end('retry: 1\nid: e1\ndata:\n\n');
      }),
    );
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
    const { channel } = await wired(listing(60_000));
    for (const token of [1, 2]) {
      expect(await nth(call(channel, 'tools/list', { _meta: { progressToken: token } }))).toBe(1);
    }
    expect(await nth(call(channel, 'tools/list', { cursor: 'c' }))).toBe(2);
    expect(await nth(call(channel, 'resources/read', { uri: 'a' }))).toBe(1);
    expect(await nth(call(channel, 'resources/read', { uri: 'b' }))).toBe(2);
    expect(await nth(call(channel, 'resources/read', { uri: 'a' }))).toBe(1);
  });

  verifies('channel:cache-hints', 'are of one channel and set of capabilities, not of rounds of input', async () => {
    const upstream = await wire(listing(60_000));
    const channels = process();
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
  });

  verifies('channel:cache-hints', 'end with their time, and without a time are not kept', async () => {
    for (const ttlMs of [undefined, 0, -5]) {
      const { channel } = await wired(listing(ttlMs));
      expect([await nth(call(channel, 'tools/list')), await nth(call(channel, 'tools/list'))]).toEqual([1, 2]);
    }
    const { channel } = await wired(listing(150));
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

  verifies('channel:bearer', 'is requested again after a rejection, and the call sent again', async () => {
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
    const { upstream, channel } = await wired(
      legacy((message, res) => {
        if (message.http !== 'GET') return answer(res, message, complete);
        stream(res);
      }),
      { bearer: async () => 'tok', headers: { 'x-own': '1' } },
    );
    const profile = { key: 'a', capabilities: { roots: {} } };
    await call(channel, 'tools/call', { name: 't' }, { profile });
    await upstream.came('GET');
    await channel.close();
    expect(upstream.count('DELETE')).toBe(1);
    for (const { headers } of upstream.seen)
      expect(headers).toMatchObject({ authorization: 'Bearer tok', 'x-own': '1' });
  });

  verifies('channel:bearer', 'fails the call with the reason when it cannot be obtained', async () => {
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
  it('crashes no process: a stream whose token cannot be obtained is tried again', async () => {
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
    const { upstream, channel } = await wired(
      legacy((message, res) => {
        if (message.result !== undefined) return held.push(res);
        if (message.http !== 'GET') return answer(res, message, {});
        stream(res);
        told = res;
      }),
    );
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
