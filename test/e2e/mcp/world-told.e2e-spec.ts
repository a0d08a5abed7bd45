/**
 * What listeners and callers are told of changes, subscriptions and errors, from reports about MCP hubs. One app, whose
 * stubs are written by hand.
 */
import { describe, expect } from '@jest/globals';
import { endAfterFile } from '../../support/jest/leftovers.mjs';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { eventsOf, mcp, open, request, send, toolCall } from '../../support/mcp/calls.js';
import {
  answer,
  event,
  legacy,
  refuse,
  startWire,
  stream,
  type WireScript,
} from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);

const tools = ['run', 'other'].map((name) => ({ name, inputSchema: { type: 'object' } }));

async function connected(script: WireScript) {
  const namespace = await createNamespace(app, owner);
  const upstream = closing(await startWire(script));
  const made = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'c' });
  return { upstream, path: made.path, doors: [`${made.path}/mcp`, `/connect/${namespace}/.mcp`] };
}

const accept = 'application/json, text/event-stream';

/** The headers of a new session at an endpoint. */
async function sessionAt(door: string) {
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
  const opened = await send(app, owner, door, request(0, 'initialize', hello), { headers: { accept } });
  return { accept, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
}

/** The methods of the notifications that come on the GET stream of a new session. */
async function listener(door: string): Promise<string[]> {
  const ended = new AbortController();
  endAfterFile(async () => ended.abort());
  const headers = await sessionAt(door);
  const response = await open(app, owner, door, undefined, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream' },
    signal: ended.signal,
  });
  return methodsOf(response);
}

/** The methods of the messages of a stream, as they come. */
function methodsOf(response: Response): string[] {
  const heard: string[] = [];
  void (async () => {
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      const whole = text.lastIndexOf('\n\n') + 2;
      heard.push(...eventsOf(text.slice(0, whole)).map((data) => (JSON.parse(data) as { method: string }).method));
      text = text.slice(whole);
    }
  })().catch(() => undefined);
  return heard;
}

describe('a change of the tools', () => {
  const CHANGED = 'notifications/tools/list_changed';

  verifies('wire:told-changes', 'reaches all listeners, if it comes with a call of one client', async () => {
    const { upstream, path, doors } = await connected(
      legacy((message, res) => {
        if (message.method === 'tools/list') return answer(res, message, { tools });
        if (message.http === 'GET') return stream(res);
        stream(res);
        event(res, { method: CHANGED });
        event(res, { id: message.id, result: { content: [] } });
        res.end();
      }),
    );
    const heard = await Promise.all(doors.map(listener));
    await upstream.came('GET');
    const callers: (() => Promise<unknown>)[] = [
      () => send(app, owner, `${path}/.tools/run`, {}),
      () => mcp(app, owner, path, toolCall(1, 'run')),
      () => send(app, owner, doors[1] ?? '', toolCall(1, 'c__run'), { headers: { accept } }),
    ];
    for (const call of callers) {
      const before = heard.map(({ length }) => length);
      await call();
      await until(async () => heard.every(({ length }, at) => length > (before[at] ?? 0)), 'all listeners were told');
    }
    expect(new Set(heard.flat())).toEqual(new Set([CHANGED]));
  });
});

