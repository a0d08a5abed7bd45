/**
 * Replies of published servers, from reports about MCP hubs: the official clients, connected directly, are the measure. One
 * app; half of the answers are generated, and their seed is in the title.
 */
import { createBrotliCompress, createDeflate, createDeflateRaw, createGzip } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { createOAuthFetch } from '../../../src/mcp/oauth/oauth-fetch.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { withTimeout } from '../../../src/platform/limits/with-timeout.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { toolCall } from '../../support/mcp/calls.js';
import { connectSse, officialClients } from '../../support/mcp/official-clients.js';
import { pair } from '../../support/mcp/uplink-client.js';
import { NEWEST, ran, rowOf, serves, tool, wireTests, type WireRow } from '../../support/mcp/wire-table.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { testSeed } from '../../support/seed.mjs';
import {
  answer,
  legacyHello,
  modern,
  modernHello,
  startWire,
  type WireMessage,
  type WireScript,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const { app, owner, ask, connected, rows, run } = wireTests();
const keyed = () => ({ authorization: `Bearer ${owner.key}` });
const done = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

/** How a server writes its answers. */
interface Dress {
  /** Revision 2025-11-25 or 2026-07-28 over streamable HTTP, or HTTP+SSE. */
  era: 'legacy' | 'modern' | 'sse';
  isStream: boolean;
  /** Content type in place of the plain one. */
  type?: string;
  /** Value of `Content-Encoding`, and the real codings in the order of their use. */
  coding?: string;
  codings: string[];
  newline: string;
  /** The last event has no blank line after it. */
  isOpenEnded?: boolean;
  hasBom?: boolean;
  isBatch?: boolean;
  /** Data of events before the answer. */
  before: string[];
  idOf: (id: unknown) => unknown;
  /** Bytes of each write. */
  chunk: number;
  /** Direct clients fail, and this service need not. */
  isAlone?: boolean;
}

const plain: Dress = {
  era: 'legacy',
  isStream: false,
  codings: [],
  newline: '\n',
  before: [],
  idOf: (id) => id,
  chunk: 1e6,
};

const encoders: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGzip,
  'x-gzip': createGzip,
  deflate: createDeflate,
  raw: createDeflateRaw,
  br: createBrotliCompress,
};

async function coded(text: string, codings: string[]): Promise<Buffer> {
  let bytes = Buffer.from(text);
  for (const name of codings) {
    const encoder = encoders[name.toLowerCase()]?.();
    if (!encoder) continue;
    encoder.end(bytes);
    bytes = await buffer(encoder);
  }
  return bytes;
}

const headersOf = ({ type, isStream, codings, coding = codings.join(', ') }: Dress) => ({
  'content-type': type ?? (isStream ? 'text/event-stream' : 'application/json'),
  ...(codings.length + coding.length > 0 ? { 'content-encoding': coding.replace('raw', 'deflate') } : {}),
});

function textOf(dress: Dress, message: object): string {
  const { isStream, newline, isOpenEnded, hasBom, isBatch, before } = dress;
  const json = JSON.stringify(isBatch ? [{ jsonrpc: '2.0', method: 'notifications/progress' }, message] : message);
  const events = [...before, json].map((data) => `data: ${data}${newline}${newline}`).join('');
  const stream = isOpenEnded ? events.slice(0, -2 * newline.length) : events;
  return `${hasBom ? '\uFEFF' : ''}${isStream ? stream : json}`;
}

async function write(res: ServerResponse, dress: Dress, message: object): Promise<void> {
  const bytes = await coded(textOf(dress, message), dress.codings);
  res.writeHead(200, headersOf(dress));
  for (let at = 0; at < bytes.length; at += dress.chunk) {
    res.write(bytes.subarray(at, at + dress.chunk));
    await setImmediate();
  }
  res.end();
}

/** The result or error of a sound server. */
function outcomeOf({ era }: Dress, { method }: WireMessage): object {
  const members = era === 'modern' ? done : {};
  if (method === (era === 'modern' ? 'server/discover' : 'initialize')) {
    return { result: era === 'modern' ? modernHello : { ...legacyHello, capabilities: { tools: {} } } };
  }
  if (method === 'tools/list') return { result: { ...members, tools: [tool('run')] } };
  if (method === 'tools/call') return { result: { ...members, content: ran } };
  if (method === 'ping') return { result: {} };
  return { error: { code: -32601, message: 'Method not found' } };
}

