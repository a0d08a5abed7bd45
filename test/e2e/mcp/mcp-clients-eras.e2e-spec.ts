// Also run with the queue on Redis by test:long: what an answer to a question travels by.
import { beforeAll, describe, expect } from '@jest/globals';
import { McpTasksRepository } from '../../../src/mcp/server/tasks/mcp-task.repository.js';
import { testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import {
  startElicitationV1,
  startElicitationV2,
  startTasksV1,
  type ElicitationUpstream,
} from '../../support/special-upstreams/elicitation-upstreams.js';
import { createConnection, createServer } from '../../support/factories.js';
import type { Json } from '../../support/mcp/calls.js';
import { ask, initialize, messagesOf, modern, post } from '../../support/mcp/mcp-calls.js';
import { officialClients, type Person } from '../../support/mcp/official-clients.js';
import { publishExternal } from '../../support/releases/current-releases.js';
import { until } from '../../support/until.js';
import { closing, textOf } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let second: TestApp;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => void (second = await app.sibling()));

async function endpointOf(upstream: ElicitationUpstream, account = owner): Promise<string> {
  return `${app.url}${(await createConnection(app, account, { mcpUrl: closing(upstream).url })).path}/mcp`;
}

const keyed = () => ({ authorization: `Bearer ${owner.key}` });
const person = (name: string | null): Person => ({ name, asked: [], changes: 0 });

const upstreams: [name: string, start: () => Promise<ElicitationUpstream>][] = [
  ['v1 with sessions', startElicitationV1],
  ['v2 for both eras', () => startElicitationV2('stateless')],
  ['v2 for 2026-07-28 alone', () => startElicitationV2('reject')],
];

describe.each(officialClients)('the official client %s', (_, connectIt) => {
  const connect = (url: string, who: Person) => connectIt(url, { headers: keyed(), who });

  for (const [what, start] of upstreams) {
    verifies(['mcp:input', 'mcp:official-clients'], `is asked by a server with ${what}`, async () => {
      const url = await endpointOf(await start());
      const [nina, nobody] = [person('Nina'), person(null)];
      const [client, refusing] = [await connect(url, nina), await connect(url, nobody)];
      const call = (one: typeof client) => one.callTool({ name: 'ask' }).then(textOf, (error: Error) => error.message);
      const answers = await Promise.all([call(client), call(refusing), call(client)]);
      expect(answers).toEqual(['Hello Nina', 'Nobody said', 'Hello Nina']);
      expect(nina.asked).toEqual(['What is your name?', 'What is your name?']);
      expect(nobody.asked).toHaveLength(1);
    });

    verifies(['mcp:progress', 'mcp:bridge'], `hears progress and changed lists of a server with ${what}`, async () => {
      const upstream = await start();
      const who = person('Nina');
      const client = await connect(await endpointOf(upstream), who);
      const heard: number[] = [];
      await client.callTool({ name: 'steps' }, { onprogress: ({ progress }) => void heard.push(progress) });
      expect(heard).toEqual([1, 2, 3]);
      await until(() => {
        upstream.toolsChanged();
        return who.changes > 0;
      }, 'the client hears that the tools changed');
    });
  }
});

