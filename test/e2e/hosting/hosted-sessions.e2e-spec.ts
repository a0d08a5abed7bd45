import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Engines, type Instance } from '../../../src/hosting/engine.js';
import { Hosting } from '../../../src/hosting/hosting.js';
import { ConnectionHandles } from '../../../src/modules/connections/core/connection-handles.js';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { ask, modern } from '../../support/mcp/mcp-calls.js';
import { bundled } from '../../support/hosting/hosted-programs.js';
import { publishHosted, type HostedServer } from '../../support/hosting/hosted-releases.js';
import { until } from '../../support/until.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Counts in the session's store and in memory, asks its user a name, and repeats words once all came. */
const COUNTER = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
  import { z } from 'zod';
  export const stateful = true;
  export default function ({ session }) {
    const server = new McpServer({ name: 'counter', version: '1.0.0' });
    const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
    let [inMemory, greeted] = [0, 0];
    server.server.oninitialized = () => { greeted += 1; };
    server.registerTool('count', {}, async () => {
      const stored = ((await session.get('count')) ?? 0) + 1;
      await session.set('count', stored);
      return text({ stored, inMemory: ++inMemory, greeted, id: session.id });
    });
    const waiting = [];
    server.registerTool('echo', { inputSchema: { word: z.string(), of: z.number() } }, async ({ word, of }) => {
      await new Promise((resolve) => {
        if (waiting.push(resolve) === of) waiting.splice(0).forEach((go) => go());
      });
      return text(word);
    });
    server.registerTool('greet', {}, async () => {
      const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
      const params = { mode: 'form', message: 'Your name?', requestedSchema };
      const { content } = await server.server.request({ method: 'elicitation/create', params }, ElicitResultSchema);
      return text('Hello ' + content.name);
    });
    return server.server;
  }
  export const handleHttp = async (request, { sessions }) => {
    const to = new URL(request.url).searchParams.get('to');
    return Response.json({ found: await sessions.send(to, 1).then(() => true, () => false) });
  };`;

interface Count {
  stored: number;
  inMemory: number;
  /** Number of `initialized` notifications that it received. */
  greeted: number;
  id: string;
}

/** Processes that serve callers; the second one is started anew by tests. */
const app = testApp({ ROLES: 'api,worker' });
let other: TestApp;
/** The process that runs programs. */
let host: TestApp;
const owner = testAccount(app);
const guest = testAccount(app);
let namespace: string;
let counter: HostedServer;
/** The program that was started last. */
let running: Instance | undefined;

beforeAll(async () => {
  await startHost();
  other = await app.sibling({ ROLES: 'api' });
  namespace = await createNamespace(app, owner);
  counter = await publishHosted(app, owner, await bundled(COUNTER), { stateful: true });
}, 180_000);
afterAll(async () => {
  for (const one of [other, host, app]) await one.close();
});

async function startHost(): Promise<void> {
  host = await app.sibling({ ROLES: 'host' });
  for (const engine of host.get(Engines).all) {
    if (engine.name !== 'worker') continue;
    const start = engine.start.bind(engine);
    engine.start = async (...given) => (running = await start(...given));
  }
}

async function restartOther(): Promise<void> {
  await other.close();
  other = await app.sibling({ ROLES: 'api' });
}

/** The same address at another process. */
const at = (process: TestApp, url: string) => new URL(new URL(url, app.url).pathname, process.url).href;

/** Calls a tool as clients without sessions do. */
async function call(process: TestApp, url: string, account = owner, name = 'count', args: object = {}) {
  const { body, headers } = modern('tools/call', { name, arguments: args });
  const answer = await ask(at(process, url), body, { ...headers, authorization: `Bearer ${account.key}` });
  return JSON.parse((answer.body as { result: { content: { text: string }[] } }).result.content[0].text);
}

const count = (...given: Parameters<typeof call>): Promise<Count> => call(...given) as Promise<Count>;

/** Calls the tool of a connection over REST. */
async function countBy(process: TestApp, path: string): Promise<Count> {
  const { body } = await process.as(owner).post(`${path}/.tools/count`, {});
  return JSON.parse((body as { content: { text: string }[] }).content[0].text);
}

/** The official client, in a session it has or in a new one. Answers the question for its name. */
async function client(process: TestApp, url: string, sessionId?: string) {
  const made = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  made.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept',
    content: { name: new URL(process.url).port },
  }));
  const requestInit = { headers: { authorization: `Bearer ${owner.key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(at(process, url)), { requestInit, sessionId });
  if (sessionId !== undefined) transport.setProtocolVersion('2025-11-25');
  await made.connect(transport);
  const tool = async (name: string) => {
    const { content } = (await made.callTool({ name, arguments: {} })) as { content: { text: string }[] };
    return JSON.parse(content[0]?.text ?? '');
  };
  return { tool, transport, close: () => made.close() };
}