const dresses: Dress[] = [];
let upstream: WireUpstream;
/** Open streams of HTTP+SSE, by path. */
const streams = new Map<string, ServerResponse>();

beforeAll(async () => {
  upstream = await startWire(async (message, res) => {
    const { http, path, id } = message;
    const dress = dresses[Number(/\d+/.exec(path)?.[0])] ?? plain;
    const answer = { jsonrpc: '2.0', id: dress.idOf(id), ...outcomeOf(dress, message) };
    if (dress.era !== 'sse') {
      if (http !== 'POST') return void res.writeHead(405).end();
      return id === undefined ? void res.writeHead(202).end() : write(res, dress, answer);
    }
    if (http === 'GET') {
      streams.set(path, res);
      res.writeHead(200, headersOf({ ...dress, isStream: true }));
      return void res.write(`event: endpoint${dress.newline}data: ${path}/post${dress.newline}${dress.newline}`);
    }
    const stream = streams.get(path.replace('/post', ''));
    if (!path.endsWith('/post')) return void res.writeHead(405).end();
    res.writeHead(202).end();
    if (id !== undefined) stream?.write(textOf({ ...dress, isStream: true }, answer));
  });
});
afterAll(() => upstream.close());

const urlOf = (dress: Dress) => upstream.url.replace('/mcp', `/${dresses.push(dress) - 1}`);

/** The text with which the tool answers the official client of this era, or its failure, within 5 s. */
async function viaClient(era: Dress['era'], url: string, headers = {}): Promise<string> {
  const connect = { legacy: officialClients[0]?.[1], modern: officialClients[2]?.[1], sse: connectSse }[era];
  const call = async () => {
    const client = await connect(url, { headers });
    const { content } = await client.callTool({ name: 'run', arguments: {} });
    await client.close();
    return (content as { text: string }[])[0]?.text ?? '';
  };
  return withTimeout(5_000, call().catch(String), 'no answer in 5 s');
}

const cased = (names: string[]) => fc.constantFrom(...names).chain((name) => fc.mixedCase(fc.constant(name)));
const asText = (id: unknown) => (typeof id === 'number' ? String(id) : id);
const oddEvents = ['ping', '[DONE]', '1', 'null', '[]', ' ', '"text"', 'true', '{"jsonrpc":"2.0"}', '{'];
const codes = ['gzip', 'x-gzip', 'deflate', 'raw', 'br'];

