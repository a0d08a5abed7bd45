/**
 * Sessions, streams, waits and what listeners are told, from reports about MCP hubs. One app with two more processes, one of
 * which has little time; half of the inputs are generated, and their seed is in the title.
 */
import { beforeAll, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import type { TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { endAfterFile } from '../../support/jest/leftovers.mjs';
import { open, request, toolCall } from '../../support/mcp/calls.js';
import { messagesOf } from '../../support/mcp/mcp-calls.js';
import { openTunnel } from '../../support/mcp/uplink-client.js';
import { envelope, NEWEST, ran, serves, tool, wireOn, wireTests } from '../../support/mcp/wire-table.js';
import { testSeed } from '../../support/seed.mjs';
import {
  answer,
  event,
  legacy,
  legacyHello,
  modern,
  refuse,
  stream,
  type WireMessage,
  type WireScript,
} from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const { app, owner, connected, ask, rows, run, sessionAt } = wireTests();
let sibling: ReturnType<typeof wireOn>;
let hastyApp: TestApp;
let hasty: ReturnType<typeof wireOn>;
beforeAll(async () => {
  sibling = wireOn(await app.sibling(), owner);
  hastyApp = await app.sibling({ UPSTREAM_CONNECT_TIMEOUT_MS: '300' }, { upstreamCallTimeoutMs: 6_000 });
  hasty = wireOn(hastyApp, owner);
});

const CHANGED = 'notifications/tools/list_changed';
const accept = { accept: 'text/event-stream' };

/** The methods of the messages that come on a stream. */
async function heardOn(door: string, message: object | undefined, headers: Record<string, string>): Promise<string[]> {
  const ended = new AbortController();
  endAfterFile(async () => ended.abort());
  const method = message ? 'POST' : 'GET';
  const response = await open(app, owner, door, message, {
    method,
    headers: { ...accept, ...headers },
    signal: ended.signal,
  });
  const heard: string[] = [];
  void (async () => {
    for await (const { method: name } of messagesOf(response)) heard.push(name);
  })().catch(() => undefined);
  return heard;
}

/** Listens by the GET stream of a new session. */
const listener = async (door: string) => heardOn(door, undefined, await sessionAt(door));

/** Listens by a subscription of 2026-07-28. */
const subscriber = (door: string) => {
  const method = 'subscriptions/listen';
  const params = { notifications: { toolsListChanged: true }, _meta: envelope() };
  const own = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': NEWEST, 'mcp-method': method };
  return heardOn(door, request(1, method, params), own);
};

describe('a change of the tools', () => {
  verifies('wire:told-changes', 'reaches all listeners, if it comes with a call of one client', async () => {
    const { upstream, path, doors } = await connected(
      serves((message, res) => {
        stream(res);
        if (message.http === 'GET') return;
        event(res, { method: CHANGED });
        event(res, { id: message.id, result: { content: [] } });
        res.end();
      }),
    );
    const heard = await Promise.all(doors.map(([door]) => listener(door)));
    await upstream.came('GET');
    for (const call of [
      () => run(path),
      ...doors.map(
        ([door, name]) =>
          () =>
            ask(door, toolCall(1, name)),
      ),
    ]) {
      const before = heard.map(({ length }) => length);
      await call();
      await until(async () => heard.every(({ length }, at) => length > (before[at] ?? 0)), 'all listeners were told');
    }
    expect(new Set(heard.flat())).toEqual(new Set([CHANGED]));
  });

  verifies(
    'wire:told-owner-changes',
    'reaches the listeners if the owner makes it, also during calls that are never answered',
    async () => {
      const { upstream, path, doors } = await connected(
        // The call is held.
        serves((message, res) => message.http === 'GET' && stream(res), [tool('run'), tool('other')]),
      );
      const heard = await Promise.all(doors.flatMap(([door]) => [listener(door), subscriber(door)]));
      await upstream.came('GET');
      const held = new AbortController();
      endAfterFile(async () => held.abort());
      void open(app, owner, `${path}/.tools/run`, {}, { signal: held.signal }).catch(() => undefined);
      await upstream.came('tools/call');
      for (const change of [
        { tools: { allow: ['run'] } },
        { headers: { 'x-a': 'b' } },
        { tools: { deny: ['run'] }, headers: { 'x-a': 'c' } },
        { tools: {} },
        { headers: {} },
      ]) {
        const before = heard.map(({ length }) => length);
        expect((await app.as(owner).put(path, { mcpUrl: upstream.url, ...change })).status).toBe(200);
        await until(
          async () => heard.every((methods, at) => methods.slice(before[at]).includes(CHANGED)),
          `all listeners are told of ${JSON.stringify(change)}: ${heard.map(({ length }) => length).join()}`,
        );
        // The same again is no change.
        expect((await app.as(owner).put(path, { mcpUrl: upstream.url, ...change })).status).toBe(200);
      }
    },
  );
});

verifies('wire:refused-subscription', 'a subscription fails with the words of the server that refuses it', async () => {
  const codes = [-32002, -32602, -32603, -32601, -32000];
  const { doors } = await connected(
    legacy((message, res) => {
      if (message.http === 'GET') return stream(res);
      const code = codes.find((known) => String(message.params?.uri).endsWith(`/${-known}`));
      if (message.method === 'resources/subscribe' && code) return refuse(res, message.id, 200, code);
      answer(res, message, {});
    }),
  );
  for (const [[door], prefix] of [
    [doors[0], ''],
    [doors[1], 'connection://c0/'],
  ] as const) {
    const headers = await sessionAt(door);
    const subscribe = async (uri: string) =>
      (await ask(door, request(1, 'resources/subscribe', { uri: prefix + uri }), headers)).body;
    expect([door, (await subscribe('x://good')).result]).toEqual([door, {}]);
    for (const code of codes) {
      const { error } = await subscribe(`x://bad/${-code}`);
      expect([door, error]).toEqual([door, { code, message: `refused with ${code}` }]);
    }
  }
});

verifies('wire:refused-subscription', 'a server without updates refuses no subscription at a namespace', async () => {
  const plain = { ...legacyHello, capabilities: { tools: {}, resources: {} } };
  const { doors } = await connected((message, res, nth) => {
    if (message.method === 'initialize') return answer(res, message, plain, { 'mcp-session-id': `session-${nth}` });
    const script = legacy(() => (message.http === 'GET' ? stream(res) : refuse(res, message.id, 200, -32601)));
    return script(message, res, nth);
  });
  for (const [[door], uri, expected] of [
    [doors[0], 'x://a', { code: -32601, message: expect.anything() }],
    [doors[1], 'connection://c0/x://a', undefined],
  ] as const) {
    const { body } = await ask(door, request(1, 'resources/subscribe', { uri }), await sessionAt(door));
    expect([door, body.error]).toEqual([door, expected]);
  }
});

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
      let [opened, lost] = [0, 0];
      const { upstream, doors } = await connected(
        legacy((message, res) => {
          const session = Number(String(message.headers['mcp-session-id']).replace('session-', ''));
          opened = Math.max(opened, session);
          if (session <= lost) return refused(res, message, refusal);
          answer(res, message, { tools: [tool('run')], content: [] });
        }),
      );
      for (const [process, [door, name]] of [
        ...doors.map((door) => [{ ask }, door] as const),
        [sibling, doors[0]] as const,
      ]) {
        const call = async () => (await process.ask(door, toolCall(1, name))).body;
        const expectWell = async () =>
          expect([refusal, door, await call()]).toMatchObject([refusal, door, { result: { content: [] } }]);
        await expectWell();
        lost = opened;
        const calls = upstream.count('tools/call');
        const first = await call();
        // Refused before it ran.
        const isResent = refusal.status >= 400 && (refusal.status < 500 || refusal.status === 503);
        const isDone = 'result' in first && first.result.isError !== true;
        const shown = [refusal, door, upstream.count('tools/call') - calls, isDone];
        expect(shown).toEqual([refusal, door, isResent ? 2 : 1, isResent]);
        await expectWell();
      }
    }
  });

  verifies('wire:restarted-server', 'is not meant by a tool that answers so, while the server knows it', async () => {
    for (const refusal of [...refusals.slice(0, 9), ...worded, { status: 429, code: -32000, hasId: true }]) {
      const { upstream, doors } = await connected(
        serves((message, res) =>
          message.method === 'tools/call' ? refused(res, message, refusal) : answer(res, message, {}),
        ),
      );
      const [[door]] = doors;
      await ask(door, request(1, 'tools/list'));
      for (let call = 1; call <= 2; call += 1) {
        const { body } = await ask(door, toolCall(1, 'run'));
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
    const [[at]] = (await connected(door === doors[2] ? modern(streamed) : legacy(streamed))).doors;
    const capabilities = door === doors[1] ? { roots: {} } : {};
    const session = await sessionAt(at, capabilities);
    await ask(at, request(2, 'tools/list'), session);
    const aborter = new AbortController();
    // The session of a client that answers requests has a stream of its own.
    if (door !== doors[1]) {
      await open(app, owner, at, undefined, {
        method: 'GET',
        headers: { ...accept, ...session },
        signal: aborter.signal,
      });
    }
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
        const result = { resultType: 'complete', tools: [tool('run')], content: [] };
        const script = era((message, res) => answer(res, message, result));
        const { path, doors } = await connected((message, res, nth) => {
          if (!isBusy) return script(message, res, nth);
          res.writeHead(status, { 'retry-after': retryAfter, 'content-type': 'application/json' });
          res.end(isRpc ? JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Busy' } }) : '');
        });
        expect((await run(path)).status).toBe(200);
        isBusy = true;
        const rest = await run(path);
        const seconds = Number(rest.headers.get('retry-after'));
        const row = [status, retryAfter, rest.body];
        expect([...row, rest.status, seconds > 0 && seconds <= 600]).toEqual([...row, status, true]);
        for (const [door, name] of doors) {
          expect((await ask(door, toolCall(1, name))).text).toMatch(
            new RegExp(`answered ${status}: .* Try again in \\d+ s`),
          );
        }
        expect([status, (await app.as(owner).get(path)).body.status.state]).toEqual([status, 'connected']);
      }
    }
  });
});

