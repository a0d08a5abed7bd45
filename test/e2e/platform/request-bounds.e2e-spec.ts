import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { releasesPath } from '../../support/releases/releases.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { openTunnel, pair, type Message, type UplinkClient } from '../../support/mcp/uplink-client.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const KB = 1024;
const MB = 1024 * KB;

/** Levels of nesting that no body may have. */
const DEEP = '['.repeat(101);

const app = testApp(
  {},
  { httpBodiesBytes: 8 * MB, httpUnreadBytes: 8 * MB, upstreamMessagesMax: 50, upstreamMessagesBytes: MB },
);
const owner = testAccount(app);
const stranger = testAccount(app);
let namespace: string;
let server: string;
let connection: string;
let upstream: ScriptedUpstream;
/** Answers of the upstream to tool calls. */
let answerCall: (response: ServerResponse, id: number) => void;

beforeAll(async () => {
  upstream = await startScripted(({ method, id }, response) => {
    if (method === 'tools/list') return '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}';
    answerCall(response, id ?? 0);
    return undefined;
  });
  namespace = await createNamespace(app, owner);
  server = `/servers/${encodeURIComponent(await createServer(app, owner, { namespace }))}`;
  connection = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path;
});

const sockets: Socket[] = [];
afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

interface Sent {
  socket: Socket;
  /** Everything the service has answered. */
  text(): string;
  /** Resolves with the status of the answer. */
  status(): Promise<number>;
}

/** Sends a head that announces this many bytes, and these bytes of the body. */
function sent(
  target: TestApp,
  [method, path]: readonly [string, string],
  {
    account,
    length = MB,
    body = '',
    type = 'application/json',
  }: Partial<Record<'body' | 'type', string> & { account: TestAccount; length: number }> = {},
): Sent {
  const { hostname, port } = new URL(target.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  sockets.push(socket);
  let text = '';
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (text += chunk.toString()));
  const key = account ? `authorization: Bearer ${account.key}\r\n` : '';
  socket.write(
    `${method} ${path} HTTP/1.1\r\nhost: a\r\n${key}content-type: ${type}\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  const status = async () => {
    await until(() => text.includes('\r\n\r\n') || socket.destroyed, `${method} ${path} is answered`);
    return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  };
  return { socket, text: () => text, status };
}

/** The limits in the head of an answer, as they were sent. */
const sentText = (answer: Response) => `\r\nratelimit: ${answer.headers.get('ratelimit')}`;

it('heads that are too large return 431 in the form of their path', async () => {
  for (const [path, form] of [
    ['/servers', /^{"error":"The headers of the request exceed 16 KB."}$/],
    ['/connect/acme/x', /^{"error":"validation_error","message":"The headers/],
  ] as const) {
    const head = sent(app, ['GET', `${path} HTTP/1.1\r\na: ${'b'.repeat(30 * KB)}\r\nc:`]);
    expect(await head.status()).toBe(431);
    expect(head.text()).toMatch(/^HTTP\/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n/);
    expect(head.text().split('\r\n\r\n')[1]).toMatch(form);
  }
});

describe('a request whose caller is unknown or not allowed', () => {
  const routes = () =>
    [
      ['POST', '/accounts'],
      ['PUT', server],
      ['PUT', connection],
      ['PUT', releasesPath(decodeURIComponent(server.slice('/servers/'.length)))],
      ['POST', `${connection}/.tools/echo`],
      ['POST', `${connection}/mcp`],
      ['POST', '/run/some--server'],
      ['POST', `${server}/otlp/v1/logs`],
    ] as const;

  it('is refused before a byte of its body has come, with `Connection: close`', async () => {
    for (const route of routes()) {
      const request = sent(app, route);
      expect([route, await request.status()]).toEqual([route, 401]);
      expect(request.text()).toMatch(/\r\nconnection: close\r\n/i);
      await until(() => request.socket.readableEnded, 'the service ends the connection');
    }
  });

  it('is refused before its body for what another owns, and for a path that does not exist', async () => {
    for (const [route, wanted] of [
      [['PUT', connection], 404],
      [['PUT', server], 403],
      [['POST', `${connection}/.tools/echo`], 404],
      [['POST', '/no/such/path'], 404],
    ] as const) {
      const status = await sent(app, route, { account: stranger, body: '{"a"' }).status();
      expect([route, status]).toEqual([route, wanted]);
    }
  });

  it('does not have its body parsed: text that is not JSON is refused as the caller is', async () => {
    const answer = await app
      .as()
      .post('/accounts')
      .set('content-type', 'application/json')
      .send('{' as never);
    expect(answer.status).toBe(401);
  });
});

describe('JSON beyond a bound', () => {
  it('is rejected while it arrives when it is too deep, wherever JSON is accepted', async () => {
    for (const route of [
      ['PUT', connection],
      ['PUT', server],
      ['POST', `${connection}/.tools/echo`],
      ['POST', `${connection}/mcp`],
      ['POST', `${server}/otlp/v1/logs`],
    ] as const) {
      const request = sent(app, route, { account: owner, body: DEEP });
      expect([route, await request.status()]).toEqual([route, 400]);
      expect(request.text()).toContain('The body has more than 100 nested levels');
    }
  });

  it('is rejected when it has too many members or elements', async () => {
    const members = `{${Array.from({ length: 50_001 }, (_, n) => `"${n}":0`).join()}}`;
    const elements = `{"a":[${'0,'.repeat(500_000)}0]}`;
    const tool = app.as(owner).post(`${connection}/.tools/echo`).set('content-type', 'application/json');
    expect((await tool.send(members as never)).body).toEqual({
      error: 'validation_error',
      message: 'The body has more than 50000 members of objects',
    });
    const mcp = app.as(owner).post(`${connection}/mcp`).set('content-type', 'application/json');
    const refused = await mcp.send(elements as never);
    expect([refused.status, refused.body]).toEqual([
      400,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'The body has more than 500000 elements of arrays' },
      },
    ]);
  });

  it('fails the call when it is in the response of an MCP server, as JSON and as an event', async () => {
    const nested = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":${DEEP}${']'.repeat(101)}}`;
    const message = expect.stringMatching(/sent .*more than 100 nested levels\./);
    answerCall = (response, id) => response.setHeader('content-type', 'application/json').end(nested(id));
    const json = await app.as(owner).post(`${connection}/.tools/echo`, {});
    expect([json.status, json.body]).toEqual([502, { error: 'upstream_error', message }]);
    answerCall = (response, id) =>
      response.setHeader('content-type', 'text/event-stream').end(`data: ${nested(id)}\n\n`);
    const event = await app.as(owner).post(`${connection}/.tools/echo`, {});
    expect([event.status, event.body]).toEqual([502, { error: 'upstream_error', message }]);
  });

  it('in a frame of a local server fails the call that it answers, and its tunnel stays open', async () => {
    const { path } = await createConnection(app, owner, { transport: 'uplink' }, { namespace });
    const answers = {
      'tools/call': ({ id, params }: Message, peer: UplinkClient) => {
        peer.send(`${DEEP}${']'.repeat(101)}`);
        if (params.arguments.n === 2) return {};
        peer.send(`{"jsonrpc":"2.0","id":${id},"result":${DEEP}${']'.repeat(101)}}`);
        return null;
      },
    };
    await pair(app, owner, path, { answers });
    const message = expect.stringMatching(/^The local server sent a response with more than 100 nested levels\./);
    const failed = await app.as(owner).post(`${path}/.tools/echo`, { n: 1 });
    expect([failed.status, failed.body]).toEqual([502, { error: 'upstream_error', message }]);
    expect((await app.as(owner).post(`${path}/.tools/echo`, { n: 2 })).status).toBe(200);
  });
});