describe('a tool of a legacy server that runs as a task only', () => {
  const later = { name: 'later', arguments: { name: 'Nina' } };

  verifies(['mcp:tasks', 'mcp:bridge'], 'is called like any other, by every client', async () => {
    const { url: mcpUrl } = closing(await startTasksV1());
    const { path } = await createConnection(app, owner, { mcpUrl });
    const url = `${app.url}${path}/mcp`;
    for (const [, connect] of officialClients) {
      const client = await connect(url, { headers: keyed(), who: person(null) });
      expect(textOf(await client.callTool(later))).toBe('Hello Nina');
      expect(textOf(await client.callTool({ name: 'now' }))).toBe('Hello now');
    }
    const rest = await app.as(owner).post(`${path}/.tools/later`, later.arguments);
    expect([rest.status, textOf(rest.body)]).toEqual([200, 'Hello Nina']);
    const { tools } = (await app.as(owner).get(`${path}/.tools`)).body;
    expect(tools.map(({ name, execution }: Json) => [name, execution?.taskSupport])).toEqual([
      ['later', 'optional'],
      ['now', 'forbidden'],
    ]);
  });

  /** Sends requests of 2025-11-25 to the connection's endpoint of an app. */
  async function asking(to: TestApp, path: string, account: TestAccount) {
    const url = `${to.url}${path}/mcp`;
    const session = await initialize(url, {}, '2025-11-25', `Bearer ${account.key}`);
    return async (method: string, params: object = {}) =>
      (await ask(url, { jsonrpc: '2.0', id: 1, method, params }, session)).body;
  }

  verifies('mcp:tasks', 'is followed as a task by the client that starts it so, at any process', async () => {
    const { url: mcpUrl, store } = closing(await startTasksV1());
    const { path } = await createConnection(app, owner, { mcpUrl });
    const [here, there] = [await asking(app, path, owner), await asking(second, path, owner)];
    const clientInfo = { name: 'spec', version: '1' };
    const opened = await here('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    expect(opened.result.capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
    const { task } = (await here('tools/call', { ...later, task: { ttl: 60_000 } })).result;
    expect(task).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: 50 });
    const { taskId } = task;
    expect(JSON.stringify(task)).not.toContain(store.getAllTasks()[0]?.taskId);
    for (const call of [here, there]) {
      const found = await call('tasks/get', { taskId });
      expect(found.result).toMatchObject({ taskId, ttl: 60_000 });
      const { content, _meta } = (await call('tasks/result', { taskId })).result;
      expect([textOf({ content }), _meta]).toEqual([
        'Hello Nina',
        { 'io.modelcontextprotocol/related-task': { taskId } },
      ]);
      expect((await call('tasks/list')).result.tasks).toMatchObject([{ taskId, status: 'completed' }]);
    }
    const endless = { name: 'later', arguments: { name: 'nobody' }, task: { ttl: 60_000 } };
    const { taskId: other_ } = (await here('tools/call', endless)).result.task;
    expect((await there('tasks/cancel', { taskId: other_ })).result).toMatchObject({
      taskId: other_,
      status: 'cancelled',
    });
    const listed = (await here('tasks/list')).result.tasks as Json[];
    expect(listed.map((one) => one.taskId)).toEqual([other_, taskId]);
  });

  verifies('mcp:tasks', 'is not found by another account, connection, or id of its server', async () => {
    const { url: mcpUrl, store } = closing(await startTasksV1());
    const { path } = await createConnection(app, owner, { mcpUrl });
    const mine = await asking(app, path, owner);
    const { taskId } = (await mine('tools/call', { ...later, task: {} })).result.task;
    const [raw] = store.getAllTasks();
    const beside = await asking(app, (await createConnection(app, owner, { mcpUrl })).path, owner);
    const theirs = await asking(app, (await createConnection(app, other, { mcpUrl })).path, other);
    const wrong: [typeof mine, unknown][] = [
      [theirs, taskId],
      [beside, taskId],
      [mine, raw?.taskId],
      [mine, undefined],
      [mine, `${taskId}x`],
    ];
    for (const [call, id] of wrong) {
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
        const { error } = await call(method, { taskId: id });
        expect([method, error]).toEqual([method, { code: -32602, message: expect.stringMatching(/^Task not found/) }]);
      }
    }
    for (const call of [theirs, beside]) expect((await call('tasks/list')).result).toEqual({ tasks: [] });
    expect(store.getAllTasks()).toMatchObject([{ status: expect.not.stringMatching('cancelled') }]);
  });

  verifies('mcp:tasks', 'is not found by another account at the same run endpoint', async () => {
    const { url: mcpUrl } = closing(await startTasksV1());
    const { slug } = await publishExternal(app, await createServer(app, owner), mcpUrl);
    const [mine, theirs] = [await asking(app, `/run/${slug}`, owner), await asking(app, `/run/${slug}`, other)];
    const { taskId } = (await mine('tools/call', { ...later, task: {} })).result.task;
    expect((await mine('tasks/get', { taskId })).result).toMatchObject({ taskId });
    expect((await theirs('tasks/get', { taskId })).error).toMatchObject({ code: -32602 });
    expect((await theirs('tasks/list')).result).toEqual({ tasks: [] });
  });

  verifies('mcp:tasks', 'is listed while it is among the newest fifty of its caller', async () => {
    const tasks = app.get(McpTasksRepository);
    await tasks.add('another owner', 'theirs', 60_000);
    for (let n = 1; n <= 60; n += 1) await tasks.add('one owner', `task ${n}`, 60_000);
    const stored = await app.database.query(`SELECT 1 FROM mcp_tasks WHERE owner = 'one owner'`);
    expect([stored.length, (await tasks.list('one owner')).length]).toEqual([50, 50]);
    expect(await tasks.list('another owner')).toEqual(['theirs']);
  });

  verifies('mcp:tasks', 'is called as any other where no tasks were declared to its client', async () => {
    const withTasks = closing(await startTasksV1());
    const { path } = await createConnection(app, owner, { mcpUrl: withTasks.url });
    const [, , namespace, connectionId] = path.split('/');
    const authorization = `Bearer ${owner.key}`;
    const direct = (await (await asking(app, path, owner))('tools/call', later)).result;
    const params = { ...later, name: `${connectionId}__later`, task: {} };
    const at = `${app.url}/connect/${namespace}/.mcp`;
    const joined = await ask(at, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { authorization });
    expect(joined.body.result.content).toEqual(direct.content);
    const list = await ask(at, { jsonrpc: '2.0', id: 1, method: 'tasks/list' }, { authorization });
    expect(list.body.error.code).toBe(-32601);
    for (const [method, asked, status] of [
      ['tools/call', { ...later, task: {} }, 200],
      ['tasks/get', { taskId: 'one' }, 404],
    ] as const) {
      const { body, headers } = modern(method, asked);
      const named = { ...headers, authorization, 'mcp-name': 'taskId' in asked ? asked.taskId : asked.name };
      const answer = await ask(`${app.url}${path}/mcp`, body, named);
      expect([method, answer.status, answer.body.error?.code]).toEqual([
        method,
        status,
        status === 404 ? -32601 : undefined,
      ]);
    }
  });

  verifies(['mcp:tasks', 'mcp:vanish'], 'is cancelled with its caller', async () => {
    const { url: mcpUrl, store } = closing(await startTasksV1());
    const url = `${app.url}${(await createConnection(app, owner, { mcpUrl })).path}/mcp`;
    const { body, headers } = modern('tools/call', { name: 'later', arguments: { name: 'nobody' } });
    const leaving = new AbortController();
    const authorized = { ...headers, authorization: `Bearer ${owner.key}` };
    const gone = expect(post(url, body, authorized, leaving.signal)).rejects.toThrow();
    await until(() => store.getAllTasks().length === 1, 'the task runs');
    leaving.abort();
    await gone;
    await until(() => store.getAllTasks()[0]?.status === 'cancelled', 'the task is cancelled');
  });
});

