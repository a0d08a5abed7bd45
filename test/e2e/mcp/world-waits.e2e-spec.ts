/**
 * Servers that start late, do not answer what the service sends for itself, or lose streams, from reports about MCP hubs.
 * One app, whose calls have little time.
 */
import { describe, expect } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { mcp, request, send, toolCall } from '../../support/mcp/calls.js';
import { openTunnel } from '../../support/mcp/uplink-client.js';
import {
  answer,
  event,
  legacy,
  legacyHello,
  refuse,
  startWire,
  stream,
  type WireMessage,
  type WireScript,
} from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const CALL_MS = 6_000;

const app = testApp({ UPSTREAM_CONNECT_TIMEOUT_MS: '300' }, { upstreamCallTimeoutMs: CALL_MS });
const owner = testAccount(app);

const tools = [{ name: 'run', inputSchema: { type: 'object' } }];
const ran = [{ type: 'text', text: 'ran' }];
type Response = Parameters<WireScript>[1];

async function connected(script: WireScript) {
  const namespace = await createNamespace(app, owner);
  const upstream = closing(await startWire(script));
  const made = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'c' });
  return { upstream, path: made.path, all: `/connect/${namespace}/.mcp` };
}

/** A server that lists one tool, and runs it unless the script does. */
const serves = (script: (message: WireMessage, res: Response, nth: number) => unknown): WireScript =>
  legacy((message, res, nth) => {
    if (message.method === 'tools/list') return answer(res, message, { tools });
    return script(message, res, nth);
  });

describe('a local server', () => {
  verifies(
    'wire:slow-start',
    'keeps its tunnel while it is slow to open its session, and its calls wait for it',
    async () => {
      const { path } = await createConnection(app, owner, { transport: 'uplink' });
      let start: () => void = () => undefined;
      const started = new Promise<void>((resolve) => (start = resolve));
      const client = await openTunnel(app, owner, path, {
        answers: {
          initialize: () => started.then(() => ({ ...legacyHello, serverInfo: { name: 'slow', version: '1' } })),
          'tools/call': () => ({ content: ran }),
        },
      });
      await until(async () => client.of('initialize').length > 0, 'the handshake has begun');
      const early = await send(app, owner, `${path}/.tools/run`, {});
      expect([early.status, early.body, early.headers.get('retry-after')]).toEqual([
        503,
        { error: 'unavailable', message: 'The server is still starting: try again in a few seconds.' },
        '5',
      ]);
      const waiting = [
        send(app, owner, `${path}/.tools/run`, {}),
        mcp(app, owner, path, toolCall(1, 'run')),
        mcp(app, owner, path, request(1, 'tools/list')),
      ];
      start();
      expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(client.of('initialize')).toHaveLength(1);
      await client.close();
    },
  );
});

describe('a message of the service itself', () => {
  const never = () => undefined;
  const failures: [name: string, fail: (message: WireMessage, res: Response) => unknown][] = [
    ['no answer', never],
    ['500', (_, res) => res.writeHead(500).end()],
    ['404', (_, res) => res.writeHead(404).end()],
    ['503 for a minute', (_, res) => res.writeHead(503, { 'retry-after': '60' }).end()],
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
        if (message.method === 'ping') return answer(res, message, {});
        if (message.method === 'tools/call') return answer(res, message, { content: ran });
        return res.writeHead(405).end();
      });
      const { upstream, path, all } = await connected((message, res, nth) =>
        message.method === 'initialize'
          ? answer(res, message, { ...legacyHello, capabilities }, { 'mcp-session-id': `session-${nth}` })
          : script(message, res, nth),
      );
      for (const [door, tool] of [
        [`${path}/mcp`, 'run'],
        [all, 'c__run'],
      ] as const) {
        const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
        const accept = 'application/json, text/event-stream';
        const opened = await send(app, owner, door, request(0, 'initialize', hello), { headers: { accept } });
        const headers = { accept, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
        const set = await send(app, owner, door, request(1, 'logging/setLevel', { level: 'warning' }), { headers });
        expect([name, set.body.result]).toEqual([name, {}]);
        for (const id of [2, 3]) {
          const { text } = await send(app, owner, door, toolCall(id, tool), { headers });
          expect([name, door, text]).toEqual([name, door, expect.stringContaining('"text":"ran"')]);
        }
      }
      // A 404 means that the session is lost, at first.
      expect([name, upstream.count('logging/setLevel')]).toEqual([name, name === '404' ? 4 : 2]);
    }
  });

  verifies('wire:initialized-errand', 'fails at the end of the handshake without a failed call', async () => {
    for (const [name, fail] of [
      ...failures,
      ['501', (_: WireMessage, res: Response) => res.writeHead(501).end()] as const,
    ]) {
      const script = serves((message, res) => answer(res, message, { content: ran }));
      const { path, all } = await connected((message, res, nth) =>
        message.method === 'notifications/initialized' ? fail(message, res) : script(message, res, nth),
      );
      const rest = await send(app, owner, `${path}/.tools/run`, {});
      expect([name, rest.body.content]).toEqual([name, ran]);
      const { body } = await send(app, owner, all, toolCall(1, 'c__run'));
      expect([name, body.result?.content]).toEqual([name, ran]);
    }
  });
});