describe('the bytes of bodies', () => {
  const route = () => ['POST', `${connection}/.tools/echo`] as const;
  const open = async (account: TestAccount, bytes: number) => {
    const request = sent(app, route(), { account, length: 15 * MB, body: `{"a":"${'x'.repeat(bytes)}` });
    await until(() => request.socket.bytesWritten > bytes, 'the bytes are sent');
    return request;
  };

  it('may fill a quarter for one account: then its next body is rejected, and no other account is affected', async () => {
    answerCall = (response, id) =>
      response.setHeader('content-type', 'application/json').end(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    // Whichever body brings the third megabyte: the service reads the connections in any order.
    const bodies = [await open(owner, MB), await open(owner, MB - 64 * KB), await open(owner, MB)];
    const refused = await until(() => bodies.find(({ text }) => text().includes('\r\n\r\n')), 'one is refused');
    expect(await refused.status()).toBe(503);
    expect(refused.text()).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(refused.text()).toMatch(/\r\nx-should-retry: false\r\n/i);
    // A refused body counts until its connection is closed, so that a second one may be refused too.
    const held = bodies.filter(({ text }) => text() === '');
    expect(held).not.toEqual([]);
    expect((await app.as(stranger).put(`/namespaces/${namespace}-x`, {})).status).toBe(201);
    held.forEach(({ socket }) => socket.destroy());
    await until(async () => (await app.as(owner).post(route()[1], { a: 'x'.repeat(MB) })).status === 200, 'it is free');
  });

  it('are given up when they come too slowly', async () => {
    const impatient = await app.sibling({}, { httpRequestTimeoutMs: 1_000 });
    try {
      const slow = sent(impatient, route(), { account: owner, body: '{"a":' });
      expect(await slow.status()).toBe(408);
      await until(() => slow.socket.readableEnded, 'the connection is closed');
    } finally {
      await impatient.close();
    }
  });
});

describe('an MCP server that floods its response', () => {
  const notification = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"';

  it('with messages is cut off at the limit', async () => {
    let sentMessages = 0;
    answerCall = (response) => {
      response.setHeader('content-type', 'text/event-stream');
      const more = () => {
        for (let n = 0; n < 10; n += 1) response.write(`data: ${notification}${(sentMessages += 1)}"}}\n\n`);
        if (!response.destroyed) setImmediate(more);
      };
      more();
    };
    const answer = await app.as(owner).post(`${connection}/.tools/echo`, {});
    expect([answer.status, answer.body]).toEqual([
      502,
      { error: 'upstream_error', message: expect.stringMatching(/sent more than 50 messages without a reply\./) },
    ]);
  });

  it('over an uplink loses its tunnel', async () => {
    const { path } = await createConnection(app, owner, { transport: 'uplink' }, { namespace });
    const client = await openTunnel(app, owner, path);
    for (let n = 0; n < 60; n += 1) client.send({ method: 'notifications/message', params: { n } });
    expect(await client.closed).toEqual({ code: 1008, reason: 'more than 50 messages without a reply' });
  });

  it('with bytes is cut off at the limit', async () => {
    answerCall = (response) => {
      response.setHeader('content-type', 'text/event-stream');
      for (let n = 0; n < 3; n += 1) response.write(`data: ${notification}${'x'.repeat(500 * KB)}"}}\n\n`);
    };
    const answer = await app.as(owner).post(`${connection}/.tools/echo`, {});
    expect([answer.status, answer.body]).toEqual([
      502,
      { error: 'upstream_error', message: expect.stringMatching(/sent messages of more than 1048576 characters/) },
    ]);
  });
});

describe('public documents', () => {
  const limited = ['/', '/docs', '/docs/swagger-ui-init.js', '/docs/swagger-ui.css', '/openapi.json', '/openapi.yaml'];

  /** Requests that the address of this test has left in this minute, as the answers say. */
  const left = (text: string) =>
    [...text.matchAll(/\r\nratelimit: "address";r=(\d+)/gi)].map(([, count]) => Number(count));

  for (const path of [...limited, '/health', '/ready']) {
    verifies(
      ['limits:pipelining', 'limits:requests'],
      `are served 16 times for 500 concurrent requests: ${path}`,
      async () => {
        const { hostname, port } = new URL(app.url);
        const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
        sockets.push(socket);
        const chunks: Buffer[] = [];
        socket.on('error', () => undefined).on('data', (chunk: Buffer) => void chunks.push(chunk));
        socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(500));
        expect((await fetch(`${app.url}/health`)).status).toBe(200);
        await until(() => socket.readableEnded || socket.destroyed, 'the connection is closed');
        const text = Buffer.concat(chunks).toString('latin1');
        expect(text).toMatch(/^HTTP\/1\.1 [23]\d\d /);
        expect(text.match(/\r\nx-request-id: /gi)?.length).toBe(16);
        // None of the others was executed: each would have been counted.
        const next = left(sentText(await fetch(`${app.url}/openapi.json`)));
        const counts = left(text);
        expect(counts.length).toBe(limited.includes(path) ? 16 : 0);
        const [first = 0] = counts;
        const isSameMinute = next[0] !== undefined && next[0] < first;
        if (isSameMinute) expect(first - next[0]).toBe(16);
      },
    );
  }

  verifies('limits:requests', 'return 429 to an address that has used up its requests', async () => {
    const bounded = await startApp({}, { requestsPerAddress: 3 });
    try {
      for (const path of limited) {
        await until(async () => (await fetch(`${bounded.url}${path}`)).status === 429, `${path} is refused`);
      }
      expect((await fetch(`${bounded.url}/health`)).status).toBe(200);
    } finally {
      await bounded.close();
    }
  });
});

