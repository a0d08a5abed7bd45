// Also run with the queue on Redis by test:long: messages between processes.
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeAll, describe, expect } from '@jest/globals';
import { OpenRequests } from '../../../src/platform/http/open-requests.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { eventsOf, mcp, open, request, send, times, toolCall, type Answer } from '../../support/mcp/calls.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import {
  openTunnel,
  pair,
  PairingRefused,
  untilState,
  type UplinkClient,
  type Message,
  type UplinkOptions,
} from '../../support/mcp/uplink-client.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let namespace: string;
const clients: UplinkClient[] = [];

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
});
afterEach(() => {
  for (const { socket } of clients.splice(0)) socket.terminate();
});

/** A new uplink connection. */
async function uplink(inside = namespace, process = app, account = owner): Promise<string> {
  const path = `/connect/${inside}/${uniqueName('up')}`;
  const { status } = await process.as(account).put(path, { transport: 'uplink' });
  expect(status).toBe(201);
  return path;
}

/** A local server that is paired and greeted; it goes with the test. */
async function paired(
  path: string,
  options: UplinkOptions = {},
  process = app,
  account = owner,
): Promise<UplinkClient> {
  const client = await pair(process, account, path, options);
  clients.push(client);
  return client;
}

/** A tunnel that is opened, whatever becomes of it; it goes with the test. */
async function opened(path: string, options: UplinkOptions = {}): Promise<UplinkClient> {
  const client = await openTunnel(app, owner, path, options);
  clients.push(client);
  return client;
}

/** How a handshake is refused. */
async function refusalOf(account: TestAccount | undefined, path: string, options: UplinkOptions = {}) {
  const refused = await openTunnel(app, account, path, options).then(
    () => null,
    (error: unknown) => error,
  );
  expect(refused).toBeInstanceOf(PairingRefused);
  const { status, reason, body } = refused as PairingRefused;
  return { status, reason, body };
}

const notFound = {
  status: 404,
  reason: 'Not Found',
  body: expect.objectContaining({ error: 'not_found', message: 'Resource not found' }),
};

/** An answer that is given when the test says so. */
function gate(): { held: Promise<void>; release: () => void } {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  return { held, release };
}

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

describe('a new uplink', () => {
  verifies(
    [
      'connection:create:uplink',
      'connection:field:mcp-url-uplink',
      'connection:field:transport-uplink',
      'uplink:status:waiting',
    ],
    'waits for its local server and describes the pairing',
    async () => {
      const { status, body } = await app.as(owner).post(`/connect/${namespace}`, { transport: 'uplink' });
      expect(status).toBe(201);
      expect(body).toMatchObject({ mcpUrl: null, transport: 'uplink', metadata: {} });
      expect(body.status).toMatchObject({ state: 'disconnected', reason: 'uplink_waiting' });
      expect(body.status.nextStep).toMatch(
        `SMITHERY_UPLINK_BASE_URL=${app.env.baseUrl} SMITHERY_URL=${app.env.baseUrl} smithery mcp add --id`,
      );
      expect(body).not.toHaveProperty('serverInfo');
      const found = await app.as(owner).get(`/connect/${namespace}/${body.connectionId}`);
      expect(found.body).toEqual(body);
    },
  );

  verifies('connection:create:uplink-target', 'takes neither target nor headers', async () => {
    for (const more of [{ mcpUrl: 'http://127.0.0.1:1/' }, { server: 'acme/weather' }, { headers: { a: 'b' } }]) {
      const { status, body } = await app.as(owner).post(`/connect/${namespace}`, { transport: 'uplink', ...more });
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'validation_error' });
    }
    const path = await uplink();
    expect((await app.as(owner).put(path, { mcpUrl: 'http://127.0.0.1:1/' })).status).toBe(409);
    expect((await app.as(owner).put(path, { transport: 'http' })).status).toBe(409);
    expect((await app.as(owner).put(path, { transport: 'uplink', name: 'mine' })).body).toMatchObject({ name: 'mine' });
  });

  verifies('uplink:call:disconnected', 'rejects calls immediately', async () => {
    const path = await uplink();
    for (const answer of [
      await send(app, owner, `${path}/.tools/echo`, {}),
      await send(app, owner, `${path}/.tools`, undefined, { method: 'GET' }),
    ]) {
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({
        error: 'uplink_disconnected',
        message: expect.stringMatching(/have the command that pairs one/),
      });
      expect(answer.headers.get('x-should-retry')).toBe('false');
    }
    const { status, body } = await mcp(app, owner, path, toolCall(1, 'echo'));
    expect(status).toBe(200);
    expect(body.error).toMatchObject({ code: -33002, message: expect.stringMatching(/^No local server is paired/) });
  });
});

