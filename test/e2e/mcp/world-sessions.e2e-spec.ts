/**
 * Sessions, streams and waits of published servers, from reports about MCP hubs. One app with a second process, one stub;
 * half of the inputs are generated, and their seed is in the title.
 */
import { beforeAll, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { mcp, open, request, send, toolCall } from '../../support/mcp/calls.js';
import {
  answer,
  event,
  legacy,
  modern,
  refuse,
  startWire,
  stream,
  type WireMessage,
  type WireScript,
} from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';
import { testSeed } from '../../support/seed.mjs';

const app = testApp();
const owner = testAccount(app);
let sibling: TestApp;
beforeAll(async () => {
  sibling = await app.sibling();
});

const tools = [{ name: 'run', inputSchema: { type: 'object' } }];

async function connected(script: WireScript) {
  const namespace = await createNamespace(app, owner);
  const upstream = closing(await startWire(script));
  const made = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'c' });
  return { upstream, path: made.path, all: `/connect/${namespace}/.mcp` };
}

describe(`a session that the server has lost (seed ${testSeed})`, () => {
  interface Refusal {
    status: number;
    /** Null: an answer without JSON-RPC. */
    code: number | null;
    hasId: boolean;
    isStream?: boolean;
    /** Words in place of a code: as text, or in a tool's result with the status 200. */
    words?: string;
    retryAfter?: string;
  }
  const worded: Refusal[] = [
    { status: 403, words: 'Session not found' },
    { status: 403, words: 'Invalid session ID' },
    { status: 503, words: 'The session has expired, please reconnect' },
    { status: 503, words: 'Unknown session', retryAfter: '1' },
    { status: 500, words: 'No valid session ID provided' },
    { status: 200, words: 'Error: session abc does not exist' },
    { status: 200, words: 'Session terminated', isStream: true },
  ].map((refusal) => ({ code: null, hasId: true, ...refusal }));
  const codes = [-32600, -32000, -32001, -32002];
  const refusals: Refusal[] = [
    ...codes.map((code) => ({ status: 400, code, hasId: true })),
    ...codes.map((code) => ({ status: 200, code, hasId: true })),
    { status: 401, code: null, hasId: false },
    { status: 401, code: -32001, hasId: true },
    { status: 200, code: -32600, hasId: true, isStream: true },
    ...worded,
    ...fc.sample(
      fc.record({
        status: fc.constantFrom(200, 400, 403, 404, 409, 410, 422, 500),
        code: fc.constantFrom(...codes),
        hasId: fc.boolean(),
        isStream: fc.boolean(),
      }),
      { numRuns: 10, seed: testSeed },
    ),
  ];

  const refused = (res: Parameters<WireScript>[1], message: WireMessage, refusal: Refusal) => {
    const { id } = message;
    const { status, code, hasId, isStream, words, retryAfter } = refusal;
    if (words !== undefined) {
      const result = { content: [{ type: 'text', text: words }], isError: true };
      if (status !== 200) return res.writeHead(status, retryAfter ? { 'retry-after': retryAfter } : {}).end(words);
      if (!isStream) return answer(res, message, result);
      stream(res);
      event(res, { id, result });
      return res.end();
    }
    if (code === null) return res.writeHead(status).end();
    if (!isStream || status !== 200) return refuse(res, hasId ? id : null, status, code);
    stream(res);
    event(res, { id: hasId ? id : null, error: { code, message: 'Session not found' } });
    res.end();
  };

  verifies('wire:restarted-server', 'is opened again by the second call at the latest, everywhere', async () => {
    for (const refusal of refusals) {
      let opened = 0;
      let lost = 0;
      const { upstream, path, all } = await connected(
        legacy((message, res) => {
          const session = Number(String(message.headers['mcp-session-id']).replace('session-', ''));
          opened = Math.max(opened, session);
          if (session <= lost) return refused(res, message, refusal);
          answer(res, message, message.method === 'tools/list' ? { tools } : { content: [] });
        }),
      );
      const doors: [string, () => Promise<{ body: { result?: unknown } }>][] = [
        ['connection', () => mcp(app, owner, path, toolCall(1, 'run'))],
        ['namespace', () => send(app, owner, all, toolCall(1, 'c__run'))],
        ['other process', () => mcp(sibling, owner, path, toolCall(1, 'run'))],
      ];
      for (const [door, call] of doors) {
        expect([refusal, door, (await call()).body]).toMatchObject([refusal, door, { result: { content: [] } }]);
        lost = opened;
        const calls = upstream.count('tools/call');
        const first = (await call()).body;
        // Refused before it ran.
        const isResent = refusal.status >= 400 && (refusal.status < 500 || refusal.status === 503);
        const isDone = 'result' in first && (first.result as { isError?: boolean }).isError !== true;
        expect([refusal, door, upstream.count('tools/call') - calls, isDone]).toEqual([
          refusal,
          door,
          isResent ? 2 : 1,
          isResent,
        ]);
        expect([refusal, door, (await call()).body]).toMatchObject([refusal, door, { result: { content: [] } }]);
      }
    }
  });

  verifies('wire:restarted-server', 'is not meant by a tool that answers so, while the server knows it', async () => {
    for (const refusal of [...refusals.slice(0, 9), ...worded, { status: 429, code: -32000, hasId: true }]) {
      const { upstream, path } = await connected(
        legacy((message, res) => {
          if (message.method === 'tools/call') return refused(res, message, refusal);
          answer(res, message, message.method === 'tools/list' ? { tools } : {});
        }),
      );
      await mcp(app, owner, path, request(1, 'tools/list'));
      for (let call = 1; call <= 2; call += 1) {
        const { body } = await mcp(app, owner, path, toolCall(1, 'run'));
        const isRefused = body.error !== undefined || body.result.isError === true;
        const counts = [upstream.count('tools/call'), upstream.count('initialize')];
        expect([refusal, isRefused, ...counts]).toEqual([refusal, true, call, 1]);
      }
      expect([refusal, upstream.count('ping') > 0]).toEqual([refusal, refusal.status !== 429]);
    }
  });
});

