import { describe, expect } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import type { Channel } from '../../../src/mcp/protocol/channel.js';
import { HttpChannels } from '../../../src/mcp/client/http/http-channel.js';
import type { HttpTarget } from '../../../src/mcp/client/http/http-wire.js';
import { EraMemory } from '../../../src/mcp/eras/era-memory.js';
import { EraRepository } from '../../../src/mcp/eras/era.repository.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { testApp } from '../../support/app.js';
import { times } from '../../support/mcp/calls.js';
import { startFaulty, type FaultKind } from '../../support/special-upstreams/faulty-upstreams.js';
import { startSdkSse, startSdkV1, startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
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
  return new HttpChannels(app.get(Egress), new EraMemory(app.get(EraRepository)), app.env);
}

function channelTo(url: string, target: Partial<HttpTarget> = {}, channels = process()): Channel {
  return closing(channels.channelTo({ url: new URL(url), headers: {}, connectTimeoutMs: 20_000, ...target }));
}

function echo(channel: Channel, message: string, timeoutMs = 20_000): Promise<string> {
  const params = JSON.stringify({ name: 'echo', arguments: { message } });
  return channel
    .request({ method: 'tools/call', params, timeoutMs })
    .then(({ text }) => textOf((JSON.parse(text) as { result: unknown }).result));
}

/** A tool call's answer that gives the message back. */
const echoes: WireScript = (message, res) => {
  const args = message.params?.arguments as { message: string };
  return answer(res, message, { resultType: 'complete', content: [{ type: 'text', text: args.message }] });
};

async function wire(script: WireScript): Promise<WireUpstream> {
  return closing(await startWire(script));
}

const rpc = (upstream: WireUpstream) => upstream.seen.map(({ method, http }) => method ?? http);

describe('servers of every kind', () => {
  const kinds: [string, () => Promise<{ url: string; close(): Promise<void> }>, string][] = [
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
      const upstream = await wire((message, res, nth) => {
        if (message.method === 'server/discover') return discover(message, res, nth);
        if (message.method === 'initialize') return answer(res, message, legacyHello);
        return message.id === undefined ? res.writeHead(202).end() : echoes(message, res, nth);
      });
      const channel = channelTo(upstream.url);
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
    const upstream = await wire((message, res, nth) => {
      if (message.method === 'server/discover') return answer(res, message, { capabilities: {} });
      if (message.method === 'initialize') return refuse(res, message.id, 404, -32601);
      return echoes(message, res, nth);
    });
    const channel = channelTo(upstream.url);
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
    verifies('channel:era', `gives up soon on an endpoint that is none: ${kind}`, async () => {
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

  verifies(
    'channel:era',
    'is not shared after a refusal: a caller without credentials does not affect others',
    async () => {
      const upstream = await start({ requireHeaders: { 'x-key': 'good' } });
      const channels = process();
      const outcomes = await Promise.allSettled([
        echo(channelTo(upstream.url, {}, channels), 'none'),
        echo(channelTo(upstream.url, { headers: { 'x-key': 'good' } }, channels), 'good'),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    },
  );

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
    verifies('channel:era', `is found out anew when a modern server is legacy now: ${how}`, async () => {
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
    const memory = new EraMemory(app.get(EraRepository));
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
    const params = JSON.stringify({ name: 'echo', arguments: { message: 'x' } });
    return channel.request({ method: 'tools/call', params, timeoutMs: 20_000, era: 'legacy' });
  };

  verifies('mcp:both-eras', 'serves each call in the era that it needs, by every process', async () => {
    const upstream = await wire(dual);
    const channel = channelTo(upstream.url);
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
      const upstream = await wire(script);
      const channel = channelTo(upstream.url);
      for (let round = 0; round < 2; round += 1) expect((await legacyEcho(channel)).era).toBe('modern');
      expect(upstream.count('initialize')).toBe(1);
    }
  });

  verifies('mcp:both-eras', 'that dropped its sessions is used in the modern one', async () => {
    let script = dual;
    const upstream = await wire((...given) => script(...given));
    expect((await legacyEcho(channelTo(upstream.url))).era).toBe('legacy');
    script = modern(echoes);
    expect((await legacyEcho(channelTo(upstream.url))).era).toBe('modern');
  });

  verifies('mcp:both-eras', 'serves the modern era while it fails to open a session', async () => {
    let isDown = true;
    const upstream = await wire((message, res, nth) =>
      isDown && !isModern(message) ? res.writeHead(503).end() : dual(message, res, nth),
    );
    const channel = channelTo(upstream.url);
    expect((await legacyEcho(channel)).era).toBe('modern');
    isDown = false;
    await until(async () => (await legacyEcho(channel)).era === 'legacy', 'its session is open');
  });

  verifies('mcp:log-level', 'has the log level of each caller in the session of that caller', async () => {
    const upstream = await wire(dual);
    const channel = channelTo(upstream.url);
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
    await expect(echo(channel, 'x', 1_000)).rejects.toMatchObject({ code: 'timeout', outcomeUnknown: true });
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