/** Kinds of answers: fixed ones, and how more are generated. */
const kinds: Record<string, { fixed: Partial<Dress>[]; more: fc.Arbitrary<Partial<Dress>> }> = {
  'wire:coded': {
    fixed: [
      ...codes.map((name): Partial<Dress> => ({ codings: [name] })),
      ...codes.map((name): Partial<Dress> => ({ codings: [name], isStream: true, era: 'modern' })),
      { codings: ['gzip', 'br'] },
      { codings: ['raw', 'gzip'], isStream: true },
      { codings: ['gzip'], coding: ' GZIP ,identity', isAlone: true },
    ],
    more: fc.record({
      codings: fc.array(cased(['gzip', 'x-gzip', 'deflate', 'br']), { minLength: 1, maxLength: 2 }),
      isStream: fc.boolean(),
      chunk: fc.integer({ min: 1, max: 100 }),
    }),
  },
  'wire:answer-id': {
    fixed: [
      { idOf: asText },
      { idOf: asText, isStream: true },
      { idOf: asText, era: 'modern' },
      { idOf: (id) => (typeof id === 'number' ? ` ${id}\n` : id), isStream: true, era: 'modern' },
      { idOf: (id) => (typeof id === 'number' ? id.toFixed(1) : id) },
      { idOf: asText, era: 'sse' },
    ],
    more: fc.record({
      idOf: fc.tuple(fc.constantFrom('', ' ', '\t', '0'), fc.constantFrom('', ' ', '.0', '.')).map(
        ([before, after]) =>
          (id: unknown) =>
            typeof id === 'number' ? `${before}${id}${after}` : id,
      ),
      isStream: fc.boolean(),
      era: fc.constantFrom('legacy', 'modern'),
    }),
  },
  'wire:odd-events': {
    fixed: [
      ...oddEvents.slice(0, 6).map((text) => ({ before: [text], isStream: true })),
      { before: oddEvents, isStream: true, era: 'modern' },
      { isBatch: true },
      { isBatch: true, era: 'sse', isAlone: true },
      { isBatch: true, isStream: true, before: ['ping'], isAlone: true },
    ],
    more: fc.record({
      before: fc.array(fc.constantFrom(...oddEvents, '["ping"]', '[[]]'), { minLength: 1, maxLength: 5 }),
      isStream: fc.constant(true),
      era: fc.constantFrom('legacy', 'modern', 'sse'),
      chunk: fc.integer({ min: 1, max: 100 }),
    }),
  },
  'wire:stream-bytes': {
    fixed: [
      { hasBom: true },
      { hasBom: true, isStream: true, isAlone: true },
      { newline: '\r\n', isStream: true },
      { newline: '\r', isStream: true, isAlone: true },
      { isOpenEnded: true, isStream: true, isAlone: true },
      { isOpenEnded: true, isStream: true, newline: '\r\n', hasBom: true, codings: ['gzip'], isAlone: true },
    ],
    more: fc.record({
      hasBom: fc.boolean(),
      isStream: fc.constant(true),
      newline: fc.constantFrom('\n', '\r', '\r\n'),
      isOpenEnded: fc.boolean(),
      chunk: fc.integer({ min: 1, max: 50 }),
      era: fc.constantFrom('legacy', 'modern'),
      isAlone: fc.constant(true),
    }),
  },
  'wire:answer-type': {
    fixed: [
      { type: 'Text/Event-Stream;charset=UTF-8', isStream: true },
      { type: 'TEXT/EVENT-STREAM ; charset=utf-8', isStream: true },
      { type: 'Application/JSON' },
      { type: 'application/json;charset=utf8', era: 'modern' },
      { type: 'Text/Event-stream', era: 'sse', isAlone: true },
    ],
    more: fc.record({
      type: fc
        .tuple(fc.mixedCase(fc.constant('text/event-stream')), fc.constantFrom('', ';', ' ; charset=utf-8', ';a="b,c"'))
        .map((parts) => parts.join('')),
      isStream: fc.constant(true),
      era: fc.constantFrom('legacy', 'modern'),
    }),
  },
  'wire:false-type': {
    fixed: [
      { type: 'text/event-stream, text/event-stream', isStream: true, isAlone: true },
      { type: 'text/event-stream, text/event-stream', era: 'sse', isAlone: true },
      { type: 'application/json', isStream: true, isAlone: true },
      { type: 'application/json', isStream: true, chunk: 1, hasBom: true, isAlone: true },
      { type: 'application/json', isStream: true, isOpenEnded: true, era: 'modern', isAlone: true },
      { type: 'application/json', era: 'sse', isAlone: true },
      { type: 'text/event-stream', isAlone: true },
      { type: 'text/event-stream', hasBom: true, chunk: 1, era: 'modern', isAlone: true },
      { type: 'TEXT/EVENT-STREAM;charset=utf-8', isBatch: true, isAlone: true },
      { type: 'text/plain', isStream: true, codings: ['gzip'], isAlone: true },
    ],
    more: fc.record({
      type: cased(['text/event-stream', 'application/json', 'text/html', 'application/json, text/event-stream', '']),
      isStream: fc.boolean(),
      era: fc.constantFrom('legacy', 'modern'),
      chunk: fc.integer({ min: 1, max: 50 }),
      isAlone: fc.constant(true),
    }),
  },
};