verifies(
  'wire:furthest-reason',
  'an event stream of HTTP+SSE that is of no use is the reason, not the refusal of the POST before',
  () => {
    const elsewhere = /names an endpoint that is not on the same site/;
    const endpoints: [data: string, says: RegExp][] = [
      ['http://other.test/messages', elsewhere],
      ['https://127.0.0.1/messages', elsewhere],
      ['//other.test/messages', elsewhere],
      ['http://', elsewhere],
      ['', /closed the event stream/],
    ];
    return rows(
      endpoints.flatMap(([data, says]) =>
        [404, 405, 400].map((status) => ({
          given: [data, status],
          server: (message, res) => {
            if (message.http !== 'GET') return res.writeHead(status).end();
            stream(res);
            res.write(`event: endpoint\ndata: ${data}\n\n`);
            if (data === '') res.end();
          },
          seen: { record: { state: expect.objectContaining({ message: expect.stringMatching(says) }) } },
        })),
      ),
    );
  },
);

describe('a local server', () => {
  verifies(
    'wire:slow-start',
    'keeps its tunnel while it is slow to open its session, and its calls wait for it',
    async () => {
      const { path } = await createConnection(hastyApp, owner, { transport: 'uplink' });
      let start: () => void = () => undefined;
      const started = new Promise<void>((resolve) => (start = resolve));
      const client = await openTunnel(hastyApp, owner, path, {
        answers: {
          initialize: () => started.then(() => ({ ...legacyHello, serverInfo: { name: 'slow', version: '1' } })),
          'tools/call': () => ({ content: ran }),
        },
      });
      await until(async () => client.of('initialize').length > 0, 'the handshake has begun');
      const early = await hasty.run(path);
      expect([early.status, early.body, early.headers.get('retry-after')]).toEqual([
        503,
        { error: 'unavailable', message: 'The server is still starting: try again in a few seconds.' },
        '5',
      ]);
      const waiting = [
        hasty.run(path),
        hasty.ask(`${path}/mcp`, toolCall(1, 'run')),
        hasty.ask(`${path}/mcp`, request(1, 'tools/list')),
      ];
      start();
      expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(client.of('initialize')).toHaveLength(1);
      await client.close();
    },
  );
});