describe(`a stream of notifications that ends soon (seed ${testSeed})`, () => {
  interface Ending {
    retryMs?: number;
    afterMs?: number;
    /** Sends a notification before. */
    isTelling?: boolean;
    /** The next ones are refused with 503 and this `Retry-After`. */
    retryAfter?: number;
  }
  const endings: Ending[] = [
    {},
    { retryMs: 2_500 },
    { afterMs: 300, retryMs: 0 },
    { isTelling: true },
    { retryAfter: 3 },
    ...fc.sample(
      fc.record({
        retryMs: fc.option(fc.integer({ min: 0, max: 3_000 }), { nil: undefined }),
        afterMs: fc.integer({ min: 0, max: 400 }),
        isTelling: fc.boolean(),
      }),
      { numRuns: 5, seed: testSeed },
    ),
  ];
  const doors = ['a client that listens', 'a client that answers requests', 'a server of 2026-07-28'] as const;

  const gapsOf = async (door: (typeof doors)[number], ending: Ending) => {
    const { retryMs, afterMs, isTelling, retryAfter } = ending;
    const opened: number[] = [];
    const streamed: WireScript = (message, res) => {
      const isStream = message.http === 'GET' || message.method === 'subscriptions/listen';
      if (!isStream) return answer(res, message, { resultType: 'complete', tools: [] });
      opened.push(performance.now());
      if (opened.length > 1 && retryAfter) return res.writeHead(503, { 'retry-after': String(retryAfter) }).end();
      stream(res);
      if (retryMs !== undefined) res.write(`retry: ${retryMs}\n\n`);
      if (message.http === 'POST') {
        const params = { notifications: { toolsListChanged: true } };
        event(res, { method: 'notifications/subscriptions/acknowledged', params });
      }
      if (isTelling) event(res, { method: 'notifications/tools/list_changed' });
      setTimeout(() => res.end(), afterMs ?? 0);
    };
    const { path } = await connected(door === doors[2] ? modern(streamed) : legacy(streamed));
    const capabilities = door === doors[1] ? { roots: {} } : {};
    const hello = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'spec', version: '1' } };
    const { headers } = await mcp(app, owner, path, request(1, 'initialize', hello));
    const session = { 'mcp-session-id': String(headers.get('mcp-session-id')) };
    await mcp(app, owner, path, request(2, 'tools/list'), { headers: session });
    const aborter = new AbortController();
    // The session of a client that answers requests has a stream of its own.
    if (door !== doors[1])
      await open(app, owner, `${path}/mcp`, undefined, {
        method: 'GET',
        headers: { accept: 'text/event-stream', ...session },
        signal: aborter.signal,
      });
    await until(async () => opened.length >= 3, `three streams of ${door} for ${JSON.stringify(ending)}`);
    aborter.abort();
    return opened.slice(1).map((at, i) => at - opened[i]);
  };

  verifies('wire:stream-ends', 'is opened again ever later, and not before the server wants it', async () => {
    const rows = endings.flatMap((ending) => doors.map((door) => ({ door, ending })));
    await Promise.all(
      rows.map(async ({ door, ending }) => {
        const [first = 0, second = 0] = await gapsOf(door, ending);
        const leastMs = ending.retryMs ?? 0;
        const isInTime =
          first >= Math.max(leastMs, 950) && second >= Math.max(leastMs, (ending.retryAfter ?? 1.9) * 1_000 - 50);
        expect([door, ending, first, second, isInTime]).toEqual([door, ending, first, second, true]);
      }),
    );
  });
});