describe.each(Object.entries(kinds))(`%s (seed ${testSeed})`, (_kind, { fixed, more }) => {
  verifies('wire:read-as-directly', 'is read wherever the official client reads it, over every interface', async () => {
    const made = fc.sample(more, { numRuns: fixed.length, seed: testSeed });
    const all = [...fixed, ...made].map((part): Dress => ({ ...plain, ...part }));
    const namespace = await createNamespace(app, owner);
    for (const [i, dress] of all.entries()) {
      const seen = async (door: string, outcome: unknown, right: unknown) =>
        expect([i, JSON.stringify(dress), door, await outcome]).toEqual([i, JSON.stringify(dress), door, right]);
      const mcpUrl = urlOf(dress);
      if (!dress.isAlone) await seen('direct', viaClient(dress.era, mcpUrl), 'ran');
      const { path, body } = await createConnection(app, owner, { mcpUrl }, { namespace, connectionId: `c${i}` });
      await seen('status', body.status, expect.objectContaining({ state: 'connected' }));
      await seen('client', viaClient('modern', `${app.url}${path}/mcp`, keyed()), 'ran');
      const rest = await run(path);
      await seen('REST', rest.body.content, ran);
      const { body: all } = await ask(`/connect/${namespace}/.mcp`, toolCall(1, `c${i}__run`));
      await seen('namespace', all.result?.content, ran);
      const { slug } = await externalServer(app, owner, mcpUrl);
      await seen('run', viaClient('modern', `${app.url}/run/${slug}`, keyed()), 'ran');
    }
  });
});