describe('a message of the service itself', () => {
  type Failure = [name: string, fail: (message: WireMessage, res: ServerResponse) => unknown];
  const status =
    (code: number, headers = {}): Failure[1] =>
    (_, res) =>
      res.writeHead(code, headers).end();
  const failures: Failure[] = [
    ['no answer', () => undefined],
    ['500', status(500)],
    ['404', status(404)],
    ['503 for a minute', status(503, { 'retry-after': '60' })],
    ['an error', ({ id }, res) => refuse(res, id, 200, -32601)],
    ['no JSON', (_, res) => res.writeHead(200, { 'content-type': 'text/plain' }).end('ok')],
    ['a closed socket', (_, res) => res.destroy()],
    ['a stream without an answer', (_, res) => stream(res)],
  ];

  verifies('wire:level-errand', 'such as the log level delays a call once, and never takes it along', async () => {
    for (const [name, fail] of failures) {
      const capabilities = { ...legacyHello.capabilities, logging: {} };
      const script = serves((message, res) => {
        if (message.method === 'logging/setLevel') return fail(message, res);
        if (message.http === 'GET') return res.writeHead(405).end();
        return answer(res, message, message.method === 'ping' ? {} : { content: ran });
      });
      const { upstream, doors } = await hasty.connected((message, res, nth) =>
        message.method === 'initialize'
          ? answer(res, message, { ...legacyHello, capabilities }, { 'mcp-session-id': `session-${nth}` })
          : script(message, res, nth),
      );
      for (const [door, tool] of doors) {
        const headers = await hasty.sessionAt(door);
        const set = await hasty.ask(door, request(1, 'logging/setLevel', { level: 'warning' }), headers);
        expect([name, set.body.result]).toEqual([name, {}]);
        for (const id of [2, 3]) {
          const { text } = await hasty.ask(door, toolCall(id, tool), headers);
          expect([name, door, text]).toEqual([name, door, expect.stringContaining('"text":"ran"')]);
        }
      }
      // A 404 means that the session is lost, at first.
      expect([name, upstream.count('logging/setLevel')]).toEqual([name, name === '404' ? 4 : 2]);
    }
  });

  verifies('wire:initialized-errand', 'fails at the end of the handshake without a failed call', () => {
    const script = serves((message, res) => answer(res, message, { content: ran }));
    return hasty.rows(
      [...failures, ['501', status(501)] satisfies Failure].map(([given, fail]) => ({
        given,
        server: (message, res, nth) =>
          message.method === 'notifications/initialized' ? fail(message, res) : script(message, res, nth),
        seen: { REST: { content: ran }, namespace: { content: ran } },
      })),
    );
  });
});