/** True while the program has the session. */
async function isThere(id: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${owner.key}` };
  const answer = await fetch(`${counter.url}/send?to=${id}`, { headers });
  return ((await answer.json()) as { found: boolean }).found;
}

describe('a caller of a stateful hosted server', () => {
  verifies(
    ['hosted:session:kept', 'hosted:stateful'],
    'without a session has the same upstream session in every process and after a restart, and no other caller has it',
    async () => {
      const { url } = counter;
      expect(await count(app, url)).toMatchObject({ stored: 1, inMemory: 1 });
      expect(await count(other, url)).toMatchObject({ stored: 2, inMemory: 2 });
      await restartOther();
      expect(await count(other, url)).toMatchObject({ stored: 3, inMemory: 3, greeted: 1 });
      expect(await count(other, url, guest)).toMatchObject({ stored: 1, inMemory: 1 });
    },
  );

  verifies('hosted:session:kept', 'has one for each connection, and each end user’s is its own', async () => {
    const made = () => createConnection(app, owner, { server: counter.name }, { namespace });
    const [{ path: one, connectionId }, { path: two }] = [await made(), await made()];
    expect(await countBy(app, one)).toMatchObject({ stored: 1, inMemory: 1 });
    expect(await countBy(other, one)).toMatchObject({ stored: 2, inMemory: 2 });
    await restartOther();
    expect(await countBy(other, one)).toMatchObject({ stored: 3, inMemory: 3, greeted: 1 });
    // As it happens to what nobody called for a while.
    const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [connectionId]);
    await app.get(ConnectionHandles).closeHandle(id as string);
    expect(await countBy(app, one)).toMatchObject({ stored: 4, inMemory: 4, greeted: 1 });
    expect(await countBy(other, two)).toMatchObject({ stored: 1, inMemory: 1 });
    expect(await count(app, `${one}/mcp`)).toMatchObject({ stored: 1 });
    expect(await count(other, `${one}/mcp`)).toMatchObject({ stored: 2 });
  });

  verifies(
    ['hosted:session:kept', 'hosted:stateful'],
    'continues its session in another process and after a restart, with the official client',
    async () => {
      const first = await client(app, counter.url);
      const { sessionId } = first.transport;
      expect(await first.tool('count')).toMatchObject({ stored: 1, inMemory: 1 });
      const second = await client(other, counter.url, sessionId);
      expect(await second.tool('count')).toMatchObject({ stored: 2, inMemory: 2 });
      await second.close();
      await restartOther();
      const third = await client(other, counter.url, sessionId);
      expect(await third.tool('count')).toMatchObject({ stored: 3, inMemory: 3, greeted: 1 });
      expect(await first.tool('count')).toMatchObject({ stored: 4, inMemory: 4 });
      const fresh = await client(app, counter.url);
      expect(await fresh.tool('count')).toMatchObject({ stored: 1, inMemory: 1 });
      await Promise.all([first, third, fresh].map((one) => one.close()));
    },
  );

  verifies('hosted:session:kept', 'gets its own answers while other processes call in its session', async () => {
    const processes = [app, other];
    const words = Array.from({ length: 40 }, (_, index) => `word ${index}`);
    const told = words.map((word, index) =>
      call(processes[index % 2], counter.url, owner, 'echo', { word, of: words.length }),
    );
    expect(await Promise.all(told)).toEqual(words);
  });

  verifies('hosted:session:kept', 'is asked by the call that needs its reply, in any process', async () => {
    const first = await client(app, counter.url);
    expect(await first.tool('greet')).toBe(`Hello ${new URL(app.url).port}`);
    const second = await client(other, counter.url, first.transport.sessionId);
    expect(await second.tool('greet')).toBe(`Hello ${new URL(other.url).port}`);
    expect(await first.tool('greet')).toBe(`Hello ${new URL(app.url).port}`);
    await Promise.all([first.close(), second.close()]);
  });
});

describe('a session with a stateful hosted server', () => {
  verifies('hosted:session:ended', 'ends with its client, at a process that never served it', async () => {
    const first = await client(other, counter.url);
    const { sessionId } = first.transport;
    const { id } = (await first.tool('count')) as Count;
    await first.close();
    await restartOther();
    expect(await isThere(id)).toBe(true);
    const last = await client(app, counter.url, sessionId);
    await last.transport.terminateSession();
    await until(async () => !(await isThere(id)), 'its store is gone');
    await expect(client(other, counter.url, sessionId).then(({ tool }) => tool('count'))).rejects.toMatchObject({
      code: 404,
    });
    const next = await client(app, counter.url);
    expect(await next.tool('count')).toMatchObject({ stored: 1 });
    await Promise.all([last, next].map((one) => one.close()));
  });

  verifies('hosted:session:ended', 'ends with its connection, deleted at a process that never called it', async () => {
    const { path, connectionId } = await createConnection(app, owner, { server: counter.name }, { namespace });
    const { id } = await countBy(app, path);
    await restartOther();
    expect(await isThere(id)).toBe(true);
    expect((await other.as(owner).delete(path)).status).toBe(200);
    expect(await isThere(id)).toBe(false);
    const again = await createConnection(app, owner, { server: counter.name }, { namespace, connectionId });
    expect(await countBy(app, again.path)).toMatchObject({ stored: 1 });
  });

  longVerifies(
    'hosted:session:kept',
    'keeps its stored data after its program was killed, its host restarted, or another release was published',
    async () => {
      const { name, url } = counter;
      const [account, kept] = [await app.account(), await client(other, url)];
      const counts = async () => [
        (await count(app, url, account)).stored,
        ((await kept.tool('count')) as Count).stored,
      ];
      expect(await counts()).toEqual([1, 1]);
      process.kill(running?.pid ?? 0, 'SIGKILL');
      await running?.exited;
      expect(await counts()).toEqual([2, 2]);
      expect(await count(app, url, account)).toMatchObject({ stored: 3, inMemory: 2 });
      await host.close();
      await startHost();
      // The others hear of a host by a message.
      for (const one of [app, other]) {
        await until(async () => (await one.get(Hosting).whyNot('worker')) === null, 'a process knows the new host');
      }
      expect(await counts()).toEqual([4, 3]);
      await publishHosted(app, owner, await bundled(COUNTER.replace("'1.0.0'", "'2.0.0'")), { name, stateful: true });
      expect(await counts()).toEqual([5, 4]);
      await kept.close();
    },
    60_000,
  );
});