describe('a server that says when to come again', () => {
  const waits: [status: number, retryAfter: string, isRpc: boolean][] = [
    [429, '30', false],
    [429, ' 7 ', true],
    [503, '30', false],
    [503, '120', true],
    [429, new Date(Date.now() + 600_000).toUTCString(), false],
  ];

  verifies('wire:retry-after', 'is passed on as that, and counts as working', async () => {
    for (const [status, retryAfter, isRpc] of waits) {
      for (const era of [legacy, modern]) {
        let isBusy = false;
        const script = era((message, res) => answer(res, message, { resultType: 'complete', tools, content: [] }));
        const { path, all } = await connected((message, res, nth) => {
          if (!isBusy) return script(message, res, nth);
          res.writeHead(status, { 'retry-after': retryAfter, 'content-type': 'application/json' });
          res.end(isRpc ? JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Busy' } }) : '');
        });
        expect((await send(app, owner, `${path}/.tools/run`, {})).status).toBe(200);
        isBusy = true;
        const rest = await send(app, owner, `${path}/.tools/run`, {});
        const seconds = Number(rest.headers.get('retry-after'));
        const row = [status, retryAfter, rest.body];
        expect([...row, rest.status, seconds > 0 && seconds <= 600]).toEqual([...row, status, true]);
        const word = new RegExp(`answered ${status}: .* Try again in \\d+ s`);
        expect((await mcp(app, owner, path, toolCall(1, 'run'))).text).toMatch(word);
        expect((await send(app, owner, all, toolCall(1, 'c__run'))).text).toMatch(word);
        const { body } = await send(app, owner, path, undefined, { method: 'GET' });
        expect([status, body.status.state]).toEqual([status, 'connected']);
      }
    }
  });
});

describe('an event stream of HTTP+SSE that is of no use', () => {
  const endpoints: [data: string, says: RegExp][] = [
    ['http://other.test/messages', /names an endpoint that is not on the same site/],
    ['https://127.0.0.1/messages', /names an endpoint that is not on the same site/],
    ['//other.test/messages', /names an endpoint that is not on the same site/],
    ['http://', /names an endpoint that is not on the same site/],
    ['', /closed the event stream/],
  ];

  verifies('wire:furthest-reason', 'is the reason, not the refusal of the POST before', async () => {
    for (const [data, says] of endpoints) {
      for (const status of [404, 405, 400]) {
        const { path } = await connected((message, res) => {
          if (message.http !== 'GET') return res.writeHead(status).end();
          stream(res);
          res.write(`event: endpoint\ndata: ${data}\n\n`);
          if (data === '') res.end();
        });
        const { body } = await send(app, owner, path, undefined, { method: 'GET' });
        expect([data, status, body.status.message]).toEqual([data, status, expect.stringMatching(says)]);
      }
    }
  });
});