describe('an upstream', () => {
  const serve = serves((message, res) => answer(res, message, { content: ran }));
  const started = async (script: WireScript) => closing(await startWire(script));
  const callTool = async (path: string) => (await run(path)).body;
  /** Rows of servers that cannot be used, with the message of the connection. */
  const reported = (table: [given: unknown, server: WireScript, message: RegExp][]) =>
    rows(
      table.map(([given, server, message]) => ({
        given,
        server,
        seen: { record: { state: expect.objectContaining({ message: expect.stringMatching(message) }) } },
      })),
    );

  verifies('wire:redirect', 'is followed if it redirects within its origin, and called there for a while', async () => {
    const targets = [
      '/mcp/',
      '/moved?key=1',
      'mcp/v2#part',
      `/${fc.sample(fc.domain(), { numRuns: 1, seed: testSeed })[0]}`,
    ];
    for (const [target, status] of targets.flatMap((target) => [307, 308].map((status) => [target, status] as const))) {
      const { path, upstream } = await connected((message, res, nth) => {
        if (message.path !== '/mcp') return serve(message, res, nth);
        res.writeHead(status, { location: target }).end('moved');
      });
      const { url, seen } = upstream;
      expect([target, (await callTool(path)).content]).toEqual([target, ran]);
      const moved = seen.findLast(({ method }) => method === 'tools/call');
      expect(seen.filter((one) => one.path === '/mcp').map(({ method }) => method)).toEqual(['server/discover']);
      expect(moved?.path).toBe(new URL(target, url).pathname + new URL(target, url).search);
      expect(moved?.headers['mcp-session-id']).toBe('session-1');
      expect((await app.as(owner).get(path)).body.mcpUrl).toBe(url);
    }
  });

  verifies(
    'wire:redirect',
    'is rejected with the reason when it redirects elsewhere, with another status or in a circle',
    async () => {
      const other = await started(serve);
      const redirects: [status: number, location: (path: string) => string, message: RegExp][] = [
        [307, () => other.url, /redirects to http:.*connect to that address instead/],
        [308, () => 'https://127.0.0.1/mcp', /redirects to https:.*connect to that address instead/],
        [301, () => '/mcp/', /redirects to .*\/mcp\/: connect to that address instead/],
        [302, () => '/mcp/', /connect to that address instead/],
        [303, () => '/mcp/', /connect to that address instead/],
        [307, (path) => path, /redirects more than three times, at last to .*\/mcp:/],
        [308, (path) => `${path}a`, /redirects more than three times, at last to .*\/mcpaaaa:/],
      ];
      await reported(
        redirects.map(([status, location, message]) => [
          status,
          ({ path }, res) => res.writeHead(status, { location: location(path) }).end(),
          message,
        ]),
      );
      expect(other.seen).toEqual([]);
    },
  );

  verifies('wire:notification', 'may leave the body of its response to a notification open', () => {
    const given: [status: number, type: string][] = [
      [200, 'text/event-stream'],
      [202, 'application/json'],
      [200, 'text/plain'],
    ];
    return rows(
      given.map(([status, type]) => ({
        given: type,
        server: (message, res, nth) => {
          if (message.method !== 'notifications/initialized') return serve(message, res, nth);
          res.writeHead(status, { 'content-type': type }).flushHeaders();
        },
        seen: { record: { state: expect.objectContaining({ state: 'connected' }) }, REST: { content: ran } },
      })),
    );
  });

  verifies('wire:true-words', 'is reported with the reason when it cannot be read', async () => {
    const json =
      (text: string | Buffer, headers = {}): WireScript =>
      (_, res) =>
        void res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text);
    const stream = { 'content-type': 'text/event-stream' };
    const zipped = { 'content-encoding': 'gzip' };
    const bomb = await coded(' '.repeat(20e6), ['gzip']);
    const withId = (id?: unknown) => json(JSON.stringify({ jsonrpc: '2.0', id, result: legacyHello }));
    const unreadable: [WireScript, RegExp][] = [
      [json('{}', { 'content-encoding': 'zstd' }), /in the content coding "zstd".*Switch its compression off/],
      [json('{}', { 'content-encoding': 'gzip, gzip, br' }), /in the content coding "gzip, gzip, br".*at most two/],
      [json('{}', zipped), /cannot be decoded as gzip/],
      [json(bomb, zipped), /larger than 16 MB/],
      [json(bomb, { ...zipped, ...stream }), /larger than 16 MB/],
      [withId(0), /answered request \d+ with the id 0/],
      [withId(null), /answered request \d+ with the id null/],
      [withId(), /answered request \d+ without an id/],
      [withId('x'), /answered request \d+ with the id "x"/],
      [json('data: {"jsonrpc":"2.0","id":0,"result":{}}\n\n', stream), /answered request \d+ with the id 0/],
      [json('data: {"jsonrpc":"2.0","id":1,"res', stream), /closed its event stream within an event/],
      [json('data: [DONE]\n\n', stream), /closed its event stream without a reply.*It sent "\[DONE\]"/],
    ];
    await reported(unreadable.map(([server, message]) => [message, server, message]));
  });

  verifies('wire:coded', 'may code what it says about its authorization', async () => {
    const fetchDocument = createOAuthFetch(new Egress(new AddressPolicy(parseEgressAllow('127.0.0.1'))));
    let [text, codings]: [string, string[]] = ['', []];
    const { url, seen } = await started((_, res) => write(res, { ...plain, codings }, JSON.parse(text) as object));
    const read = async () => (await fetchDocument(url)).json();
    for (const code of codes) {
      [text, codings] = ['{"issuer":"x"}', [code]];
      expect([code, await read()]).toEqual([code, { issuer: 'x' }]);
    }
    text = JSON.stringify({ issuer: 'x'.repeat(2e6) });
    await expect(read()).rejects.toThrow(/more than 1 MB/);
    codings = ['zstd'];
    await expect(read()).rejects.toThrow(/in the content coding "zstd"/);
    expect(seen[0]?.headers['accept-encoding']).toBe('identity');
  });

  verifies('wire:link', 'causes a 409 over REST with the links when it asks its user to open pages', () => {
    const page = (to: unknown) => ({
      method: 'elicitation/create',
      params: { mode: 'url', url: to, message: 'Visit' },
    });
    const form = { method: 'elicitation/create', params: { mode: 'form', message: 'Name?', requestedSchema: {} } };
    const asked = 'The MCP server asks its user for input before it continues';
    const [one, two] = fc.sample(fc.webUrl({ withQueryParameters: true }), { numRuns: 2, seed: testSeed }) as [
      string,
      string,
    ];
    const elsewhere = expect.stringMatching(/this way of calling cannot pass the question on/);
    const given: [inputRequests: object, message: unknown][] = [
      [{ a: page(one) }, `${asked}. Open ${one} , then call again.`],
      [{ a: page(one), b: page(two) }, `${asked}. Open ${one} and ${two} , then call again.`],
      [{ a: form, b: page(two) }, `${asked}. Open ${two} , then call again.`],
      [{ a: form }, elsewhere],
      [{ a: page('javascript:alert(1)') }, elsewhere],
      [{ a: page(`https://a.example/${one} and`) }, elsewhere],
      [{ a: page(5) }, elsewhere],
    ];
    const server = modern((sent, res) => {
      if (sent.method !== 'tools/call') return answer(res, sent, { ...done, tools: [tool('run')] });
      answer(res, sent, { resultType: 'input_required', inputRequests: given[rowOf(sent)]?.[0], requestState: 's' });
    });
    return rows(
      given.map(([inputRequests, message]) => ({
        given: inputRequests,
        server,
        seen: { REST: { status: 409, body: { error: 'input_required', message } } },
      })),
    );
  });

  verifies(
    'wire:answer-id',
    'may write ids as strings at the end of a tunnel, and has an invalid id reported',
    async () => {
      const { path } = await createConnection(app, owner, { transport: 'uplink' });
      let idOf = (id: number): unknown => ` ${id}.0`;
      const client = await pair(app, owner, path);
      client.socket.removeAllListeners('message');
      client.socket.on('message', (data: Buffer) => {
        const { id, method } = JSON.parse(data.toString()) as { id: number; method: string };
        if (method === 'tools/call') client.send({ id: idOf(id), result: { content: ran } });
        else if (id !== undefined) client.send({ id: String(id), result: { tools: [tool('run')] } });
      });
      expect((await callTool(path)).content).toEqual(ran);
      for (const odd of [0, null, '']) {
        idOf = () => odd;
        expect(JSON.stringify(await callTool(path))).toMatch(/answered request \d+ with the id/);
      }
      await client.close();
    },
  );
});

