/** The official clients at the endpoints of connections, namespaces and servers. */
import { beforeAll, describe, expect } from '@jest/globals';
import { DataSource } from 'typeorm';
import { SessionMarksRepository } from '../../../src/mcp/server/sessions/session-mark.repository.js';
import { testAccount, testApp } from '../../support/app.js';
import { times, type Json } from '../../support/mcp/calls.js';
import { doorsOf } from '../../support/mcp/doors.js';
import { connectSse, officialClients } from '../../support/mcp/official-clients.js';
import { startEverything, type EverythingServer } from '../../support/upstream/everything.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { startSdkV1, startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);
const { connect: connection } = doorsOf(app, owner);
let everything: EverythingServer;

beforeAll(async () => void (everything = await startEverything()));

const keyed = ({ key } = owner) => ({ authorization: `Bearer ${key}` });

/** The endpoint of a new connection to this upstream, and of a new server whose release it is. */
const doors: Record<'connection' | 'run', (mcpUrl: string) => Promise<string>> = {
  connection: async (mcpUrl) => `${app.url}${await connection(mcpUrl)}/mcp`,
  run: async (mcpUrl) => `${app.url}/run/${(await externalServer(app, other, mcpUrl)).slug}/mcp`,
};

verifies(['mcp:sse', 'mcp:official-clients'], 'a client of HTTP+SSE calls at all three endpoints', async () => {
  const { url } = await start();
  const endpoint = await doors.connection(url);
  for (const one of [endpoint, endpoint.replace(/[^/]+\/mcp$/, '.mcp'), (await doors.run(url)).replace('/mcp', '')]) {
    const client = await connectSse(one, { headers: keyed() });
    const name = (await client.listTools()).tools.find((tool) => tool.name.endsWith('echo'))?.name ?? '';
    const message = `hi ${one}`;
    expect(textOf(await client.callTool({ name, arguments: { message } }))).toBe(message);
  }
});

verifies('mcp:session-marks', 'the marks of one key are 500 at most, and those of another stay', async () => {
  const { manager } = app.get(DataSource);
  await manager.query(
    `INSERT INTO session_marks SELECT key || n, now() + n * interval '1 s', key FROM generate_series(1, 519) n, unnest('{a,b}'::text[]) key`,
  );
  await app.get(SessionMarksRepository).add('newest', 'a', Date.now() + 86_400_000);
  const rows = await manager.query(
    `SELECT principal, count(*)::int AS count, bool_or(session IN ('a519', 'newest')) AS "hasNew", bool_or(session = 'a19') AS "hasOld"
       FROM session_marks GROUP BY 1 ORDER BY 1`,
  );
  expect(rows).toEqual([
    { principal: 'a', count: 500, hasNew: true, hasOld: false },
    { principal: 'b', count: 519, hasNew: false, hasOld: false },
  ]);
});

describe.each(officialClients)('the official client %s', (name, connectIt) => {
  const connect = (url: string) => connectIt(url, { headers: keyed() });

  for (const options of [{}, { sse: true }, { sessions: true, sse: true }, { modernOnly: true }]) {
    verifies(
      ['mcp:official-clients', 'mcp:initialize', 'mcp:passes-through'],
      `uses everything of an upstream ${JSON.stringify(options)}`,
      async () => {
        const upstream = await start(options);
        const client = await connect(await doors.connection(upstream.url));
        expect(client.getServerVersion()).toBeDefined();
        // 2026-07-28 has no ping.
        if (client.getProtocolEra() !== 'modern') await client.ping();
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
    const client = await connect(await doors.connection((await start()).url));
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
    const client = await connect(await doors.connection(upstream.url));
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

  for (const [door, endpointOf] of Object.entries(doors)) {
    verifies(['mcp:official-clients', 'run:any-key'], `uses the reference server by ${door}`, async () => {
      const client = await connect(await endpointOf(everything.url));
      expect(client.getServerVersion()?.name).toContain('everything');
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
      expect(await client.callTool({ name: 'get-sum', arguments: { a: 'x' } })).toMatchObject({ isError: true });
    });
  }

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
      const client = await connect(await doors.connection(closing(await startOther()).url));
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo']);
      const echo = async (message: string) => textOf(await client.callTool({ name: 'echo', arguments: { message } }));
      const messages = times(10, (i) => `hællo ${i}`);
      expect(await Promise.all(messages.map(echo))).toEqual(messages);
    });
  }

  for (const options of [{}, { sse: true, sessions: true }, { modernOnly: true }]) {
    verifies('run:any-key', `configures a server ${JSON.stringify(options)}`, async () => {
      const upstream = await start(options);
      const properties = { token: { type: 'string', 'x-from': { header: 'x-token' } }, region: { type: 'string' } };
      const schema = { properties, required: ['token', 'region'] };
      const endpoint = `${app.url}/run/${(await externalServer(app, owner, upstream.url, schema)).slug}/mcp`;
      const sentence = name.endsWith('alone') ? /server did not offer/ : /Input required/;
      await expect(connectIt(endpoint, { headers: keyed(other) })).rejects.toThrow(sentence);
      const client = await connectIt(`${endpoint}?region=eu`, { headers: { ...keyed(other), 'x-token': 'theirs' } });
      expect((await client.listTools()).tools).toHaveLength(13);
      expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hællo' } }))).toBe('hællo');
      await expect(client.callTool({ name: 'rpc_error' })).rejects.toMatchObject({ code: -32602 });
      for (const { path, headers } of upstream.requests) {
        expect([path, headers['x-token'], headers.authorization]).toEqual(['/mcp?region=eu', 'theirs', undefined]);
      }
    });
  }
});