describe('the stream of a call', () => {
  type Reply = (res: ServerResponse) => unknown;
  const status =
    (code: number, headers = {}): Reply =>
    (res) =>
      res.writeHead(code, headers).end();
  const five = (reply: Reply) => Array.from({ length: 5 }, () => reply);
  const given: [name: string, id: string, replies: Reply[]][] = [
    ['503', 'e1', [status(503)]],
    ['many passing failures', 'e1', [502, 503, 504, 500, 408, 425].map((code) => status(code))],
    ['429 with a wait', 'e1', [status(429, { 'retry-after': '1' })]],
    ['a reset', 'e1', five((res) => res.destroy())],
    ['another status, twice', 'e1', [status(404), status(400)]],
    ['a web page', 'e1', [(res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>starting')]],
    ['streams that end at once', 'e1', five((res) => (stream(res), res.end()))],
    ['an id beyond ASCII', 'é→1', [status(503)]],
    ['a long id', 'x'.repeat(3_000), []],
  ];
  /** A server whose calls lose their stream after an event of this id, and which does this with the request for more. */
  const losing = (
    id: string,
    more: (message: WireMessage, res: ServerResponse, nth: number, call: unknown) => unknown,
  ) => {
    let call: unknown;
    return serves((message, res, nth) => {
      if (message.method !== 'tools/call') return more(message, res, nth, call);
      call = message.id;
      stream(res);
      res.end(`retry: 100\nid: ${id}\ndata:\n\n`);
    });
  };

  verifies('wire:resume-until', 'is resumed until the timeout of the call', () =>
    hasty.rows(
      given.map(([name, id, replies]) => ({
        given: name,
        server: losing(id, ({ headers }, res, nth, call) => {
          const sent = headers['last-event-id'];
          if (sent === undefined) return res.writeHead(405).end();
          const reply = replies[nth - 1];
          if (reply) return reply(res);
          expect(Buffer.from(String(sent), 'latin1').toString()).toBe(id);
          stream(res);
          event(res, { id: call, result: { content: ran } }, 'e2');
          res.end();
        }),
        seen: { REST: { content: ran } },
        requests: { 'tools/call': 1, GET: replies.length + 1 },
      })),
    ),
  );

  verifies('wire:resume-until', 'is given up where it is refused again and again', () =>
    hasty.rows(
      [400, 404, 405, 410, 501].map((code) => ({
        given: code,
        server: losing('e1', (_, res) => res.writeHead(code).end()),
        seen: { REST: { status: 502, message: expect.stringMatching(/without a reply/) } },
        requests: { GET: code === 405 ? 1 : 3 },
      })),
    ),
  );
});