describe('a client of 2026-07-28 whose legacy server asks', () => {
  const capabilities = { elicitation: {} };
  const accepted = { action: 'accept', content: { name: 'Nina' } };
  const asking = (url: string, given: object = {}, key = owner.key) => {
    const { body, headers } = modern('tools/call', { name: 'ask', ...given }, { capabilities });
    return ask(url, body, { ...headers, authorization: `Bearer ${key}` });
  };

  verifies(['mcp:input', 'mcp:parked'], 'may send its reply to another process', async () => {
    const url = await endpointOf(await startElicitationV1());
    const elsewhere = url.replace(app.url, second.url);
    for (const [one, two] of [
      [url, elsewhere],
      [elsewhere, url],
    ] as const) {
      const { inputRequests, requestState } = (await asking(one)).body.result;
      const [[key, question]] = Object.entries<Json>(inputRequests);
      expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'What is your name?' } });
      const wrong = (await asking(two, { arguments: { a: 1 }, requestState })).body;
      expect(wrong.error).toMatchObject({ code: -32602, message: expect.stringMatching(/another request/) });
      const back = { requestState, inputResponses: { [key]: accepted } };
      expect(textOf((await asking(two, back)).body.result)).toBe('Hello Nina');
      const again = (await asking(two, back)).body.result;
      expect([again.isError, textOf(again)]).toEqual([true, expect.stringMatching(/no longer waiting.*again/)]);
    }
  });

  verifies('mcp:parked', 'is asked to call again when the process has ended', async () => {
    const url = await endpointOf(await startElicitationV1());
    const third = await app.sibling();
    const { inputRequests, requestState } = (await asking(url.replace(app.url, third.url))).body.result;
    await third.close();
    const back = { requestState, inputResponses: { [String(Object.keys(inputRequests)[0])]: accepted } };
    const { result } = (await asking(url, back)).body;
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringMatching(/restarted. Make the call again/)]);
    const afresh = (await asking(url)).body.result;
    const answer = { requestState: afresh.requestState, inputResponses: { 'question-1': accepted } };
    expect(textOf((await asking(url, answer)).body.result)).toBe('Hello Nina');
  });

  verifies('mcp:parked', 'is asked through the address of the whole namespace', async () => {
    const one = await endpointOf(await startElicitationV1());
    const [, namespace, id] = /connect\/([^/]+)\/([^/]+)\/mcp$/.exec(one) ?? [];
    const url = `${app.url}/connect/${namespace}/.mcp`;
    const given = { name: `${id}.ask` };
    const { inputRequests, requestState } = (await asking(url, given)).body.result;
    expect(Object.keys(inputRequests)).toEqual(['question-1']);
    const back = { ...given, requestState, inputResponses: { 'question-1': accepted } };
    expect(textOf((await asking(url, back)).body.result)).toBe('Hello Nina');
  });
});

