import { beforeAll, describe, expect } from '@jest/globals';
import { RevocationRegistry } from '../../../src/platform/http/revocation-registry.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { initialize, messagesOf, modern, post, read } from '../../support/mcp/mcp-calls.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import {
  answer,
  event,
  legacyHello,
  refuse,
  startWire,
  stream,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time in which a stream may go on after the end of its key. */
const END_MS_MAX = 5_000;

const app = testApp();
/** A process that receives no message about revoked keys: it listens on another channel. */
let deaf: TestApp;
const owner = testAccount(app);
let upstream: ScriptedUpstream;
/** Asks its client something in each call, and never answers it. */
let asking: WireUpstream;
let askingMcp: string;
let mcp: string;
let logs: string;

beforeAll(async () => {
  upstream = await startScripted(() => '{"tools":[]}');
  asking = await startAsking();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  const namespace = await createNamespace(app, owner);
  mcp = `${(await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path}/mcp`;
  askingMcp = `${(await createConnection(app, owner, { mcpUrl: asking.url }, { namespace })).path}/mcp`;
  logs = `/servers/${encodeURIComponent(await createServer(app, owner, { namespace }))}/logs/stream`;
});

function startAsking(): Promise<WireUpstream> {
  return startWire((message, res, nth) => {
    const { http, id, method } = message;
    if (method === 'server/discover') return refuse(res, id, 200, -32601);
    if (method === 'initialize') return answer(res, message, legacyHello, { 'mcp-session-id': `session-${nth}` });
    if (method === 'tools/list') return answer(res, message, { tools: [] });
    if (method === 'tools/call') {
      stream(res);
      const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
      return event(res, { id: 'a', method: 'elicitation/create', params: { message: 'Who?', requestedSchema } });
    }
    return res.writeHead(http === 'GET' ? 405 : 202).end();
  });
}

/** The sessions in which the asking server received a message, or a request without one, of this method. */
function sessionsWith(wanted: string): unknown[] {
  return asking.seen
    .filter(({ method, http }) => (method ?? http) === wanted)
    .map(({ headers }) => headers['mcp-session-id']);
}

interface Key {
  id: string;
  key: string;
}

async function createKey(more: object = {}): Promise<Key> {
  const { body, status } = await app.as(owner).post('/accounts/me/api-keys', { name: 'for streams', ...more });
  expect(status).toBe(201);
  return body as Key;
}

interface Opened {
  isOpen: boolean;
  /** Milliseconds since the epoch. */
  endedAt: number;
  leave(): void;
}

async function open(of: TestApp, path: string, { key }: Key, headers: Record<string, string> = {}): Promise<Opened> {
  const leaving = new AbortController();
  const response = await fetch(`${of.url}${path}`, {
    headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  const opened = { isOpen: true, endedAt: NaN, leave: () => leaving.abort() };
  const read = async () => {
    for await (const chunk of response.body as ReadableStream<Uint8Array>) void chunk;
  };
  const ended = () => Object.assign(opened, { isOpen: false, endedAt: Date.now() });
  void read().then(ended, ended);
  return opened;
}

/** Opens the GET stream of a session, the stream of HTTP+SSE, and a stream of runtime logs. */
async function openAll(of: TestApp, key: Key): Promise<Opened[]> {
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } },
  };
  const initialized = await fetch(`${of.url}${mcp}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(message),
  });
  await initialized.text();
  const session = initialized.headers.get('mcp-session-id') ?? '';
  expect(session).not.toBe('');
  return [
    await open(of, mcp, key, { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' }),
    await open(of, mcp, key),
    await open(of, logs, key),
  ];
}

const allEnded = (streams: Opened[]) => until(() => streams.every(({ isOpen }) => !isOpen), 'the streams end');

describe('the streams of a key', () => {
  aloneVerifies(
    'streams:key-ended',
    'end with its revocation, in a process too that the message does not reach',
    async () => {
      const [revoked, other] = [await createKey(), await createKey()];
      const others = [...(await openAll(app, other)), ...(await openAll(deaf, other))];
      const streams = [...(await openAll(app, revoked)), ...(await openAll(deaf, revoked))];
      expect(streams.map(({ isOpen }) => isOpen)).toEqual(streams.map(() => true));
      const revokedAt = Date.now();
      expect((await app.as(owner).delete(`/accounts/me/api-keys/${revoked.id}`)).status).toBe(200);
      await allEnded(streams);
      for (const { endedAt } of streams) expect(endedAt - revokedAt).toBeLessThan(END_MS_MAX);
      expect(others.map(({ isOpen }) => isOpen)).toEqual(others.map(() => true));
      others.forEach(({ leave }) => leave());
    },
  );

  aloneVerifies('streams:key-ended', 'end when it expires', async () => {
    const expiresAt = Date.now() + 4_000;
    const streams = await openAll(app, await createKey({ expiresAt: new Date(expiresAt).toISOString() }));
    await allEnded(streams);
    for (const { endedAt } of streams) {
      expect(endedAt).toBeGreaterThan(expiresAt - 100);
      expect(endedAt - expiresAt).toBeLessThan(END_MS_MAX);
    }
  });

  aloneVerifies(
    'streams:key-ended',
    'end with it: those of calls too, whose calls are cancelled and whose sessions at the server end',
    async () => {
      for (const each of [app, deaf]) {
        const key = await createKey();
        const before = sessionsWith('tools/call').length;
        const session = await initialize(
          `${each.url}${askingMcp}`,
          { elicitation: {} },
          '2025-06-18',
          `Bearer ${key.key}`,
        );
        const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } };
        const response = await post(`${each.url}${askingMcp}`, call, session);
        const messages = messagesOf(response);
        const first = await messages.next();
        expect(first.value).toMatchObject({ method: 'elicitation/create' });
        const revokedAt = Date.now();
        expect((await app.as(owner).delete(`/accounts/me/api-keys/${key.id}`)).status).toBe(200);
        let isEnded = false;
        const readOn = async () => {
          for await (const message of messages) void message;
          isEnded = true;
        };
        void readOn();
        await until(() => isEnded, 'the stream of the call ends');
        expect(Date.now() - revokedAt).toBeLessThan(END_MS_MAX);
        const [own] = sessionsWith('tools/call').slice(before);
        await until(() => sessionsWith('notifications/cancelled').includes(own), 'the call is cancelled');
        await until(() => sessionsWith('DELETE').includes(own), 'the session ends');
        expect(Date.now() - revokedAt).toBeLessThan(END_MS_MAX);
      }
    },
  );

  aloneVerifies(
    'streams:key-ended',
    'end with it: so does a call that waits for the replies of its client',
    async () => {
      for (const each of [app, deaf]) {
        const key = await createKey();
        const before = sessionsWith('tools/call').length;
        const { body, headers } = modern(
          'tools/call',
          { name: 'x', arguments: {} },
          { capabilities: { elicitation: {} } },
        );
        const url = `${each.url}${askingMcp}`;
        const asked = await read(await post(url, body, { ...headers, authorization: `Bearer ${key.key}` }));
        expect(asked.body.result).toMatchObject({ resultType: 'input_required' });
        const [own] = sessionsWith('tools/call').slice(before);
        expect(sessionsWith('notifications/cancelled')).not.toContain(own);
        const revokedAt = Date.now();
        expect((await app.as(owner).delete(`/accounts/me/api-keys/${key.id}`)).status).toBe(200);
        await until(() => sessionsWith('notifications/cancelled').includes(own), 'the call is cancelled');
        expect(Date.now() - revokedAt).toBeLessThan(END_MS_MAX);
      }
    },
  );

  verifies('streams:key-ended', 'are no longer watched after they closed by themselves', async () => {
    const { id, key } = await createKey();
    const session = await initialize(`${app.url}${askingMcp}`, { elicitation: {} }, '2025-06-18', `Bearer ${key}`);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } };
    const messages = messagesOf(await post(`${app.url}${askingMcp}`, call, session));
    await messages.next();
    const held = app.get(RevocationRegistry);
    expect(held.keyIds).toContain(id);
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    expect((await post(`${app.url}${askingMcp}`, cancelled, session)).status).toBe(202);
    expect((await fetch(`${app.url}${askingMcp}`, { method: 'DELETE', headers: session })).status).toBe(204);
    await until(() => !held.keyIds.includes(id), 'nothing is held');
  });
});
