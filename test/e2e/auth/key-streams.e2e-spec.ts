import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** The longest time in which a stream may go on after the end of its key. */
const END_MS_MAX = 5_000;

let app: TestApp;
/** A process that receives no message about revoked keys: it listens on another channel. */
let deaf: TestApp;
let owner: TestAccount;
let upstream: ScriptedUpstream;
let mcp: string;
let logs: string;

beforeAll(async () => {
  upstream = await startScripted(() => '{"tools":[]}');
  app = await startApp();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  owner = await app.account();
  const namespace = await createNamespace(app, owner);
  mcp = `${(await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path}/mcp`;
  logs = `/servers/${encodeURIComponent(await createServer(app, owner, { namespace }))}/logs/stream`;
});
afterAll(() => Promise.all([deaf.close(), app.close(), upstream.close()]));

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
  verifies(
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

  verifies('streams:key-ended', 'end when it expires', async () => {
    const expiresAt = Date.now() + 4_000;
    const streams = await openAll(app, await createKey({ expiresAt: new Date(expiresAt).toISOString() }));
    await allEnded(streams);
    for (const { endedAt } of streams) {
      expect(endedAt).toBeGreaterThan(expiresAt - 100);
      expect(endedAt - expiresAt).toBeLessThan(END_MS_MAX);
    }
  });
});