describe('a connection that leads back to this service', () => {
  verifies('mcp:loop', 'has an error status under another name, and no request loops', async () => {
    const headers = { authorization: `Bearer ${owner.key}` };
    const good = await createConnection(app, owner, { mcpUrl: closing(await startElicitationV1()).url });
    const { namespace, path } = good;
    const byOtherName = app.url.replace('127.0.0.1', 'localhost');
    expect(byOtherName).not.toBe(app.url);
    const targets = [
      `${byOtherName}/connect/${namespace}/.mcp`,
      `${byOtherName}${path}/mcp`,
      // Another process is the same service.
      `${second.url}/connect/${namespace}/.mcp`,
    ];
    for (const mcpUrl of targets) {
      const { path: looping, body } = await createConnection(app, owner, { mcpUrl, headers }, { namespace });
      expect(body.status).toMatchObject({
        state: 'error',
        reason: 'loop',
        message: expect.stringMatching(/leads back to it/),
        nextStep: expect.stringMatching(/with the mcpUrl of the MCP server itself/),
      });
      const call = await app.as(owner).post(`${looping}/.tools/ask`, {});
      expect([call.status, call.body.message]).toEqual([502, expect.stringMatching(/leads back to it/)]);
    }
    const url = `${app.url}/connect/${namespace}/.mcp`;
    const list = await ask(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers);
    expect(list.body.result.tools.map(({ name }: Json) => name)).toEqual([
      `${good.connectionId}__ask`,
      `${good.connectionId}__steps`,
    ]);
  });
});

describe('a session at two processes', () => {
  const asking = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask' } };

  for (const [what, start] of upstreams) {
    verifies(['mcp:input', 'mcp:session'], `replies at another process than the one that asks: ${what}`, async () => {
      const url = await endpointOf(await start());
      const elsewhere = url.replace(app.url, second.url);
      const session = await initialize(elsewhere, { elicitation: {} }, '2025-11-25', `Bearer ${owner.key}`);
      const stream = messagesOf(await post(url, asking, session));
      const { id, method } = (await stream.next()).value;
      expect(method).toBe('elicitation/create');
      const answer = { jsonrpc: '2.0', id, result: { action: 'accept', content: { name: 'Nina' } } };
      expect((await ask(elsewhere, answer, session)).status).toBe(202);
      expect(textOf((await stream.next()).value.result)).toBe('Hello Nina');
    });
  }

  verifies(['mcp:session', 'mcp:session-stream'], 'ends everywhere, and its stream with it', async () => {
    const upstream = await startElicitationV1();
    const url = await endpointOf(upstream);
    const elsewhere = url.replace(app.url, second.url);
    const session = await initialize(url, {}, '2025-11-25', `Bearer ${owner.key}`);
    const stream = await fetch(elsewhere, { headers: { accept: 'text/event-stream', ...session } });
    const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'a://b' } };
    expect((await ask(url, subscribe, session)).body.result).toEqual({});
    // The first one only asks whether the server accepts it; the second one is that of the stream.
    await until(() => upstream.subscribed.length > 1, 'the upstream knows of the subscription');
    upstream.resourceUpdated('a://b');
    expect((await messagesOf(stream.clone()).next()).value).toMatchObject({ params: { uri: 'a://b' } });
    expect((await fetch(url, { method: 'DELETE', headers: session })).status).toBe(204);
    await stream.text();
    await until(async () => (await ask(elsewhere, subscribe, session)).status === 404, 'it is over there too');
  });
});