verifies('wire:odd-error', 'an error in another form than that of JSON-RPC keeps its code and its words', () => {
  const quota = /quota/;
  const errors: [error: unknown, code: number, message: string | RegExp, more?: object][] = [
    [{ code: -32050, message: 'quota' }, -32050, 'quota'],
    [{ code: '-32050', message: 'quota' }, -32050, 'quota'],
    [{ code: 'E_QUOTA', message: 'quota' }, -32603, 'quota'],
    [{ code: 1.5, message: 'quota' }, -32603, 'quota'],
    [{ code: null, message: 'quota' }, -32603, 'quota'],
    [{ message: 'quota' }, -32603, 'quota'],
    [{ code: -32050 }, -32050, /without a message/],
    [{ code: -32050, message: { text: 'quota' } }, -32050, quota],
    [{ reason: 'quota' }, -32603, quota],
    ['quota', -32603, 'quota'],
    [['quota'], -32603, quota],
    [{ code: -32050, message: 'quota' }, -32050, 'quota', { result: null }],
  ];
  const given = [200, 400, 500].flatMap((status) => errors.map((row) => [status, ...row] as const));
  const server = serves((sent, res) => {
    if (sent.method === 'ping') return answer(res, sent, {});
    const [status, error, , , more] = given[rowOf(sent)] ?? [];
    res.writeHead(status ?? 0, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: sent.id, ...more, error }));
  });
  return rows(
    given.map(([status, error, code, message]) => {
      const isExact = typeof message === 'string';
      const seen = { error: { code, message: isExact ? message : expect.stringMatching(message) } };
      const rest = { message: expect.stringContaining(isExact ? message : '') };
      return { given: [status, error], server, seen: { connection: seen, namespace: seen, REST: rest } };
    }),
  );
});

