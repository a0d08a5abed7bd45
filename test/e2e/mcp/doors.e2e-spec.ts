/** Failures at every door: each has one test, which asks at REST, the MCP endpoint and the run endpoint. */
import { beforeAll, describe, expect } from '@jest/globals';
import { once } from 'node:events';
import { Tuning } from '../../../src/config/tuning.js';
import { startApp, testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { eventsOf, mcp, mcpAccept, request, send, toolCall, type Answer, type Json } from '../../support/mcp/calls.js';
import { doorsOf, expectFailure, expectRpcError } from '../../support/mcp/doors.js';
import { externalServer } from '../../support/releases/current-releases.js';
import {
  deadHost,
  refusedPort,
  startFaulty,
  type FaultKind,
} from '../../support/special-upstreams/faulty-upstreams.js';
import { sendJson, startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { closing, textOf } from '../../support/upstream/upstream-clients.js';
import type { RecordedRequest, ToolCall, UpstreamOptions } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Deadlines of the process that gives up early. */
const CALL_MS = 1_000;
/** Room for a busy machine: what had no deadline would take for ever. */
const MARGIN_MS = 20_000;
const MB = 1024 * 1024;

const app = testApp();
let hasty: TestApp;
const owner = testAccount(app);
const other = testAccount(app);
const { connect, connected, scripted, rest, ask } = doorsOf(app, owner);

beforeAll(async () => {
  const times = { MCP_CALL_TIMEOUT_MS: `${CALL_MS}`, UPSTREAM_CONNECT_TIMEOUT_MS: `${CALL_MS}` };
  hasty = await app.sibling(times, { upstreamCallTimeoutMs: CALL_MS });
});

async function runPath(upstreamUrl: string): Promise<string> {
  return `/run/${(await externalServer(app, owner, upstreamUrl)).slug}`;
}

describe('an upstream that is no MCP server', () => {
  const slow: FaultKind[] = ['silent', 'slow-body'];
  const broken: FaultKind[] = ['html', 'not-found', 'forbidden', 'hangs-up', 'empty', 'garbage', 'not-rpc', 'redirect'];
  broken.push('server-error', 'tls-self-signed', 'bad-protocol-version', 'unavailable', 'too-big');
  for (const kind of [...broken, ...slow]) {
    verifies(
      ['call:upstream-down', 'call:no-retry', 'mcp:upstream-down', 'run:upstream-down'],
      `fails over every interface: "${kind}"`,
      async () => {
        const { url } = closing(await startFaulty(kind));
        const { path } = await createConnection(hasty, owner, { mcpUrl: url });
        const { slug, name } = await externalServer(app, owner, url);
        const unavailable: [number, string] = [503, 'unavailable'];
        const broken: [number, string] = slow.includes(kind) ? [504, 'timeout'] : [502, 'upstream_error'];
        const failure = kind === 'unavailable' ? unavailable : broken;
        // Floods of data have tests of their own over REST: within this deadline their end depends on the machine.
        const tools = (kind === 'too-big' ? [] : ['echo', 'repo/search']).map(async (tool) => {
          expectFailure(await rest(path, tool, {}, { on: hasty }), ...failure);
        });
        const messages = [toolCall('id', 'echo'), request('id', 'tools/list'), request('id', 'initialize')];
        const asked = messages.map(async (message) => {
          for (const at of [path, `/run/${slug}`]) {
            const answer = await ask(at, message, { on: hasty });
            const text = expectRpcError(answer, 200, 'id');
            const { code } = answer.body.error;
            expect(code >= -32768 && code <= -32000).toBe(false);
            if (at === path) continue;
            expect(text).toContain(name);
            expect(text).not.toMatch(/127\.0\.0\.1|connection of|this connection/);
          }
        });
        await Promise.all([...tools, ...asked]);
      },
    );
  }

  verifies(['call:upstream-down', 'call:no-retry'], 'returns 502 for a dead host and for a refused port', async () => {
    for (const url of [deadHost, await refusedPort()]) {
      expectFailure(await rest(await connect(url), 'echo', {}), 502, 'upstream_error');
    }
  });

  verifies('call:upstream-down', 'returns 502 when it died after it was connected', async () => {
    const { upstream, path } = await connected();
    expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
    await upstream.close();
    expectFailure(await rest(path, 'echo', { message: '' }), 502, 'upstream_error');
  });
});

verifies(
  ['call:auth-required', 'mcp:auth-required'],
  'a required authorization is reported over each interface as its own',
  async () => {
    const locked = closing(await startFaulty('needs-auth'));
    const bare = closing(await startFaulty('needs-auth', { challenge: false }));
    const expired = closing(
      await startScripted((_, res) => void res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()),
    );
    for (const { url } of [locked, bare, expired]) {
      const path = await connect(url);
      for (const tool of ['echo', 'repo/search']) {
        const answer = await rest(path, tool, {});
        expectFailure(answer, 409, 'auth_required');
        expect(answer.headers.get('www-authenticate')).toBeNull();
      }
      const { slug, name } = await externalServer(app, owner, url);
      for (const [at, sentence] of [
        [path, '401'],
        [`/run/${slug}`, `The server ${name} requires its own authorization`],
      ] as const) {
        const call = await ask(at, toolCall('id', 'echo'));
        const result = { isError: true, content: [{ type: 'text', text: expect.stringContaining(sentence) }] };
        expect([call.status, call.headers.get('www-authenticate')]).toEqual([200, null]);
        expect(call.body).toEqual({ jsonrpc: '2.0', id: 'id', result });
        const methods = ['tools/list', 'resources/read', 'prompts/get', ...(url === expired.url ? [] : ['initialize'])];
        for (const method of methods) {
          const answer = await ask(at, request('id', method, { name: 'x', uri: 'x' }));
          expect([method, answer.headers.get('www-authenticate')]).toEqual([method, null]);
          expect(expectRpcError(answer, 200, 'id', -33001)).toContain(sentence);
        }
      }
    }
  },
);

describe('a caller', () => {
  verifies('mcp:no-key', 'gets 401 and a challenge without a valid key, and reaches no upstream', async () => {
    const { upstream, path } = await connected();
    const run = await runPath(upstream.url);
    const before = upstream.requests.length;
    for (const account of [undefined, { ...owner, key: `slipway_${'x'.repeat(43)}` }]) {
      const answer = await send(app, account, `${path}/.tools/echo`, { message: '' });
      expectFailure(answer, 401, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
      for (const end of [`${path}/mcp`, run, `${run}/mcp`, '/run/nowhere']) {
        for (const method of ['POST', 'GET', 'DELETE']) {
          const body = method === 'POST' ? request(1, 'ping') : undefined;
          const refused = await send(app, account, end, body, { method });
          expectRpcError(refused, 401, null);
          expect([end, method, refused.headers.get('www-authenticate')]).toEqual([
            end,
            method,
            expect.stringMatching(/^Bearer/),
          ]);
        }
      }
    }
    const basic = { authorization: `Basic ${owner.key}` };
    expect((await mcp(app, undefined, path, request(1, 'ping'), { headers: basic })).status).toBe(401);
    expect(upstream.requests).toHaveLength(before);
  });

  verifies(
    ['call:foreign', 'mcp:unknown-connection'],
    'gets 404 for a foreign connection as for an unknown one',
    async () => {
      const { upstream, path } = await connected();
      expect((await rest(path, 'echo', { message: '' })).status).toBe(200);
      expect((await ask(path, request(1, 'tools/list'))).status).toBe(200);
      const before = upstream.requests.length;
      const [, , namespace] = path.split('/');
      const short = path.replace('/connect', '');
      const callers: [TestAccount, string][] = [
        [other, path],
        [app.operator, path],
        [other, short],
        [owner, `/connect/${namespace}/${uniqueName()}`],
        [owner, `/connect/${uniqueName()}/${uniqueName()}`],
      ];
      const notFound = expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/);
      const answers: Answer[] = [];
      for (const [account, at] of callers) {
        for (const tool of ['echo', 'repo/search']) {
          const { status, text } = await send(app, account, `${at}/.tools/${tool}`, { message: '' });
          expect([at, status, text]).toEqual([at, 404, notFound]);
        }
        answers.push(await mcp(app, account, at, request(1, at === short ? 'initialize' : 'tools/list')));
      }
      await app.as(owner).delete(path).expect(200);
      answers.push(await ask(path, request(1, 'tools/list')));
      for (const answer of answers) expectRpcError(answer, 404, null);
      // The hint of the owner differs; without it all are alike, and strangers never have another one.
      const alike = answers.map(({ body: { error, ...others } }) =>
        JSON.stringify({ ...others, ...error, data: undefined }),
      );
      expect(new Set(alike).size).toBe(1);
      expect(new Set(answers.slice(0, 3).map(({ text }) => text)).size).toBe(1);
      expect(upstream.requests).toHaveLength(before);
    },
  );
});

describe('a bad message', () => {
  let ends: string[];
  beforeAll(async () => {
    ends = [await connect(await refusedPort()), await runPath(await refusedPort())];
  });

  const bodies: Record<string, [code: number, text: string]> = {
    nothing: [-32700, ''],
    'no JSON': [-32700, '{"jsonrpc":"2.0",'],
    'a batch': [-32600, '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'],
    'an empty batch': [-32600, '[]'],
    null: [-32600, 'null'],
    'a text': [-32600, '"ping"'],
    'a number': [-32600, '5'],
    'an empty object': [-32600, '{}'],
    'jsonrpc 1.0': [-32600, '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    'jsonrpc as a number': [-32600, '{"jsonrpc":2.0,"id":1,"method":"ping"}'],
    'no method': [-32600, '{"jsonrpc":"2.0","id":1}'],
    'a method that is not text': [-32600, '{"jsonrpc":"2.0","id":1,"method":5}'],
    'a null id': [-32600, '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    'an object for an id': [-32600, '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
    'true for an id': [-32600, '{"jsonrpc":"2.0","id":true,"method":"ping"}'],
    'two ids': [-32600, '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'],
    'two ids, one of them escaped': [-32600, '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"ping"}'],
    'an array for params': [-32600, '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}'],
    'a text for params': [-32600, '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}'],
  };
  for (const [what, [code, text]] of Object.entries(bodies)) {
    verifies(['mcp:bad-request', 'run:limits'], `with ${what} returns 400 and a JSON-RPC error`, async () => {
      for (const at of ends) {
        const answer = await ask(at, text);
        expectRpcError(answer, 400, answer.body.id, code);
      }
    });
  }

  verifies(['mcp:bad-request', 'run:limits'], 'over 16 MB returns 413, and one from a foreign site 403', async () => {
    const large = JSON.stringify(request(1, 'x', { pad: 'x'.repeat(17 * MB) }));
    for (const at of ends) {
      expectRpcError(await ask(at, large), 413, null);
      for (const origin of ['https://evil.example', 'http://127.0.0.1.evil.example', 'null', 'http://localhost.evil']) {
        expectRpcError(await ask(at, request(1, 'ping'), { headers: { origin } }), 403, null);
      }
    }
    for (const origin of [app.url, 'http://localhost:6274', 'http://[::1]:1']) {
      expect((await ask(ends[0], request(1, 'ping'), { headers: { origin } })).status).toBe(200);
    }
    const { upstream } = await connected();
    const below = toolCall(1, 'echo', { message: 'x'.repeat(2 * MB) });
    expect((await ask(await runPath(upstream.url), below)).status).toBe(200);
  });

  verifies('mcp:bad-request', 'returns 400 and -32022 with supported versions if its version is unknown', async () => {
    const { path } = await scripted(() => '{"tools":[]}');
    const prefix = 'io.modelcontextprotocol/';
    const _meta = { [`${prefix}protocolVersion`]: '2099-01-01', [`${prefix}clientCapabilities`]: {} };
    const inVersion = (version: string) =>
      ask(path, request(1, 'tools/list'), { headers: { 'mcp-protocol-version': version } });
    for (const [requested, answer] of [
      ['1999-01-01', await inVersion('1999-01-01')],
      ['2099-01-01', await ask(path, request(1, 'server/discover', { _meta }))],
    ] as const) {
      expectRpcError(answer, 400, 1, -32022);
      const supported = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'];
      expect(answer.body.error.data).toEqual({ supported, requested });
    }
    for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
      expect((await inVersion(version)).status).toBe(200);
    }
  });

  longVerifies('call:arguments-invalid', 'over 16 MB is refused over REST and reaches no upstream', async () => {
    const { upstream, path } = await connected();
    expect((await rest(path, 'echo', `{"message":"${'x'.repeat(15 * MB)}"}`)).status).toBe(200);
    const before = upstream.requests.length;
    expectFailure(await rest(path, 'echo', `{"message":"${'x'.repeat(17 * MB)}"}`), 413, 'validation_error');
    expect(upstream.requests).toHaveLength(before);
  });

  verifies(['mcp:get-delete', 'run:get-delete'], 'returns 405 for GET and DELETE, and names POST', async () => {
    const [path, run] = ends;
    const connections = [`${path}/mcp`, `${path.replace('/connect', '')}/mcp`];
    const runs = ['', '/', '/mcp', '/mcp/', '/files/a'].map((end) => run + end);
    for (const end of [...connections, ...runs]) {
      for (const method of ['GET', 'DELETE']) {
        const own: Record<string, string> = end.startsWith('/run/')
          ? { 'mcp-protocol-version': '2025-11-25' }
          : { 'mcp-session-id': 'smithery-stateless' };
        const headers = { accept: 'text/event-stream', ...own };
        const answer = await send(app, owner, end, undefined, { method, headers });
        expectRpcError(answer, 405, null);
        expect([end, method, answer.headers.get('allow')]).toEqual([end, method, 'POST']);
      }
    }
  });
});

describe('a response that is too large', () => {
  const floods: Record<string, { type: string; length?: number; head: string }> = {
    'a JSON without a length': { type: 'application/json', head: '{"jsonrpc":"2.0","id":1,"result":{"pad":"' },
    'a JSON that announces its length': { type: 'application/json', length: 17 * MB, head: '{"pad":"' },
    'one endless line of an event stream': { type: 'text/event-stream', head: 'data: {"pad":"' },
    'one endless event of many lines': { type: 'text/event-stream', head: 'data: {}\ndata: ' },
  };
  for (const [what, { type, length, head }] of Object.entries(floods)) {
    verifies('channel:byte-cap', `fails the call soon and closes the socket: ${what}`, async () => {
      let sent = 0;
      let ended: Promise<unknown> | undefined;
      const { upstream, path } = await scripted((_message, res) => {
        ended = once(res, 'close');
        res.writeHead(200, { 'content-type': type, ...(length ? { 'content-length': length } : {}) });
        res.write(head);
        if (length) return;
        const chunk = what.includes('many lines') ? `${'x'.repeat(1000)}\ndata: `.repeat(64) : 'x'.repeat(64 * 1024);
        const pour = () => {
          while (!res.destroyed && sent < 200 * MB && res.write(chunk)) sent += chunk.length;
        };
        res.on('drain', pour);
        pour();
      });
      const answer = await rest(path, 't', {});
      expectFailure(answer, 502, 'upstream_error');
      expect(answer.body.message).toMatch(/larger than \d+ MB/);
      expect(upstream.count('tools/call')).toBe(1);
      await ended;
      expect(sent).toBeLessThan(40 * MB);
    });
  }

  verifies('channel:byte-cap', 'is one over the limit, not one just below, by JSON and event stream', async () => {
    for (const sse of [false, true]) {
      const { path } = await connected({ sse });
      const answer = await rest(path, 'big', { bytes: 15 * MB });
      expect([answer.status, textOf(answer.body).length]).toEqual([200, 15 * MB]);
      expectFailure(await rest(path, 'big', { bytes: 17 * MB }), 502, 'upstream_error');
    }
  });
});

describe('the deadline', () => {
  /** The answer of the hasty process, which comes at its deadline or, where `leastMs` is less, before. */
  async function timed(call: Promise<Answer>, leastMs = CALL_MS - 50): Promise<Answer> {
    const from = performance.now();
    const answer = await call;
    expect(performance.now() - from).toBeGreaterThan(leastMs);
    expect(performance.now() - from).toBeLessThan(CALL_MS + MARGIN_MS);
    return answer;
  }

  async function expectTimeout(path: string, tool: string, leastMs?: number): Promise<string> {
    const answer = await timed(rest(path, tool, {}, { on: hasty }), leastMs);
    expectFailure(answer, 504, 'timeout');
    expect(answer.body.message).toMatch(/ A call at the MCP endpoint http.*\/mcp may take longer: it fails after/);
    return answer.body.message as string;
  }

  const eras: UpstreamOptions[] = [{}, { sse: true }, { sessions: true, sse: true }, { modernOnly: true }];
  for (const options of eras) {
    verifies('call:timeout', `cancels a call of a tool that does not respond, ${JSON.stringify(options)}`, async () => {
      const { upstream, path } = await connected(options);
      // The session is open before, so that the call is under way when its time is over.
      const isOpen = async () => (await rest(path, 'echo', { message: '' }, { on: hasty })).status === 200;
      await until(isOpen, 'the session is open');
      const before = upstream.count('tools/call');
      const message = await expectTimeout(path, 'hold');
      expect(message).toMatch(/unknown/);
      expect(message).toContain(`${hasty.env.baseUrl}${path}/mcp`);
      const isCall = ({ body }: RecordedRequest) => (body as Json)?.method === 'tools/call';
      await upstream.waitFor(({ requests }) => requests.some((one) => isCall(one) && one.aborted));
      expect(upstream.count('tools/call')).toBe(before + 1);
      // A slow tool does not change the status of its server.
      expect((await hasty.as(owner).get(path)).body.status).toMatchObject({ state: 'connected' });
    });
  }

  const halves: Record<string, (id: number | undefined) => [type: string, text: string]> = {
    'half a JSON': (id) => ['application/json', `{"jsonrpc":"2.0","id":${id},"result":{`],
    'an empty event stream': () => ['text/event-stream', ''],
    'half an event': (id) => ['text/event-stream', `event: message\ndata: {"jsonrpc":"2.0","id":${id},"result":{}}\n`],
  };
  for (const [what, half] of Object.entries(halves)) {
    verifies('call:timeout', `cancels a call whose upstream stalls after ${what}`, async () => {
      const closed: Promise<unknown>[] = [];
      const { upstream, path } = await scripted(({ id }, res) => {
        const [type, text] = half(id);
        closed.push(once(res, 'close'));
        res.writeHead(200, { 'content-type': type });
        res.flushHeaders();
        res.write(text);
      });
      const asked = timed(ask(path, toolCall(1, 't'), { on: hasty }));
      await expectTimeout(path, 't');
      const { status, body } = await asked;
      expect([status, typeof body.error.code]).toEqual([200, 'number']);
      expect(upstream.count('tools/call')).toBe(2);
      await Promise.all(closed);
    });
  }

  verifies('call:timeout', 'cancels a call of an upstream that accepts and never responds', async () => {
    const { url } = closing(await startFaulty('silent'));
    await expectTimeout((await createConnection(hasty, owner, { mcpUrl: url })).path, 'echo', 0);
  });

  verifies('call:timeout', 'is stated whole in the error, not the rest after a handshake', async () => {
    const { path } = await connected({ delayInitializeMs: CALL_MS / 2 });
    const { body } = await rest(path, 'hold', {}, { on: hasty });
    expect(body.message).toMatch(
      / did not answer completely within 1 s: it is too slow or overloaded, or the request takes longer\. /,
    );
  });

  verifies('call:timeout', 'is below 55 seconds by default, and no setting can raise it above', async () => {
    expect(app.get(Tuning).upstreamCallTimeoutMs).toBeLessThan(55_000);
    expect(app.env.upstreamConnectTimeoutMs).toBeLessThan(55_000);
    await expect(startApp({ UPSTREAM_CONNECT_TIMEOUT_MS: '55000' })).rejects.toThrow('UPSTREAM_CONNECT_TIMEOUT_MS');
  });

  verifies('call:timeout', 'is one for listing, calling and looking up a name', async () => {
    const waits = new Set<NodeJS.Timeout>();
    const { path } = await scripted(({ id, method }, res) => {
      if (method === 'tools/call') return;
      const tools = '{"tools":[{"name":"a.b","inputSchema":{}}]}';
      waits.add(setTimeout(() => sendJson(res, `{"jsonrpc":"2.0","id":${id},"result":${tools}}`), CALL_MS * 0.75));
    });
    await expectTimeout(path, 'a/b', 0);
    for (const wait of waits) clearTimeout(wait);
  });

  /** Sends `method` twelve times, an eighth of the deadline apart, then answers. */
  const chatty = (method: string, paramsOf: (call: ToolCall, i: number) => object) => ({
    tools: [
      {
        name: 'chatty',
        inputSchema: {},
        call: async (call: ToolCall) => {
          for (let i = 1; i <= 12; i += 1) {
            await call.exchange.delay(CALL_MS / 8);
            call.exchange.send({ method, params: paramsOf(call, i) });
          }
          return { content: [] };
        },
      },
    ],
  });

  verifies(['call:timeout', 'mcp:progress'], 'is extended by progress for a client that receives it', async () => {
    const busy = chatty('notifications/progress', ({ params }, progress) => {
      return { progressToken: (params._meta as Json)?.progressToken ?? 'x', progress };
    });
    const { path } = await connected(busy);
    const isLate = expectTimeout(path, 'chatty', 0);
    const { text } = await ask(path, toolCall(1, 'chatty', {}, { progressToken: 1 }), { on: hasty });
    const events = eventsOf(text).map((event) => JSON.parse(event));
    expect(events).toHaveLength(13);
    expect(events.at(-1)).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } });
    await isLate;
  });

  verifies('mcp:long-calls', 'is extended by log messages, also of a client that takes no stream', async () => {
    const { path } = await connected(chatty('notifications/message', (_, data) => ({ level: 'info', data })));
    const accepts = ['application/json', 'application/json, text/event-stream'];
    const answers = accepts.map((accept) => ask(path, toolCall(1, 'chatty'), { on: hasty, headers: { accept } }));
    for (const { text } of await Promise.all(answers)) expect(text).toContain('"result":{"content":[]}');
  });

  verifies('mcp:long-calls', 'is that of the connection, at its endpoint and its namespace', async () => {
    const { path } = await connected({ sse: true });
    const set = (callTimeoutMs: number | null) => app.as(owner).put(path, { callTimeoutMs });
    expect((await set(300)).body).toMatchObject({ callTimeoutMs: 300 });
    const [, , namespace, connectionId] = path.split('/');
    const late = / sent nothing for 0\.3 s: .* reports no progress\. .*unknown/;
    for (const [end, tool] of [
      [`${path}/mcp`, 'hold'],
      [`/connect/${namespace}/.mcp`, `${connectionId}__hold`],
    ] as const) {
      const answer = await send(app, owner, end, toolCall(1, tool), { headers: mcpAccept });
      expect(expectRpcError(answer, 200, 1, -33003)).toMatch(late);
    }
    for (const bad of [99, 3_600_001, 1.5, '300', {}]) {
      expect([bad, (await app.as(owner).put(path, { callTimeoutMs: bad })).status]).toEqual([bad, 400]);
    }
    expect((await set(null)).body).not.toHaveProperty('callTimeoutMs');
  });

  verifies('call:no-retry', 'has `x-should-retry: false` over REST, like every other failure', async () => {
    const { path } = await connected();
    const [, , namespace] = path.split('/');
    const failures = {
      'an unknown tool': rest(path, 'nothing', {}),
      'an unknown connection': rest(`/connect/${namespace}/${uniqueName()}`, 'echo', {}),
      'arguments that are no object': rest(path, 'echo', '[]'),
      'a rejected call': rest(path, 'rpc_error', {}),
      'a call cut off': rest(path, 'cut', {}),
      'a deadline': rest(path, 'hold', {}, { on: hasty }),
    };
    for (const [what, failed] of Object.entries(failures)) {
      expect([what, (await failed).headers.get('x-should-retry')]).toEqual([what, 'false']);
    }
  });
});
