// Also run with the queue on Redis by test:long: messages between processes.
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, jest } from '@jest/globals';
import { Cancellation } from '../../../src/mcp/protocol/cancellation.js';
import type { ListenFilter, McpCall, UpstreamListener } from '../../../src/mcp/protocol/channel.js';
import { UplinkChannels } from '../../../src/modules/connections/uplink/uplink-channels.js';
import { UplinkTunnelsRepository } from '../../../src/modules/connections/uplink/uplink-tunnels.repository.js';
import { textFrame } from '../../../src/platform/internal-http/frames.js';
import { INTERNAL_HEADER, InternalSignatures } from '../../../src/platform/internal-http/internal-signatures.js';
import { ProcessRegistry } from '../../../src/platform/processes/process-registry.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { eventsOf, mcp, open, send, times, toolCall } from '../../support/mcp/calls.js';
import { createNamespace } from '../../support/factories.js';
import { ask, initialize, messagesOf, modern, post } from '../../support/mcp/mcp-calls.js';
import { cleanUpPrograms, runProgram, type Program } from '../../support/program.js';
import {
  openTunnel,
  pair,
  PairingRefused,
  untilState,
  type UplinkClient,
  type UplinkOptions,
} from '../../support/mcp/uplink-client.js';
import { until } from '../../support/until.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** The longest time for which a tunnel stays open after its right. */
const END_MS_MAX = 5_000;

/** A process counts as dead after this. */
const LEASE_MS = 3_000;

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

const app = testApp({}, { uplinkLeaseMs: LEASE_MS, uplinkPingMs: 500 });
let other: TestApp;
const owner = testAccount(app);
let namespace: string;
const clients: UplinkClient[] = [];

beforeAll(async () => {
  other = await app.sibling();
  namespace = await createNamespace(app, owner);
});
afterEach(() => {
  for (const { socket } of clients.splice(0)) socket.terminate();
});
afterAll(async () => {
  await cleanUpPrograms();
});

async function uplink(space = namespace): Promise<string> {
  const path = `/connect/${space}/${uniqueName('up')}`;
  expect((await app.as(owner).put(path, { transport: 'uplink' })).status).toBe(201);
  return path;
}

/** A local server that is paired with `process` and greeted; it goes with the test. */
async function paired(process: TestApp, path: string, options: UplinkOptions = {}): Promise<UplinkClient> {
  const client = await pair(process, owner, path, options);
  clients.push(client);
  return client;
}

async function refusal(process: Pick<TestApp, 'url'>, path: string, options: UplinkOptions = {}) {
  const refused: unknown = await openTunnel(process, owner, path, options).then(
    () => null,
    (error: unknown) => error,
  );
  expect(refused).toBeInstanceOf(PairingRefused);
  return refused as PairingRefused;
}

const refusalOf = async (...[process, path, options]: Parameters<typeof refusal>): Promise<number> =>
  (await refusal(process, path, options)).status;

async function rowOf(path: string): Promise<string> {
  const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [
    path.split('/')[3],
  ]);
  return id;
}

/** A real process on the same database. */
function startProcess(): Program {
  const { env } = app;
  const keys = (env.encryptionKeys ?? []).map(({ id, secret }) => `${id}:${secret.toString('base64')}`);
  return runProgram(
    'main.js',
    {
      DATABASE_URL: env.databaseUrl ?? '',
      ENCRYPTION_KEYS: keys.join(),
      DATA_DIR: env.dataDir,
      QUEUE_PREFIX: env.queuePrefix,
      ROLES: 'api',
      LOG_LEVEL: 'warn',
      ...(env.redisUrl === null ? {} : { REDIS_URL: env.redisUrl }),
    },
    { tuning: { uplinkLeaseMs: LEASE_MS } },
  );
}

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