describe('a result', () => {
  const results: [result: object, texts: string[]][] = [
    [{ structuredContent: { n: 1 } }, ['{"n":1}']],
    [{}, []],
    [{ content: null, structuredContent: { n: 1 } }, ['{"n":1}']],
    [{ resultType: 'own', ttlMs: 5, cacheScope: 'x', content: [{ type: 'text', text: 't' }] }, ['t']],
    [{ content: [{ type: 'text', text: 't' }], structuredContent: { n: 1 } }, ['t']],
  ];

  verifies('wire:result-members', 'has what each client requires, if it is of an older server', async () => {
    const script = serves((message, res) => answer(res, message, results[rowOf(message)]?.[0] ?? {}));
    const { doors } = await connected(script);
    for (const [row, [result, texts]] of results.entries()) {
      for (const [path, name] of doors) {
        // A client of the server's era refuses null, also when it is connected directly.
        for (const [client, connect] of officialClients.slice('content' in result && result.content === null ? 3 : 0)) {
          const connectedClient = await connect(`${app.url}${path}`, { headers: keyed() });
          const { content } = await connectedClient.callTool({ name, arguments: { row } });
          const shown = (content as { text: string }[]).map(({ text }) => text);
          // An answer of an older server reaches a client of its era as it came.
          const same = client === 'v1' || client === 'v2' ? [[], texts] : [texts];
          expect([client, result, same]).toEqual([client, result, expect.arrayContaining([shown])]);
        }
      }
    }
  });

  const revisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
  const hasStructure = (revision: string) => revision >= '2025-06-18';

  verifies('wire:structured-text', 'is read by clients of revisions without structured output', () => {
    const results: { structuredContent: object; content?: [] }[] = [
      { structuredContent: { n: 1 } },
      { structuredContent: [1] },
      { structuredContent: { n: 1 }, content: [] },
    ];
    const server = modern((message, res) =>
      answer(res, message, { resultType: 'complete', ...results[rowOf(message)] }),
    );
    return rows(
      results.map((result) => ({
        given: result,
        server,
        revisions,
        seen: (revision) => {
          const { structuredContent, content } = result;
          const list = Array.isArray(structuredContent) ? structuredContent : undefined;
          const isText = !hasStructure(revision) || list !== undefined || content === undefined;
          return {
            connection: {
              content: isText ? [{ type: 'text', text: JSON.stringify(structuredContent) }] : [],
              structuredContent: hasStructure(revision) ? (list ? { result: list } : structuredContent) : undefined,
            },
          };
        },
      })),
    );
  });

  verifies(
    'wire:older-client',
    'has only blocks that the revision of the client has, also from a server with sessions',
    () => {
      const uri = 'file:///a.txt';
      const blocks = [
        { type: 'text', text: 'plain' },
        { type: 'resource_link', uri, name: 'a', description: 'notes' },
        { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource', resource: { uri, text: 'x' } },
      ];
      const link = { type: 'text', text: `[a](${uri}): notes` };
      const older: Record<string, object[]> = {
        '2024-11-05': [blocks[0], link, { type: 'text', text: '[audio audio/wav]' }, ...blocks.slice(3)],
        '2025-03-26': [blocks[0], link, ...blocks.slice(2)],
      };
      const outputSchema = { type: 'object', properties: {} };
      const server = serves(
        (message, res) =>
          message.method === 'prompts/get'
            ? answer(res, message, { messages: blocks.map((content) => ({ role: 'user', content })) })
            : answer(res, message, { content: blocks, structuredContent: { n: 1 } }),
        [tool('run', { outputSchema })],
      );
      const shown = (revision: string) => older[revision] ?? blocks;
      const structured = (revision: string) => (hasStructure(revision) ? { n: 1 } : undefined);
      const messages = (revision: string) => shown(revision).map((content) => expect.objectContaining({ content }));
      const schema = (revision: string) => (hasStructure(revision) ? { outputSchema } : {});
      const seen: [given: string, call: WireRow['call'], seen: (revision: string) => object][] = [
        ['a result', undefined, (at) => ({ content: shown(at), structuredContent: structured(at) })],
        [
          'a prompt',
          ['prompts/get', { name: 'p' }],
          (at) => ({ result: expect.objectContaining({ messages: messages(at) }) }),
        ],
        ['a tool', ['tools/list'], (at) => ({ tools: [tool('run', schema(at))] })],
      ];
      return rows(
        seen.map(([given, call, seenAt]) => ({
          given,
          call,
          server,
          revisions,
          seen: (at) => ({ connection: seenAt(at) }),
        })),
      );
    },
  );

  verifies(
    'wire:cache-scope',
    'is private to its caller, and its lifetime a whole number, whatever the server says',
    () => {
      const given: [members: object, ttlMs: number][] = [
        [{ ttlMs: 60_000, cacheScope: 'public' }, 60_000],
        [{ ttlMs: -5, cacheScope: 'shared' }, 0],
        [{ ttlMs: '5', cacheScope: null }, 0],
        [{ ttlMs: 1.5, cacheScope: 5 }, 1],
        [{ ttlMs: null }, 0],
        [{}, 0],
      ];
      return rows(
        given.flatMap(([members, ttlMs]): WireRow[] => {
          const isPrivate = (ms: number) => ({ result: expect.objectContaining({ ttlMs: ms, cacheScope: 'private' }) });
          const result = { resultType: 'complete', tools: [tool('run')], contents: [], ...members };
          const server = modern((message, res) => answer(res, message, result));
          const row = { given: members, server, revisions: [NEWEST] };
          const connection = isPrivate(ttlMs);
          return [
            { ...row, call: ['tools/list'], seen: { connection, namespace: isPrivate(0) } },
            { ...row, call: ['resources/read', { uri: 'x:y' }], seen: { connection } },
          ];
        }),
      );
    },
  );
});