/** Opens a subscription of 2026-07-28; the methods of its notifications. */
async function subscriber(door: string): Promise<string[]> {
  const ended = new AbortController();
  endAfterFile(async () => ended.abort());
  const params = {
    notifications: { toolsListChanged: true },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  };
  const method = 'subscriptions/listen';
  const response = await open(app, owner, door, request(1, method, params), {
    headers: { accept, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
    signal: ended.signal,
  });
  return methodsOf(response);
}

describe('a change that the owner makes', () => {
  const CHANGED = 'notifications/tools/list_changed';

  verifies('wire:told-owner-changes', 'reaches the listeners, also during calls that are never answered', async () => {
    const { upstream, path, doors } = await connected(
      legacy((message, res) => {
        if (message.method === 'tools/list') return answer(res, message, { tools });
        if (message.http === 'GET') return stream(res);
        // The call is held.
      }),
    );
    const heard = await Promise.all([...doors.map(listener), ...doors.map(subscriber)]);
    await upstream.came('GET');
    const held = new AbortController();
    endAfterFile(async () => held.abort());
    void open(app, owner, `${path}/.tools/run`, {}, { signal: held.signal }).catch(() => undefined);
    await upstream.came('tools/call');
    const changes = [
      { tools: { allow: ['run'] } },
      { headers: { 'x-a': 'b' } },
      { tools: { deny: ['run'] }, headers: { 'x-a': 'c' } },
      { tools: {} },
      { headers: {} },
    ];
    for (const change of changes) {
      const before = heard.map(({ length }) => length);
      expect((await app.as(owner).put(path, { mcpUrl: upstream.url, ...change })).status).toBe(200);
      const isTold = async () => heard.every((methods, at) => methods.slice(before[at]).includes(CHANGED));
      await until(
        isTold,
        `all listeners are told of ${JSON.stringify(change)}: ${heard.map(({ length }) => length).join()}`,
      );
      // The same again is no change.
      expect((await app.as(owner).put(path, { mcpUrl: upstream.url, ...change })).status).toBe(200);
    }
  });
});

describe('a subscription', () => {
  verifies('wire:refused-subscription', 'fails with the words of the server that refuses it', async () => {
    const codes = [-32002, -32602, -32603, -32601, -32000];
    const { doors } = await connected(
      legacy((message, res) => {
        if (message.http === 'GET') return stream(res);
        const code = codes.find((known) => String(message.params?.uri).endsWith(`/${-known}`));
        if (message.method === 'resources/subscribe' && code) return refuse(res, message.id, 200, code);
        answer(res, message, {});
      }),
    );
    for (const [door, prefix] of [
      [doors[0] ?? '', ''],
      [doors[1] ?? '', 'connection://c/'],
    ] as const) {
      const headers = await sessionAt(door);
      const subscribe = async (uri: string) =>
        (await send(app, owner, door, request(1, 'resources/subscribe', { uri: prefix + uri }), { headers })).body;
      expect([door, (await subscribe('x://good')).result]).toEqual([door, {}]);
      for (const code of codes) {
        const { error } = await subscribe(`x://bad/${-code}`);
        expect([door, error]).toEqual([door, { code, message: `refused with ${code}` }]);
      }
    }
  });
});

describe('an error of a server', () => {
  verifies('wire:odd-error', 'in another form than that of JSON-RPC keeps its code and its words', async () => {
    const rows: [error: unknown, code: number, message: string | RegExp, more?: object][] = [
      [{ code: -32050, message: 'quota' }, -32050, 'quota'],
      [{ code: '-32050', message: 'quota' }, -32050, 'quota'],
      [{ code: 'E_QUOTA', message: 'quota' }, -32603, 'quota'],
      [{ code: 1.5, message: 'quota' }, -32603, 'quota'],
      [{ code: null, message: 'quota' }, -32603, 'quota'],
      [{ message: 'quota' }, -32603, 'quota'],
      [{ code: -32050 }, -32050, /without a message/],
      [{ code: -32050, message: { text: 'quota' } }, -32050, /quota/],
      [{ reason: 'quota' }, -32603, /quota/],
      ['quota', -32603, 'quota'],
      [['quota'], -32603, /quota/],
      [{ code: -32050, message: 'quota' }, -32050, 'quota', { result: null }],
    ];
    for (const status of [200, 400, 500]) {
      for (const [error, code, message, more] of rows) {
        const { path, doors } = await connected(
          legacy((sent, res) => {
            if (sent.method === 'ping') return answer(res, sent, {});
            if (sent.method === 'tools/list') return answer(res, sent, { tools });
            res.writeHead(status, { 'content-type': 'application/json' });
            res.end(JSON.stringify({ jsonrpc: '2.0', id: sent.id, ...more, error }));
          }),
        );
        const shown = { code, message: typeof message === 'string' ? message : expect.stringMatching(message) };
        for (const [door, tool] of [
          [doors[0] ?? '', 'run'],
          [doors[1] ?? '', 'c__run'],
        ] as const) {
          const { body } = await send(app, owner, door, toolCall(1, tool), { headers: { accept } });
          expect([status, error, body.error]).toEqual([status, error, shown]);
        }
        const rest = await send(app, owner, `${path}/.tools/run`, {});
        expect([status, error, rest.body.message]).toEqual([
          status,
          error,
          expect.stringContaining(typeof message === 'string' ? message : ''),
        ]);
      }
    }
  });
});