describe('a call in another process', () => {
  verifies('uplink:processes:call', 'reaches the local server, with progress', async () => {
    const path = await uplink();
    await paired(app, path, {
      answers: {
        'tools/call': ({ params }, client) => {
          const { progressToken } = params._meta;
          client.send({ method: 'notifications/progress', params: { progressToken, progress: params.arguments.n } });
          return text(`${params.arguments.n} é\n`);
        },
      },
    });
    expect((await other.as(owner).get(`${path}/.tools`)).body.tools).toHaveLength(1);
    const answers = await Promise.all(
      times(50, (n) => mcp(n % 2 ? app : other, owner, path, toolCall(1, 'echo', { n }, { progressToken: 'mine' }))),
    );
    answers.forEach((answer, n) => {
      expect(eventsOf(answer.text).map((event) => JSON.parse(event))).toEqual([
        { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'mine', progress: n } },
        { jsonrpc: '2.0', id: 1, result: text(`${n} é\n`) },
      ]);
    });
  });

  verifies('mcp:log-level', 'sets the log level of its client first', async () => {
    const path = await uplink();
    const options: UplinkOptions = {
      capabilities: { tools: {}, logging: {} },
      answers: { 'logging/setLevel': () => ({}) },
    };
    const client = await paired(app, path, options);
    const sent = ({ received }: UplinkClient) =>
      received.flatMap(({ method, params }) => (method === 'logging/setLevel' ? [params.level] : (params?.name ?? [])));
    const authorization = `Bearer ${owner.key}`;
    const call = (process: TestApp, session: Record<string, string>, name: string) =>
      ask(`${process.url}${path}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }, session);
    const sessions = [];
    for (const [process, level] of [
      [app, 'debug'],
      [other, 'error'],
    ] as const) {
      const url = `${process.url}${path}/mcp`;
      const session = await initialize(url, {}, '2025-11-25', authorization);
      await ask(url, { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level } }, session);
      for (const name of ['one', 'two']) expect((await call(process, session, name)).status).toBe(200);
      sessions.push(session);
    }
    await call(app, { authorization }, 'without a level');
    const [first = {}, second = {}] = sessions;
    await call(app, first, 'again');
    expect(sent(client)).toEqual([
      ...['debug', 'one', 'two', 'error', 'one', 'two', 'without a level'],
      ...['debug', 'again'],
    ]);
    await client.close();
    const next = await paired(app, path, { ...options, name: 'next' });
    await call(other, second, 'in the next tunnel');
    expect(sent(next)).toEqual(['error', 'in the next tunnel']);
  });

  verifies('uplink:processes:call', 'is cancelled there when its caller leaves', async () => {
    const path = await uplink();
    const client = await paired(app, path, { answers: { 'tools/call': () => null } });
    const leaving = new AbortController();
    const left = open(other, owner, `${path}/.tools/echo`, {}, { signal: leaving.signal }).catch(() => 'left');
    const [call] = await until(() => client.of('tools/call').length === 1 && client.of('tools/call'), 'it is called');
    leaving.abort();
    expect(await left).toBe('left');
    const [cancelled] = await until(
      () => client.of('notifications/cancelled').length === 1 && client.of('notifications/cancelled'),
      'it is cancelled',
    );
    expect(cancelled.params.requestId).toBe(call.id);
  });

  verifies('uplink:call:ends-with-tunnel', 'fails immediately when the tunnel closes', async () => {
    const path = await uplink();
    const client = await paired(app, path, { answers: { 'tools/call': () => null } });
    const called = send(other, owner, `${path}/.tools/echo`, {});
    await until(() => client.of('tools/call').length === 1, 'it is called');
    await client.close();
    const { status, body } = await called;
    expect([status, body.error]).toEqual([503, 'uplink_disconnected']);
    expect(body.message.match(/Whether the call was carried out is unknown/g)).toHaveLength(1);
    expect((await send(other, owner, `${path}/.tools/echo`, {})).body.message).toMatch(/^No local server is paired/);
  });

  verifies('uplink:processes:call', 'follows the tunnel from process to process', async () => {
    const path = await uplink();
    for (const [i, process] of [app, other, app, other].entries()) {
      await paired(process, path, { name: `local-${i}`, tools: [`tool-${i}`], force: true });
      for (const caller of [app, other]) {
        await until(async () => {
          const { status, body } = await caller.as(owner).get(`${path}/.tools`);
          return status === 200 && body.tools[0].name === `tool-${i}`;
        }, `the tools of the server ${i} are seen`);
      }
    }
  });
});

describe('pairing in another process', () => {
  verifies('uplink:processes:force', 'is a conflict', async () => {
    const path = await uplink();
    await paired(app, path);
    expect(await refusalOf(other, path)).toBe(409);
    expect((await other.as(owner).get(`${path}/uplink`)).status).toBe(200);
  });

  verifies('uplink:processes:force', 'with force closes the tunnel here', async () => {
    const path = await uplink();
    const first = await paired(app, path, { name: 'first' });
    const second = await paired(other, path, { name: 'second', force: true });
    expect(await first.closed).toEqual({ code: 1001, reason: 'replaced' });
    expect((await send(app, owner, `${path}/.tools/echo`, { a: 1 })).body).toEqual(text('{"a":1}'));
    expect(second.of('tools/call')).toHaveLength(1);
    expect((await app.as(owner).get(path)).body.status.state).toBe('connected');
  });

  verifies('uplink:pair:again', 'succeeds right after the close, in any process', async () => {
    const path = await uplink();
    for (const i of times(40, (n) => n)) {
      const client = await openTunnel(i % 4 < 2 ? app : other, owner, path);
      if (i % 2) client.socket.terminate();
      else await client.close();
    }
    await untilState(app, owner, path, 'disconnected');
  });

  verifies('uplink:deleted', 'closes when its connection is deleted in another process', async () => {
    const path = await uplink();
    const client = await paired(other, path);
    expect((await app.as(owner).delete(path)).status).toBe(200);
    expect(await client.closed).toEqual({ code: 1001, reason: 'deleted' });
    expect(await refusalOf(other, path, { force: true })).toBe(404);
  });
});

describe('a suspended', () => {
  /** Why a tunnel was closed. */
  async function closeOf({ closed }: UplinkClient) {
    let close: Awaited<UplinkClient['closed']> | undefined;
    void closed.then((value) => (close = value));
    await until(() => close !== undefined, 'the tunnel closes', END_MS_MAX);
    return close;
  }

  /** Where each is suspended. */
  const suspensions = {
    connection: (path: string) => `${path}/suspension`,
    namespace: (path: string) => `/namespaces/${path.split('/')[2]}/suspension`,
  };
  for (const [kind, at] of Object.entries(suspensions)) {
    verifies(
      'uplink:suspended',
      `${kind} closes its tunnels in every process, and opens none until reinstated`,
      async () => {
        const space = await createNamespace(app, owner);
        const set = (path: string, reason: string | null) => app.as(app.operator).put(at(path), { reason }).expect(200);
        const paths = [await uplink(space), await uplink(space)] as const;
        const tunnels = [await paired(app, paths[0]), await paired(other, paths[1])];
        for (const path of paths) await set(path, 'It sends mails.');
        for (const tunnel of tunnels)
          expect(await closeOf(tunnel)).toEqual({ code: 1008, reason: 'suspended by the operator' });
        for (const process of [app, other]) {
          for (const force of [false, true]) {
            const { status, body } = await refusal(process, paths[0], { force });
            const message = `Forbidden: the operator suspended this ${kind}: It sends mails.`;
            expect([status, body]).toEqual([403, expect.objectContaining({ error: 'suspended', message })]);
          }
        }
        for (const path of paths) await set(path, null);
        await paired(other, paths[0], { name: 'again' });
        expect((await send(app, owner, `${paths[0]}/.tools/echo`, { a: 1 })).body).toEqual(text('{"a":1}'));
      },
    );
  }

  verifies('uplink:suspended', 'connection closes its tunnel although the message about it is lost', async () => {
    const path = await uplink();
    const tunnel = await paired(other, path);
    await app.database.query(`UPDATE connections SET suspended = '{"reason":"spec","by":"","at":""}' WHERE id = $1`, [
      await rowOf(path),
    ]);
    expect(await closeOf(tunnel)).toEqual({ code: 1008, reason: 'suspended by the operator' });
  });

  verifies('uplink:suspended', 'account closes its tunnels, and opens none until it is enabled', async () => {
    const account = await app.account();
    const path = `/connect/${await createNamespace(app, account)}/${uniqueName('up')}`;
    await app.as(account).put(path, { transport: 'uplink' }).expect(201);
    const tunnel = await pair(other, account, path);
    clients.push(tunnel);
    const disable = (disabled: boolean) =>
      app.as(app.operator).patch(`/accounts/${account.id}`, { disabled }).expect(200);
    await disable(true);
    expect(await closeOf(tunnel)).toMatchObject({ code: 1008 });
    await expect(openTunnel(app, account, path)).rejects.toMatchObject({ status: 401 });
    await disable(false);
    clients.push(await pair(app, account, path));
  });
});

describe('a process that is killed', () => {
  longVerifies(
    'uplink:processes:killed',
    'leaves its uplinks disconnected, and free for others',
    async () => {
      const path = await uplink();
      const process = startProcess();
      const url = await process.url();
      const client = await openTunnel({ url }, owner, path, { answers: { 'tools/call': () => null } });
      clients.push(client);
      await untilState(app, owner, path, 'connected');
      const called = send(app, owner, `${path}/.tools/echo`, {});
      await until(() => client.of('tools/call').length === 1, 'it is called');
      process.kill('SIGKILL');
      await process.ended;
      const { status, body } = await called;
      expect([status, body.error]).toEqual([503, 'uplink_disconnected']);
      expect((await send(app, owner, `${path}/.tools/echo`, {})).status).toBe(503);
      const { message } = await untilState(app, owner, path, 'disconnected');
      expect(message).toBe('No local server is paired.');
      expect((await app.as(owner).get(path)).body).not.toHaveProperty('serverInfo');
      await paired(app, path, { name: 'next' });
      expect((await send(other, owner, `${path}/.tools/echo`, {})).status).toBe(200);
    },
    SLOW_MS,
  );

  longVerifies(
    'uplink:restart',
    'in order closes its tunnels with `restarting`, and local servers can pair again',
    async () => {
      const path = await uplink();
      const process = startProcess();
      const client = await openTunnel({ url: await process.url() }, owner, path);
      clients.push(client);
      await untilState(app, owner, path, 'connected');
      process.kill('SIGTERM');
      expect(await client.closed).toEqual({ code: 1001, reason: 'restarting' });
      await paired(app, path, { name: 'again' });
      expect(await process.ended).toBe(0);
      const [{ count }] = await app.database.query('SELECT count(*)::int AS count FROM processes WHERE address = $1', [
        await process.url(),
      ]);
      expect(count).toBe(0);
    },
    SLOW_MS,
  );
});

describe('signs of life', () => {
  verifies('uplink:ping', 'keep a local server that is quiet, and one that is silent is dropped', async () => {
    const [quiet, silent] = await Promise.all([uplink(), uplink()]);
    const [alive, dead] = [await paired(app, quiet), await paired(app, silent)];
    let pings = 0;
    alive.socket.on('ping', () => (pings += 1));
    dead.socket.pause();
    await untilState(app, owner, silent, 'disconnected');
    dead.socket.resume();
    expect((await dead.closed).code).toBe(1006);
    await until(() => pings >= 4, 'the other one is asked on');
    expect(alive.socket.readyState).toBe(alive.socket.OPEN);
  });

  verifies('uplink:key-revoked', 'end with the key', async () => {
    const path = await uplink();
    const created = await app.as(owner).post('/accounts/me/api-keys', { name: 'for the uplink' });
    expect(created.status).toBe(201);
    const client = await openTunnel(app, { ...owner, key: created.body.key }, path);
    clients.push(client);
    await untilState(app, owner, path, 'connected');
    expect((await app.as(owner).delete(`/accounts/me/api-keys/${created.body.id}`)).status).toBe(200);
    expect(await client.closed).toEqual({ code: 1008, reason: expect.stringMatching(/key was revoked/) });
  });
});

describe('the route between processes', () => {
  verifies('uplink:processes:secret', 'returns 404 without the secret', async () => {
    const path = await uplink();
    const client = await paired(app, path);
    const id = await rowOf(path);
    const [{ tunnel }] = await app.database.query('SELECT tunnel FROM uplink_tunnels WHERE connection_id = $1', [id]);
    const at = `/internal/uplink/${id}/${tunnel}`;
    const sha256 = createHash('sha256').update('').digest('base64url');
    const request = { kind: 'request', method: 'tools/list', timeoutMs: 5_000, hasParams: false, profileKey: null };
    const head = JSON.stringify({ head: request, body: { sha256 } });
    const post = async (
      header: string | null,
      {
        sent = head,
        body = '',
        account,
        to = at,
      }: { sent?: string; body?: string; account?: TestAccount; to?: string } = {},
    ) => {
      const headers = {
        'content-type': 'application/octet-stream',
        ...(header === null ? {} : { [INTERNAL_HEADER]: header }),
      };
      const response = await fetch(`${app.url}${to}`, {
        method: 'POST',
        headers: { ...headers, ...(account ? { authorization: `Bearer ${account.key}` } : {}) },
        body: Buffer.concat([textFrame('head', sent), Buffer.from(body)]),
      });
      return { status: response.status, text: await response.text() };
    };
    const signatures = other.get(InternalSignatures);
    const good = signatures.sign(app.url, at, head);
    expect((await post(good)).text).toMatch(/"type":"reply"/);
    for (const refused of [
      await post(good),
      await post(null),
      await post(null, { account: owner }),
      await post('x.y.z.w', { account: app.operator }),
      await post(signatures.sign(app.url, '/internal/uplink', head)),
      await post(signatures.sign(app.url, at, head), { sent: `${head} ` }),
      await post(signatures.sign(app.url, at, head), { body: ' ' }),
    ]) {
      expect(refused.status).toBe(404);
      expect(JSON.parse(refused.text)).toEqual({ error: expect.stringMatching(/^Nothing answers POST/) });
    }
    const moved = await post(signatures.sign(app.url, `${at}1`, head), { to: `${at}1` });
    expect(moved.text).toContain('"TunnelMovedError"');
    expect(client.of('tools/list')).toHaveLength(1);
    expect(JSON.stringify((await app.as().get('/openapi.json')).body)).not.toContain('/internal/');
    expect((await app.as(owner).put('/namespaces/internal')).status).toBe(400);
  });
});

describe('listening', () => {
  verifies('uplink:listen', 'works in every process, with one subscription for each resource', async () => {
    const path = await uplink();
    const client = await paired(app, path, {
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
      answers: {
        'resources/subscribe': ({ params }) => (params.uri === 'a:bad' ? new Error('no such resource') : {}),
        'resources/unsubscribe': () => ({}),
      },
    });
    const id = await rowOf(path);
    const hear = async (process: TestApp, filter: ListenFilter) => {
      const heard: string[] = [];
      const listener: UpstreamListener = {
        onNotification: (message) => heard.push(JSON.parse(message).method),
        onEnd: () => heard.push('end'),
      };
      return {
        heard,
        ...(await process.get(UplinkChannels).channelTo({ id }).listen(filter, listener, { timeoutMs: 20_000 })),
      };
    };
    const filter = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['a:1', 'a:bad'] };
    const [here, there] = [await hear(app, filter), await hear(other, filter)];
    const third = await hear(other, { resourceSubscriptions: ['a:2'] });
    for (const { honoured } of [here, there]) {
      expect(honoured).toEqual({ toolsListChanged: true, resourceSubscriptions: ['a:1'] });
    }
    client.send({ method: 'notifications/tools/list_changed' });
    client.send({ method: 'notifications/prompts/list_changed' });
    client.send({ method: 'notifications/resources/updated', params: { uri: 'a:1' } });
    const both = ['notifications/tools/list_changed', 'notifications/resources/updated'];
    for (const { heard } of [here, there]) await until(() => heard.length === 2, 'both are heard');
    expect([here.heard, there.heard, third.heard]).toEqual([both, both, []]);
    await here.close();
    await third.close();
    await until(() => client.of('resources/unsubscribe').length === 1, 'a resource nobody follows is given up');
    expect(client.of('resources/unsubscribe')[0].params).toEqual({ uri: 'a:2' });
    expect(
      client
        .of('resources/subscribe')
        .map(({ params }) => params.uri)
        // Tried again with every change.
        .filter((uri) => uri !== 'a:bad')
        .sort(),
    ).toEqual(['a:1', 'a:2']);
    client.send({ method: 'notifications/resources/updated', params: { uri: 'a:1' } });
    await until(() => there.heard.length === 3, 'who stays hears on');
    expect(here.heard).toEqual(both);
    await client.close();
    await until(() => there.heard.at(-1) === 'end', 'the end is told');
    expect(here.heard).toEqual(both);
  });
});

describe('a question of the local server', () => {
  const question = '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message": "?"}}';

  /** Calls through the tunnel, of callers who can be asked unless they have no name. */
  async function callers(process: TestApp, names: (string | null)[], timeoutMs = 60_000) {
    const path = await uplink();
    const client = await paired(app, path, { answers: { 'tools/call': () => null } });
    const channel = process.get(UplinkChannels).channelTo({ id: await rowOf(path) });
    const asked: [string, string | undefined][] = [];
    let answer: (text: string) => void = () => undefined;
    const said = new Promise<string>((resolve) => (answer = resolve));
    const leaving = new Cancellation();
    const calls: Promise<unknown>[] = [];
    for (const [i, name] of names.entries()) {
      const onRequest: McpCall['onRequest'] = async (method, params) => {
        asked.push([`${name} ${method}`, params]);
        return { result: await said };
      };
      const asking = name === null ? {} : { profile: { key: name, capabilities: { elicitation: {} } }, onRequest };
      const params = JSON.stringify({ name: String(i) });
      calls.push(channel.request({ method: 'tools/call', params, timeoutMs, cancellation: leaving, ...asking }));
      await until(() => client.of('tools/call').length === i + 1, 'it is called');
    }
    const end = async () => {
      for (const { id } of client.of('tools/call')) client.send({ id, result: {} });
      await Promise.all(calls);
    };
    const answered = () => until(() => client.received.find(({ id }) => id === 'q'), 'the question is answered');
    return { client, asked, answer, answered, leaving, calls, end };
  }

  for (const where of ['this', 'another']) {
    const processOf = () => (where === 'this' ? app : other);

    verifies('uplink:server-requests:asked', `reaches the caller who can be asked, in ${where} process`, async () => {
      const { client, asked, answer, answered, end } = await callers(processOf(), ['one', 'one']);
      client.send(question);
      await until(() => asked.length === 1, 'it is asked');
      answer('{"action": "accept"}');
      expect(await answered()).toEqual({ jsonrpc: '2.0', id: 'q', result: { action: 'accept' } });
      expect(asked).toEqual([['one elicitation/create', '{"message": "?"}']]);
      await end();
    });

    verifies('uplink:server-requests:asked', `reaches nobody of several, in ${where} process`, async () => {
      for (const names of [
        ['one', 'two'],
        ['one', null],
      ]) {
        const { client, asked, answered, end } = await callers(processOf(), names);
        client.send(question);
        const message: unknown = expect.stringMatching(/not clear who/);
        expect((await answered()).error).toMatchObject({ code: -32601, message });
        expect(asked).toEqual([]);
        await end();
      }
    });

    verifies('uplink:server-requests:asked', `ends with its caller, in ${where} process`, async () => {
      const { client, asked, leaving, calls } = await callers(processOf(), ['one']);
      client.send(question);
      await until(() => asked.length === 1, 'it is asked');
      leaving.cancel();
      await expect(Promise.all(calls)).rejects.toThrow('The caller disconnected');
      await until(() => client.of('notifications/cancelled').length === 1, 'the local server hears that nobody waits');
    });
  }

  longVerifies(
    ['uplink:server-requests:asked', 'mcp:parked'],
    'reaches clients of every era at any process',
    async () => {
      const path = await uplink();
      const asking = (client: UplinkClient, id: unknown) => {
        client.send({ id: 'q', method: 'elicitation/create', params: { message: 'Who?' } });
        void until(() => client.received.find((message) => message.id === 'q'), 'it is answered').then(({ result }) => {
          client.received.splice(0);
          client.send({ id, result: text(`Hello ${result.content.name}`) });
        });
        return null;
      };
      await paired(app, path, { answers: { 'tools/call': ({ id }, client) => asking(client, id) } });
      const capabilities = { elicitation: {} };
      const accepted = { action: 'accept', content: { name: 'Nina' } };
      const authorization = `Bearer ${owner.key}`;
      for (const process of [app, other]) {
        const url = `${process.url}${path}/mcp`;
        const session = await initialize(url, capabilities, '2025-11-25', authorization);
        const stream = messagesOf(await post(url, toolCall(1, 'echo', {}), session));
        const { id } = (await stream.next()).value;
        expect((await ask(url, { jsonrpc: '2.0', id, result: accepted }, session)).status).toBe(202);
        expect((await stream.next()).value.result).toEqual(text('Hello Nina'));
        const modernCall = async (at: string, given: object = {}) => {
          const { body, headers } = modern('tools/call', { name: 'echo', ...given }, { capabilities });
          return (await ask(at, body, { ...headers, authorization })).body.result;
        };
        const { requestState } = await modernCall(url);
        const elsewhere = `${(process === app ? other : app).url}${path}/mcp`;
        const back = { requestState, inputResponses: { 'question-1': accepted } };
        expect(await modernCall(elsewhere, back)).toMatchObject(text('Hello Nina'));
      }
    },
  );
});

describe('a process that loses its lease and lives', () => {
  verifies('uplink:processes:call', 'keeps its tunnels, and claims none with its earlier epoch', async () => {
    const path = await uplink();
    const client = await paired(app, path);
    const registry = app.get(ProcessRegistry);
    const { id, epoch } = registry;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + LEASE_MS);
    expect(registry.epoch).toBeNull();
    clock.mockRestore();
    await registry.beatNow();
    expect(BigInt(registry.epoch ?? 0)).toBeGreaterThan(BigInt(epoch ?? 0));
    expect((await send(other, owner, `${path}/.tools/echo`, { a: 1 })).body).toEqual(text('{"a":1}'));
    expect(client.socket.readyState).toBe(client.socket.OPEN);
    const stale = await app.get(UplinkTunnelsRepository).claim(await rowOf(path), { id, epoch: epoch ?? '' }, true, []);
    expect(stale).toEqual({ isCurrent: false, tunnel: null });
  });
});

describe('a tunnel that cannot be released', () => {
  verifies('uplink:processes:call', 'is released when the database accepts writes', async () => {
    const path = await uplink();
    const client = await paired(app, path);
    await app.database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'not now'; END $$`);
    await app.database.query(
      'CREATE TRIGGER refuse BEFORE DELETE ON uplink_tunnels FOR EACH ROW EXECUTE FUNCTION refuse()',
    );
    try {
      await client.close();
      await until(async () => (await send(app, owner, `${path}/.tools/echo`, {})).status === 503, 'it is gone');
      expect(await refusalOf(other, path)).toBe(409);
    } finally {
      await app.database.query('DROP FUNCTION refuse CASCADE');
    }
    await untilState(app, owner, path, 'disconnected');
    await paired(other, path);
  });
});
