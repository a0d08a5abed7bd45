import { beforeAll, describe, expect } from '@jest/globals';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { DataSource } from 'typeorm';
import { SessionMarkRepository } from '../../../src/mcp/server/sessions/session-mark.repository.js';
import { testAccount, testApp } from '../../support/app.js';
import { times, type Json } from '../../support/mcp/calls.js';
import { startEverything, type EverythingServer } from '../../support/upstream/everything.js';
import { createConnection, createServer } from '../../support/factories.js';
import { setCurrent } from '../../support/releases/current-releases.js';
import { startSdkV1, startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let everything: EverythingServer;

beforeAll(async () => {
  everything = await startEverything();
});

/** Connects the upstream; gives the URL of its MCP endpoint here. */
async function endpointOf(mcpUrl: string): Promise<URL> {
  return new URL(`${app.url}${(await createConnection(app, owner, { mcpUrl })).path}/mcp`);
}

interface CallOptions {
  signal?: AbortSignal;
  timeout?: number;
  onprogress?: (progress: { progress: number; total?: number }) => void;
}

/** Methods that the clients of both packages have. */
interface AnyClient {
  callTool(params: { name: string; arguments?: Record<string, unknown> }, options?: CallOptions): Promise<unknown>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  listResources(): Promise<{ resources: unknown[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: unknown[] }>;
  readResource(params: { uri: string }): Promise<{ contents: unknown[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: unknown[] }>;
  complete(params: {
    ref: { type: 'ref/prompt'; name: string };
    argument: { name: string; value: string };
  }): Promise<{ completion: { values: string[] } }>;
  ping(): Promise<unknown>;
  getServerVersion(): { name: string } | undefined;
  /** The v2 client's alone. */
  getProtocolEra?(): 'legacy' | 'modern' | undefined;
  close(): Promise<void>;
}

const info = { name: 'spec', version: '1.0.0' };
const keyed = (): RequestInit => ({ headers: { authorization: `Bearer ${owner.key}` } });

async function connectV1(url: URL): Promise<AnyClient> {
  const client = closing(new ClientV1(info));
  await client.connect(new TransportV1(url, { requestInit: keyed() }));
  const callTool: AnyClient['callTool'] = (params, options) => client.callTool(params, undefined, options);
  return Object.assign(Object.create(client) as ClientV1, { callTool });
}

async function connectSse(url: URL): Promise<AnyClient> {
  const client = closing(new ClientV1(info));
  await client.connect(new SSEClientTransport(url, { requestInit: keyed() }));
  const callTool: AnyClient['callTool'] = (params, options) => client.callTool(params, undefined, options);
  return Object.assign(Object.create(client) as ClientV1, { callTool });
}

type Negotiation = { mode: 'auto' | 'legacy' | { pin: string } };

async function connectV2(url: URL, versionNegotiation?: Negotiation): Promise<AnyClient> {
  const client = closing(new ClientV2(info, { versionNegotiation }));
  await client.connect(new TransportV2(url, { requestInit: keyed() }));
  return client;
}

const clients: [string, (url: URL) => Promise<AnyClient>][] = [
  ['v1', connectV1],
  ['v2', (url) => connectV2(url)],
  ['v2, which asks for the newest revision first', (url) => connectV2(url, { mode: 'auto' })],
  ['v2, which speaks the newest revision alone', (url) => connectV2(url, { mode: { pin: '2026-07-28' } })],
];

verifies(
  ['mcp:sse', 'mcp:official-clients'],
  'a client of HTTP+SSE lists and calls at all three endpoints',
  async () => {
    const { url } = await start();
    const path = new URL(await endpointOf(url)).pathname;
    const server = await setCurrent(app, await createServer(app, owner), { upstreamUrl: url });
    for (const endpoint of [path, path.replace(/[^/]+\/mcp$/, '.mcp'), `/run/${server.slug}`]) {
      const client = await connectSse(new URL(`${app.url}${endpoint}`));
      const echo = (await client.listTools()).tools.find(({ name }) => name.endsWith('echo'))?.name ?? '';
      expect([endpoint, textOf(await client.callTool({ name: echo, arguments: { message: 'hi' } }))]).toEqual([
        endpoint,
        'hi',
      ]);
    }
  },
);

verifies('mcp:session-marks', 'the marks of one key are 500 at most, and those of another stay', async () => {
  const { manager } = app.get(DataSource);
  await manager.query(
    `INSERT INTO session_marks SELECT key || n, now() + n * interval '1 s', key FROM generate_series(1, 519) n, unnest('{a,b}'::text[]) key`,
  );
  await app.get(SessionMarkRepository).add('newest', 'a', Date.now() + 86_400_000);
  const rows = await manager.query(
    `SELECT principal, count(*)::int AS count, bool_or(session IN ('a519', 'newest')) AS "hasNew", bool_or(session = 'a19') AS "hasOld"
       FROM session_marks GROUP BY 1 ORDER BY 1`,
  );
  expect(rows).toEqual([
    { principal: 'a', count: 500, hasNew: true, hasOld: false },
    { principal: 'b', count: 519, hasNew: false, hasOld: false },
  ]);
});

describe.each(clients)('the official client %s', (_, connect) => {
  for (const options of [{}, { sse: true }, { sessions: true, sse: true }, { modernOnly: true }]) {
    verifies(
      ['mcp:official-clients', 'mcp:initialize', 'mcp:passes-through'],
      `uses everything of an upstream ${JSON.stringify(options)}`,
      async () => {
        const upstream = await start(options);
        const client = await connect(await endpointOf(upstream.url));
        expect(client.getServerVersion()).toBeDefined();
        // 2026-07-28 has no ping.
        if (client.getProtocolEra?.() !== 'modern') await client.ping();
        const names = (await client.listTools()).tools.map(({ name }) => name);
        expect(names).toHaveLength(13);
        expect(names).toContain('repo.issues.create');
        expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hællo' } }))).toBe('hællo');
        expect(await client.callTool({ name: 'repo.search', arguments: { query: 'q', limit: 1 } })).toMatchObject({
          structuredContent: { items: [{ name: 'q-1', stars: 0 }] },
        });
        expect(await client.callTool({ name: 'fail' })).toMatchObject({ isError: true });
        await expect(client.callTool({ name: 'rpc_error' })).rejects.toMatchObject({
          code: -32602,
          data: { field: 'city' },
        });
        expect((await client.listResources()).resources).toHaveLength(2);
        expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
        const { contents } = await client.readResource({ uri: 'docs://pages/pricing' });
        expect(contents).toMatchObject([{ text: 'Page pricing' }]);
        await expect(client.readResource({ uri: 'docs://none' })).rejects.toThrow();
        expect((await client.listPrompts()).prompts).toMatchObject([{ name: 'review' }]);
        const { messages } = await client.getPrompt({ name: 'review', arguments: { language: 'rust' } });
        expect(messages).toMatchObject([{ content: { text: 'Review this rust code, be friendly.' } }]);
        const ref = { type: 'ref/prompt' as const, name: 'review' };
        const { completion } = await client.complete({ ref, argument: { name: 'language', value: 'p' } });
        expect(completion.values).toEqual(['php', 'python']);
      },
    );
  }

  verifies(['mcp:progress', 'mcp:official-clients'], 'receives the progress of each of its calls', async () => {
    const client = await connect(await endpointOf((await start()).url));
    const calls = times(5, async (i) => {
      const heard: number[] = [];
      const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
      const result = await client.callTool({ name: 'progress', arguments: { steps: i + 1 } }, { onprogress });
      expect(textOf(result)).toBe(`${i + 1} steps done`);
      return heard;
    });
    expect(await Promise.all(calls)).toEqual(times(5, (i) => times(i + 1, (step) => step + 1)));
  });

  verifies(['channel:cancel', 'mcp:official-clients'], 'aborts a call, and its next ones work', async () => {
    const upstream = await start({ sessions: true, sse: true });
    const client = await connect(await endpointOf(upstream.url));
    const leaving = new AbortController();
    const call = expect(client.callTool({ name: 'hold' }, { signal: leaving.signal })).rejects.toThrow();
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    leaving.abort('enough');
    await call;
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 1);
    const [held] = upstream.requests.filter(({ raw }) => raw.includes('"hold"'));
    const [note] = upstream.requests.filter(({ raw }) => raw.includes('notifications/cancelled'));
    expect((note.body as Json).params.requestId).toBe((held.body as Json).id);
    await upstream.waitFor(() => held.aborted);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'next' } }))).toBe('next');
  });

  verifies(
    'mcp:official-clients',
    'uses the reference server: tools, progress, resources, prompts, completion',
    async () => {
      const client = await connect(await endpointOf(everything.url));
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'get-sum']));
      expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('Echo: hi');
      expect(textOf(await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 3 } }))).toContain('5');
      const heard: number[] = [];
      const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
      const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.3, steps: 3 } };
      expect(textOf(await client.callTool(long, { onprogress }))).toContain('completed');
      expect(heard).toEqual([1, 2, 3]);
      expect((await client.listResources()).resources.length).toBeGreaterThan(0);
      const { contents } = await client.readResource({ uri: 'demo://resource/dynamic/text/1' });
      expect(contents).toHaveLength(1);
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('simple-prompt');
      expect((await client.getPrompt({ name: 'simple-prompt' })).messages).toHaveLength(1);
      const ref = { type: 'ref/prompt' as const, name: 'completable-prompt' };
      const { completion } = await client.complete({ ref, argument: { name: 'department', value: 'E' } });
      expect(completion.values).toEqual(['Engineering']);
      await expect(client.callTool({ name: 'get-sum', arguments: { a: 'x' } })).resolves.toMatchObject({
        isError: true,
      });
    },
  );

  const others: [string, () => Promise<{ url: string; close(): Promise<void> }>][] = [
    ['SDK v1 with sessions and event streams', () => startSdkV1({ stateful: true, json: false })],
    ['SDK v1 with sessions and JSON', () => startSdkV1({ stateful: true, json: true })],
    ['SDK v1 without sessions', () => startSdkV1({ stateful: false, json: false })],
    ['SDK v1 without sessions, JSON', () => startSdkV1({ stateful: false, json: true })],
    ['SDK v2 for both eras', () => startSdkV2({ legacy: 'stateless' })],
    ['SDK v2 for 2026-07-28 alone', () => startSdkV2({ legacy: 'reject' })],
  ];
  for (const [what, startOther] of others) {
    verifies('mcp:official-clients', `lists and calls the tool of a server made with ${what}`, async () => {
      const client = await connect(await endpointOf(closing(await startOther()).url));
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo']);
      const echo = async (message: string) => textOf(await client.callTool({ name: 'echo', arguments: { message } }));
      const messages = times(10, (i) => `hællo ${i}`);
      expect(await Promise.all(messages.map(echo))).toEqual(messages);
    });
  }
});