describe('the stream of a call', () => {
  type Reply = (res: Response) => unknown;
  const status =
    (code: number, headers = {}): Reply =>
    (res) =>
      res.writeHead(code, headers).end();
  const rows: [name: string, id: string, replies: Reply[]][] = [
    ['503', 'e1', [status(503)]],
    ['many passing failures', 'e1', [502, 503, 504, 500, 408, 425].map((code) => status(code))],
    ['429 with a wait', 'e1', [status(429, { 'retry-after': '1' })]],
    ['a reset', 'e1', times(5).map(() => (res) => res.destroy())],
    ['another status, twice', 'e1', [status(404), status(400)]],
    ['a web page', 'e1', [(res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>starting')]],
    ['streams that end at once', 'e1', times(5).map(() => (res) => (stream(res), res.end()))],
    ['an id beyond ASCII', 'é→1', [status(503)]],
    ['a long id', 'x'.repeat(3_000), []],
  ];

  function times(count: number): Reply[] {
    return Array.from({ length: count }, () => () => undefined);
  }

  verifies('wire:resume-until', 'is resumed until the timeout of the call', async () => {
    for (const [name, id, replies] of rows) {
      const { upstream, path } = await connected(
        serves((message, res, nth) => {
          if (message.method === 'tools/call') {
            stream(res);
            return res.end(`retry: 100\nid: ${id}\ndata:\n\n`);
          }
          const sent = message.headers['last-event-id'];
          if (sent === undefined) return res.writeHead(405).end();
          const reply = replies[nth - 1];
          if (reply) return reply(res);
          expect(Buffer.from(String(sent), 'latin1').toString()).toBe(id);
          stream(res);
          event(
            res,
            { id: upstream.seen.find(({ method }) => method === 'tools/call')?.id, result: { content: ran } },
            'e2',
          );
          res.end();
        }),
      );
      const { body } = await send(app, owner, `${path}/.tools/run`, {});
      expect([name, body.content]).toEqual([name, ran]);
      expect([name, upstream.count('tools/call'), upstream.count('GET')]).toEqual([name, 1, replies.length + 1]);
    }
  });

  verifies('wire:resume-until', 'is given up where it is refused again and again', async () => {
    for (const code of [400, 404, 405, 410, 501]) {
      const { upstream, path } = await connected(
        serves((message, res) => {
          if (message.method !== 'tools/call') return res.writeHead(code).end();
          stream(res);
          res.end('retry: 100\nid: e1\ndata:\n\n');
        }),
      );
      const { status: got, body } = await send(app, owner, `${path}/.tools/run`, {});
      expect([code, got, body.message]).toEqual([code, 502, expect.stringMatching(/without a reply/)]);
      expect([code, upstream.count('GET')]).toEqual([code, code === 405 ? 1 : 3]);
    }
  });
});