describe('connections', () => {
  const head = 'GET /health HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 203.0.113.9\r\n\r\n';

  /** Opens so many connections one after the other. @returns how many of them are answered */
  async function answered(target: TestApp, count: number): Promise<number> {
    const { hostname, port } = new URL(target.url);
    let answers = 0;
    for (let n = 0; n < count; n += 1) {
      const socket = connect(Number(port), hostname);
      sockets.push(socket);
      let isAnswered = false;
      socket.on('error', () => undefined).on('data', () => (isAnswered = true));
      socket.write(head);
      await until(() => isAnswered || socket.destroyed, 'it is answered or closed');
      if (isAnswered) answers += 1;
    }
    return answers;
  }

  it('are limited for one address, whatever X-Forwarded-For contains; those of a trusted proxy are not', async () => {
    const bounded = await startApp({ HTTP_CONNECTIONS_PER_ADDRESS_MAX: '5' });
    expect(await answered(bounded, 8)).toBe(5);
    await bounded.close();
    const behind = await startApp({ HTTP_CONNECTIONS_PER_ADDRESS_MAX: '5', TRUST_PROXY: '127.0.0.0/8' });
    expect(await answered(behind, 8)).toBe(8);
    await behind.close();
  });

  it('are bounded in all', async () => {
    const bounded = await startApp({ TRUST_PROXY: '127.0.0.1' }, { httpConnectionsMax: 4 });
    expect(await answered(bounded, 8)).toBe(4);
    await bounded.close();
  });
});