describe('pairing', () => {
  verifies(
    ['uplink:pair:paths', 'uplink:status:connected', 'connection:state:uplink', 'connection:target:uplink'],
    'works at every path, and the status follows the tunnel',
    async () => {
      const path = await uplink();
      const short = path.replace('/connect', '');
      for (const [i, at] of [path, short, `${path}/uplink`, `${short}/uplink`].entries()) {
        const client = await paired(path, { path: at, name: `local-${i}` });
        const { body } = await app.as(owner).get(path);
        expect(body.status).toMatchObject({ state: 'connected', reason: 'ok' });
        expect(body.serverInfo).toMatchObject({ name: `local-${i}`, version: '1.0.0' });
        const called = await send(app, owner, `${path}/.tools/echo`, { at });
        expect(called.body).toEqual(text(JSON.stringify({ at })));
        await client.close();
        await untilState(app, owner, path, 'disconnected');
        expect((await app.as(owner).get(path)).body).not.toHaveProperty('serverInfo');
      }
    },
  );

  verifies('uplink:pair:unauthorized', 'needs a valid key', async () => {
    const path = await uplink();
    const key = (authorization: string) => ({ headers: { authorization } });
    for (const [account, options] of [
      [undefined, {}],
      [undefined, key('Bearer ')],
      [undefined, key('Bearer slipway_wrong')],
      [undefined, key('Basic x')],
    ] as const) {
      const { status, reason, body } = await refusalOf(account, path, options);
      expect({ status, reason, error: body.error }).toEqual({
        status: 401,
        reason: 'Unauthorized',
        error: 'unauthorized',
      });
    }
  });

  verifies('uplink:pair:not-found', 'finds only uplinks of its owner', async () => {
    const path = await uplink();
    const stranger = await app.account();
    const own = await createNamespace(app, stranger);
    const http = await createConnection(app, owner, { mcpUrl: 'http://127.0.0.1:1/mcp' }, { namespace });
    expect(await refusalOf(stranger, path)).toEqual(notFound);
    expect(await refusalOf(stranger, path, { force: true })).toEqual(notFound);
    for (const missing of [
      `/connect/${namespace}/none`,
      http.path,
      `${path}/deeper`,
      `${path}/uplink/deeper`,
      `${path}%2Fdeeper`,
      `/connect/${namespace}/%E0%A4%A`,
      `/connect/${uniqueName('ns')}/none`,
      `/connect/${own}/none`,
      `/connect/${namespace}`,
      '/health',
      '/internal/uplink/a/1',
    ]) {
      expect(await refusalOf(owner, missing)).toEqual(notFound);
    }
  });

  verifies('uplink:pair:conflict', 'refuses a second local server', async () => {
    const path = await uplink();
    const first = await paired(path);
    const refused = await refusalOf(owner, path);
    expect(refused).toMatchObject({ status: 409, reason: 'Conflict', body: { error: 'conflict' } });
    expect((await send(app, owner, `${path}/.tools/echo`, { a: 1 })).body).toEqual(text('{"a":1}'));
    expect(first.of('tools/call')).toHaveLength(1);
  });

  verifies('uplink:pair:conflict', 'leaves nothing of a rejected handshake among the open requests', async () => {
    const path = await uplink();
    await paired(path);
    const count = () => app.get(OpenRequests).list().length;
    const before = count();
    for (let attempt = 0; attempt < 3; attempt += 1) await refusalOf(owner, path);
    await until(() => count() === before, 'the rejected handshakes are forgotten');
  });

  verifies(
    ['uplink:pair:force', 'uplink:status:current-only', 'uplink:status:tools-forgotten'],
    'with force replaces the previous one, which no longer changes anything',
    async () => {
      const path = await uplink();
      let last = await paired(path, { name: 'local-0', tools: ['tool-0'] });
      for (const i of [1, 2, 3, 4, 5]) {
        const before = last;
        await app.as(owner).get(`${path}/.tools`);
        last = await paired(path, { force: true, name: `local-${i}`, tools: [`tool-${i}`] });
        expect(await before.closed).toEqual({ code: 1001, reason: 'replaced' });
        const { body } = await app.as(owner).get(`${path}/.tools`);
        expect(body.tools).toEqual([{ name: `tool-${i}`, inputSchema: { type: 'object' } }]);
      }
      expect((await app.as(owner).get(path)).body.status.state).toBe('connected');
      const [{ count }] = await app.database.query(
        'SELECT count(*)::int AS count FROM uplink_tunnels t JOIN connections c ON c.id = t.connection_id WHERE c.connection_id = $1',
        [path.split('/')[3]],
      );
      expect(count).toBe(1);
    },
  );

  verifies('uplink:pair:force', 'leaves exactly one of many concurrent local servers', async () => {
    const path = await uplink();
    const all = await Promise.all(
      times(10, (i) =>
        openTunnel(app, owner, path, { force: true, name: `local-${i}` }).catch((error: unknown) => {
          expect((error as PairingRefused).status).toBe(409);
          return null;
        }),
      ),
    );
    const there = all.filter((client) => client !== null);
    clients.push(...there);
    await until(
      () => there.filter(({ socket }) => socket.readyState === socket.OPEN).length === 1,
      'one of them is left',
    );
    const [left] = there.filter(({ socket }) => socket.readyState === socket.OPEN);
    await untilState(app, owner, path, 'connected');
    expect((await send(app, owner, `${path}/.tools/echo`, {})).status).toBe(200);
    expect(left?.of('tools/call')).toHaveLength(1);
  });

  verifies('uplink:pair:again', 'works five times in a row after sockets that broke', async () => {
    const path = await uplink();
    for (const i of times(5, (n) => n)) {
      const client = await paired(path, { name: `local-${i}`, force: i > 0 });
      expect((await send(app, owner, `${path}/.tools/echo`, { i })).body).toEqual(text(JSON.stringify({ i })));
      client.socket.terminate();
    }
    await untilState(app, owner, path, 'disconnected');
  });

  verifies('uplink:pair:preflight', 'is announced to older clients', async () => {
    const path = await uplink();
    const free = await app.as(owner).get(`${path}/uplink`);
    expect([free.status, free.body.error]).toEqual([503, 'uplink_disconnected']);
    await paired(path);
    expect((await app.as(owner).get(`${path.replace('/connect', '')}/uplink`)).status).toBe(200);
    expect((await app.as(owner).get(`/connect/${namespace}/none/uplink`)).body).toEqual(notFound.body);
    expect((await app.as(await app.account()).get(`${path}/uplink`)).body).toEqual(notFound.body);
    expect((await app.as().get(`${path}/uplink`)).status).toBe(401);
  });

  verifies('uplink:pair:bad-handshake', 'refuses what is no handshake', async () => {
    const path = await uplink();
    const asked = async (method: string, headers: Record<string, string>) => {
      const base = { connection: 'upgrade', upgrade: 'websocket', authorization: `Bearer ${owner.key}` };
      const sent = httpRequest(`${app.url}${path}`, { method, headers: { ...base, ...headers } }).end();
      const [answer] = (await once(sent, 'response')) as [{ statusCode: number; resume(): void }];
      answer.resume();
      return answer.statusCode;
    };
    const key = 'dGhlIHNhbXBsZSBub25jZQ==';
    expect(await asked('GET', {})).toBe(400);
    expect(await asked('GET', { 'sec-websocket-key': 'short', 'sec-websocket-version': '13' })).toBe(400);
    expect(await asked('GET', { 'sec-websocket-key': key, 'sec-websocket-version': '12' })).toBe(400);
    expect(await asked('POST', { 'sec-websocket-key': key, 'sec-websocket-version': '13' })).toBe(400);
    await paired(path);
  });

  verifies('uplink:pair:bad-handshake', 'leaves requests alone that offer HTTP/2', async () => {
    const body = JSON.stringify(request(1, 'ping'));
    const path = await uplink();
    const socket = connect(app.env.port, '127.0.0.1');
    let answered = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (answered += chunk));
    socket.write(
      `POST ${path}/mcp HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n` +
        `HTTP2-Settings: AAMAAABkAAQAAP__\r\nAuthorization: Bearer ${owner.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    socket.write(body.slice(10));
    await until(() => answered.includes('"result":{}'), 'the first request is answered');
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
    await until(() => answered.includes('"status":"ok"'), 'the second one is answered on the same socket');
    expect(answered.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
    socket.destroy();
  });
});

describe('calls through a tunnel', () => {
  verifies('uplink:call:ids', 'do not cross for 50 callers with the same id and progress token', async () => {
    const path = await uplink();
    const received: Message[] = [];
    await paired(path, {
      answers: {
        'tools/call': (message, client) => {
          if (received.push(message) < 50) return null;
          // The last call first, so that the order of the answers does not say whose they are.
          for (const { id, params } of received.reverse()) {
            const { progressToken } = params._meta;
            client.send({ method: 'notifications/progress', params: { progressToken, progress: params.arguments.n } });
            client.send({ id, result: text(String(params.arguments.n)) });
          }
          return null;
        },
      },
    });
    const answers = await Promise.all(
      times(50, (n) => mcp(app, owner, path, toolCall(1, 'echo', { n }, { progressToken: 'mine' }))),
    );
    answers.forEach((answer, n) => {
      const messages = eventsOf(answer.text).map((event) => JSON.parse(event));
      expect(messages).toEqual([
        { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'mine', progress: n } },
        { jsonrpc: '2.0', id: 1, result: text(String(n)) },
      ]);
    });
  });

  verifies('uplink:call:ids', 'passes answers byte for byte', async () => {
    const path = await uplink();
    const odd = '{"z": 1,"a":12345678901234567890, "content":[],"x":"\\u00e9"}';
    await paired(path, {
      answers: {
        'tools/call': ({ id }, client) => {
          client.send(`{"id": ${id} ,"result":${odd},"jsonrpc":"2.0"}`);
          return null;
        },
      },
    });
    expect((await send(app, owner, `${path}/.tools/echo`, {})).text).toBe(odd);
    expect((await mcp(app, owner, path, toolCall('ä', 'echo'))).text).toBe(
      `{"id": "ä" ,"result":${odd},"jsonrpc":"2.0"}`,
    );
  });

  verifies('uplink:call:handshake-once', 'initializes the local server once', async () => {
    const path = await uplink();
    const client = await paired(path);
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
    const answers = await Promise.all(times(5, () => mcp(app, owner, path, request(1, 'initialize', params))));
    for (const { body } of answers) expect(body.result.serverInfo.name).toBe('local');
    expect(client.of('initialize')).toHaveLength(1);
    expect(client.received.slice(0, 2).map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
    ]);
  });

  verifies(
    'uplink:server-requests:asked',
    'can ask clients: elicitation, sampling and roots are declared',
    async () => {
      const client = await paired(await uplink());
      expect(client.of('initialize')[0].params.capabilities).toEqual({
        elicitation: { form: {}, url: {} },
        sampling: {},
        roots: {},
      });
    },
  );

  verifies('channel:cancel', 'are cancelled at the local server when their caller leaves', async () => {
    const path = await uplink();
    const client = await paired(path, { answers: { 'tools/call': () => null } });
    const leaving = new AbortController();
    const left = open(app, owner, `${path}/.tools/echo`, {}, { signal: leaving.signal }).catch(() => 'left');
    const [call] = await until(() => client.of('tools/call').length === 1 && client.of('tools/call'), 'it is called');
    leaving.abort();
    expect(await left).toBe('left');
    const [cancelled] = await until(
      () => client.of('notifications/cancelled').length === 1 && client.of('notifications/cancelled'),
      'it is cancelled',
    );
    expect(cancelled.params.requestId).toBe(call.id);
    // A late answer is nobody's.
    client.send({ id: call.id, result: text('late') });
    expect((await app.as(owner).get(`${path}/.tools`)).status).toBe(200);
  });

  verifies('uplink:call:ends-with-tunnel', 'fail immediately when it closes', async () => {
    const path = await uplink();
    const client = await paired(path, { answers: { 'tools/call': () => null } });
    const called = send(app, owner, `${path}/.tools/echo`, {});
    await until(() => client.of('tools/call').length === 1, 'it is called');
    client.socket.terminate();
    const { status, body, headers } = await called;
    expect([status, body.error, headers.get('x-should-retry')]).toEqual([503, 'uplink_disconnected', 'false']);
    expect(body.message).toMatch(/closed before the response arrived.*Whether the call was carried out is unknown/);
  });

  verifies('uplink:call:in-flight', 'are limited to 256 concurrently', async () => {
    const path = await uplink();
    const { held, release } = gate();
    const client = await paired(path, { answers: { 'tools/call': () => held.then(() => text('done')) } });
    const running = times(256, () => send(app, owner, `${path}/.tools/echo`, {}));
    await until(() => client.of('tools/call').length === 256, '256 calls run');
    const refused = await send(app, owner, `${path}/.tools/echo`, {});
    expect([refused.status, refused.body.error]).toEqual([429, 'rate_limited']);
    release();
    for (const answer of await Promise.all(running)) expect(answer.status).toBe(200);
    expect(client.of('tools/call')).toHaveLength(256);
    expect((await send(app, owner, `${path}/.tools/echo`, {})).status).toBe(200);
  });

  verifies('uplink:call:in-flight', 'are refused while sent messages are unread', async () => {
    const path = await uplink();
    const client = await paired(path);
    client.socket.pause();
    const big = { text: 'x'.repeat(5_000_000) };
    const answers: Answer[] = [];
    const running: Promise<unknown>[] = [];
    // The sockets' own buffers take some of it, so the first ones may still be sent.
    const refused = await until(() => {
      const found = answers.find(({ status }) => status === 429);
      if (!found && running.length < 20) {
        running.push(send(app, owner, `${path}/.tools/echo`, big).then((answer) => answers.push(answer)));
      }
      return found;
    }, 'a call is refused');
    expect(refused.body).toMatchObject({ error: 'rate_limited', message: expect.stringMatching(/does not read/) });
    expect((await app.as(owner).get(path)).body.status.state).toBe('connected');
    client.socket.resume();
    await Promise.all(running);
    expect(answers.map(({ status }) => status)).toContain(200);
    expect(client.of('tools/call')).toHaveLength(answers.filter(({ status }) => status === 200).length);
    expect((await send(app, owner, `${path}/.tools/echo`, {})).status).toBe(200);
  });
});

describe('frames of a local server', () => {
  verifies(
    ['uplink:frames:not-json', 'uplink:frames:not-one-message'],
    'are ignored without a message, and batches are read',
    async () => {
      const path = await uplink();
      const asked: unknown[] = [];
      const client = await paired(path, {
        answers: {
          'tools/call': ({ id }, peer) => {
            for (const frame of ['{"jsonrpc"', Buffer.from([0xff, 0xfe]), '', '"text"', 'null', '[]', '[[]]', '7'])
              peer.send(frame);
            for (const odd of ['{"type":"ping"}', '[1,"a",null]', '\uFEFF', '[{"jsonrpc":"2.0","method":"a"}'])
              peer.send(odd);
            const answer = { jsonrpc: '2.0', id, result: text('batched') };
            peer.send(JSON.stringify([{ jsonrpc: '2.0', method: 'a' }, {}, { id: 'p', method: 'ping' }, answer]));
            return null;
          },
        },
      });
      client.socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id?: unknown; result?: unknown };
        if (message.id === 'p') asked.push(message.result);
      });
      for (let calls = 1; calls <= 3; calls += 1) {
        const { body } = await send(app, owner, `${path}/.tools/echo`, {});
        expect([body, asked.length]).toEqual([text('batched'), calls]);
      }
      expect((await app.as(owner).get(path)).body.status.state).toBe('connected');
      expect(client.of('initialize')).toHaveLength(1);
    },
  );

  verifies('uplink:frames:not-one-message', 'are ignored as lines of a log, whatever their members are', async () => {
    const path = await uplink();
    const client = await paired(path, {
      answers: {
        'tools/call': ({ id }, peer) => {
          const deep = '['.repeat(150) + ']'.repeat(150);
          for (const line of [
            ...['{"level":"error","error":"disk full"}', '{"error":{"code":5,"message":"x"}}', '{"result":"ready"}'],
            ...[`{"id":${id},"msg":"served"}`, `{"id":${id},"error":"none"}`, `{"id":"${id}","result":"200 OK"}`],
            ...['{"method":"GET","path":"/x"}', '{"method":"POST","id":1}', '{"jsonrpc":"2.0"}', '"started"', 'true'],
            ...['[1]', '[{"level":30}]', deep, `{"level":30,"context":${deep}}`, `{"id":${id},"data":${deep}}`],
          ])
            peer.send(line);
          for (let n = 0; n < 11_000; n += 1) peer.send('{"level":30}');
          return text('answered');
        },
      },
    });
    for (let calls = 1; calls <= 2; calls += 1) {
      expect((await send(app, owner, `${path}/.tools/echo`, {})).body).toEqual(text('answered'));
    }
    expect(client.received.filter(({ method }) => method === undefined)).toEqual([]);
    expect((await app.as(owner).get(path)).body.status.state).toBe('connected');
  });

  verifies('uplink:frames:size', 'fail their call above 16 MB, with the limit, and the tunnel stays open', async () => {
    const path = await uplink();
    const big = JSON.stringify('x'.repeat(16 * 1024 * 1024));
    const result = `{"content":[{"type":"text","text":${big}}]}`;
    const { held, release } = gate();
    const forms: ((id: number) => string)[] = [
      (id) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
      (id) => `{"id": ${id}, "jsonrpc": "2.0", "result": ${result}}`,
      (id) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`,
      (id) => `{"jsonrpc":"2.0","result":${result},"id":"${id}"}`,
      (id) => ` {"result":${result} , "id":${id} , "jsonrpc":"2.0"} `,
      (id) => `{"jsonrpc":"2.0","error":{"code":1,"message":${big}},"id":${id}}`,
    ];
    await paired(path, {
      answers: {
        'tools/call': ({ id, params: { arguments: asked } }, peer) => {
          if (asked.form === 'wait') return held.then(() => text('late'));
          if (asked.form === undefined) return text('small');
          // Neither a notification nor a line of a log fails a call.
          peer.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":${big}}}`);
          peer.send(`{"level":30,"data":${big}}`);
          peer.send(forms[asked.form]?.(id) ?? '');
          return null;
        },
      },
    });
    const waiting = send(app, owner, `${path}/.tools/echo`, { form: 'wait' });
    const message = expect.stringMatching(/^The local server sent a response with more than 16 MB\./);
    for (const form of forms.keys()) {
      const { status, body } = await send(app, owner, `${path}/.tools/echo`, { form });
      expect([form, status, body]).toEqual([form, 502, { error: 'upstream_error', message }]);
    }
    release();
    expect((await waiting).body).toEqual(text('late'));
    expect((await send(app, owner, `${path}/.tools/echo`, {})).body).toEqual(text('small'));
  });

  verifies(['uplink:frames:size', 'uplink:status:error'], 'close the tunnel above 64 MB, with the reason', async () => {
    const path = await uplink();
    const client = await paired(path, {
      answers: {
        'tools/call': (_, peer) => {
          peer.send(Buffer.alloc(64 * 1024 * 1024 + 1, 'x'));
          return null;
        },
      },
    });
    const { body } = await send(app, owner, `${path}/.tools/echo`, {});
    expect(body.message).toMatch(/closed because of what came through it: a message of more than 64 MB\./);
    expect((await client.closed).code).toBe(1009);
    const status = await untilState(app, owner, path, 'error');
    expect(status).toMatchObject({ reason: 'uplink_failed', message: expect.stringMatching(/more than 64 MB/) });
  });

  verifies('uplink:frames:binary', 'may be binary', async () => {
    const path = await uplink();
    await paired(path, {
      answers: {
        'tools/call': ({ id }, client) => {
          client.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: text('é') })));
          return null;
        },
      },
    });
    expect((await send(app, owner, `${path}/.tools/echo`, {})).body).toEqual(text('é'));
  });

  verifies('uplink:server-requests', 'get replies when they are requests', async () => {
    const path = await uplink();
    const client = await paired(path);
    client.send({ id: 0, method: 'ping' });
    client.send({ id: 'roots-1', method: 'roots/list' });
    const answers = await until(() => {
      const found = client.received.filter(({ method }) => method === undefined);
      return found.length === 2 && found;
    }, 'both are answered');
    expect(answers).toEqual([
      { jsonrpc: '2.0', id: 0, result: {} },
      { jsonrpc: '2.0', id: 'roots-1', error: { code: -32601, message: expect.any(String) } },
    ]);
  });

  verifies('uplink:call:in-flight', 'close the tunnel when they send requests and read no replies', async () => {
    const path = await uplink();
    const client = await paired(path);
    client.socket.pause();
    const id = 'x'.repeat(100_000);
    const pump = () => {
      if (client.socket.readyState !== client.socket.OPEN) return;
      for (let i = 0; i < 20; i += 1) client.send({ id, method: 'ping' });
      setImmediate(pump);
    };
    pump();
    expect((await untilState(app, owner, path, 'error')).message).toMatch(/answers are not read/);
  });

  verifies('uplink:status:error', 'turn the connection to `error` when they refuse to open a session', async () => {
    const path = await uplink();
    const client = await opened(path, { answers: { initialize: () => new Error('not today') } });
    expect((await client.closed).code).toBe(1011);
    const status = await untilState(app, owner, path, 'error');
    expect(status.message).toBe('The local server refused to open a session: not today');
    await paired(path);
  });
});

describe('what is deleted', () => {
  verifies('uplink:deleted', 'closes its tunnel permanently', async () => {
    const path = await uplink();
    const client = await paired(path);
    expect((await app.as(owner).delete(path)).status).toBe(200);
    expect(await client.closed).toEqual({ code: 1001, reason: 'deleted' });
    expect(await refusalOf(owner, path, { force: true })).toEqual(notFound);
  });

  verifies('uplink:deleted', 'at the moment its local server leaves is no trouble', async () => {
    const paths = await Promise.all(times(20, () => uplink()));
    const all = await Promise.all(paths.map((path) => paired(path)));
    const deletions = await Promise.all(
      paths.map((path, i) => {
        all[i]?.socket.close(1000, 'closing');
        return app.as(owner).delete(path);
      }),
    );
    expect(deletions.map(({ status }) => status)).toEqual(times(20, () => 200));
  });
});
