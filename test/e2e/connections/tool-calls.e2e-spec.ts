import { beforeAll, describe, expect, it } from '@jest/globals';
import { HttpAdapterHost } from '@nestjs/core';
import type { SlipwayAdapter } from '../../../src/platform/http/adapter.js';
import { startApp, testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { send, times, type Answer, type CallOptions } from '../../support/mcp/calls.js';
import { createConnection } from '../../support/factories.js';
import {
  deadHost,
  refusedPort,
  startFaulty,
  type FaultKind,
} from '../../support/special-upstreams/faulty-upstreams.js';
import { sendJson, startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { closing, start, textOf } from '../../support/upstream/upstream-clients.js';
import { RAW_TOOL_RESULT, type RecordedRequest, type Upstream } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Time limit of a call in the app with short deadlines. */
const CALL_MS = 1_500;
/** Tolerance for a busy machine. A call without a deadline would never end. */
const MARGIN_MS = 20_000;

const notFound = expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/);

const app = testApp();
let hasty: TestApp;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => {
  hasty = await app.sibling({
    UPSTREAM_CALL_TIMEOUT_MS: `${CALL_MS}`,
    MCP_CALL_TIMEOUT_MS: `${CALL_MS}`,
    UPSTREAM_CONNECT_TIMEOUT_MS: `${CALL_MS}`,
  });
});

async function connect(mcpUrl: string, fields: object = {}): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl, ...fields })).path;
}

function call(path: string, tool: string, args?: string | object, options?: CallOptions): Promise<Answer> {
  return send(app, owner, `${path}/.tools/${tool}`, args, options);
}

/** The `params` of each `tools/call` the upstream saw. */
function callsOf({ requests }: Upstream): { name: string; arguments: unknown }[] {
  type Message = { method: string; params: { name: string; arguments: unknown } };
  return requests
    .map(({ body }) => body as Message | undefined)
    .filter((body) => body?.method === 'tools/call')
    .map((body) => (body as Message).params);
}

/** A failure as published clients read it: their code, a sentence, and the word not to repeat the call. */
function expectFailure(answer: Answer, status: number, code: string): void {
  expect([answer.status, answer.body?.error, answer.text]).toEqual([status, code, expect.any(String)]);
  expect(answer.body).toEqual({ error: code, message: expect.stringMatching(/\w/) });
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
}

describe('success', () => {
  verifies('call:passes-arguments', 'the body reaches the tool as its arguments', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const args = { message: 'Grüße 🌊', nested: { list: [1, null, true] }, name: 'not the tool', arguments: {} };
    const answer = await call(path, 'echo', args);
    expect([answer.status, textOf(answer.body)]).toEqual([200, 'Grüße 🌊']);
    expect(callsOf(upstream)).toEqual([{ name: 'echo', arguments: args }]);
  });

  verifies('call:passes-arguments', 'arguments pass byte for byte, big numbers and blanks included', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const args = '{ "b":9007199254740993,\n\t"a":1.10, "\\u006d": 1E400, "b2":"\\/" }';
    expect((await call(path, 'echo', args)).status).toBe(200);
    expect(upstream.requests.find(({ raw }) => raw.includes('tools/call'))?.raw).toContain(`"arguments":${args}`);
  });

  verifies('call:passes-arguments', 'an empty body is no arguments, whatever its content type', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    for (const body of [undefined, '', '  \n', '{}']) expect((await call(path, 'asks', body)).status).toBe(200);
    const headers = { 'content-type': 'text/plain' };
    expect((await call(path, 'echo', '{"message":"plain"}', { headers })).status).toBe(200);
    expect(callsOf(upstream).slice(0, 4)).toEqual(times(4, () => ({ name: 'asks', arguments: {} })));
  });

  verifies('call:passes-arguments', 'every spelling of a dotted name calls that tool', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    for (const spelling of [
      'repo.issues.create',
      'repo/issues/create',
      'repo%2Fissues%2Fcreate',
      'repo.issues%2fcreate',
    ]) {
      const answer = await call(path, spelling, { title: spelling });
      expect(textOf(answer.body)).toBe(`Created issue: ${spelling}`);
    }
    expect(new Set(callsOf(upstream).map(({ name }) => name))).toEqual(new Set(['repo.issues.create']));
    const short = path.replace('/connect', '');
    expect(textOf((await call(short, 'repo/search', { query: 'q' })).body)).toContain('q-1');
  });

  verifies(
    'call:passes-arguments',
    'names with blanks, quotes and letters of any script are called as they are',
    async () => {
      const names = ['with space', 'ünï"cødé\\', 'a%2Fb', 'slash/name', '日本.語'];
      const upstream = await start({ tools: names.map((name) => ({ name, inputSchema: {} })) });
      const path = await connect(upstream.url);
      for (const name of names) expect((await call(path, encodeURIComponent(name), {})).status).toBe(200);
      expect(callsOf(upstream).map(({ name }) => name)).toEqual(names);
    },
  );

  for (const options of [{}, { sse: true }, { sessions: true }, { sessions: true, sse: true }, { modernOnly: true }]) {
    verifies(
      ['call:result-unchanged', 'channel:sse'],
      `a result passes byte for byte from an upstream ${JSON.stringify(options)}`,
      async () => {
        const upstream = await start(options);
        const answer = await call(await connect(upstream.url), 'raw', {});
        expect([answer.status, answer.text]).toEqual([200, RAW_TOOL_RESULT]);
        expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(RAW_TOOL_RESULT)));
      },
    );
  }

  verifies(['call:result-unchanged', 'channel:sse'], 'a result of many bytes and lines keeps every one', async () => {
    const text = `${'ü🌊\\n'.repeat(200_000)}`;
    const rawToolResult = `{\n  "content" : [ {"type":"text","text":"${text}"} ],\n\n  "x": [\n] }`;
    for (const sse of [false, true]) {
      const upstream = await start({ sse, rawToolResult });
      expect((await call(await connect(upstream.url), 'raw', {})).text === rawToolResult).toBe(true);
    }
  });

  verifies('call:result-unchanged', 'notifications and questions ahead of the result do not get into it', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    expect(textOf((await call(path, 'progress', { steps: 3 })).body)).toBe('3 steps done');
    expect(JSON.parse(textOf((await call(path, 'asks', {})).body))).toMatchObject({ error: { code: -32601 } });
  });

  verifies('call:tool-failure', 'a tool that fails answers 200 with its result byte for byte', async () => {
    const rawToolResult = '{"isError" : true,"content":[],"code":9007199254740993}';
    const upstream = await start({ rawToolResult });
    const path = await connect(upstream.url);
    expect(await call(path, 'raw', {})).toMatchObject({ status: 200, text: rawToolResult });
    expect(await call(path, 'fail', {})).toMatchObject({ status: 200, body: { isError: true } });
    expect(await call(path, 'echo', { message: 5 })).toMatchObject({ status: 200, body: { isError: true } });
  });
});

describe('validation', () => {
  verifies('call:arguments-invalid', 'arguments that are no object are refused and reach no upstream', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const before = upstream.requests.length;
    for (const body of ['[]', '[{}]', 'null', 'true', '5', '"text"', '{', '{"a":}', '{}{}', '{"a":01}', "{'a':1}"]) {
      for (const tool of ['echo', 'repo/search']) {
        const answer = await call(path, tool, body);
        expect([body, answer.status]).toEqual([body, 400]);
        expectFailure(answer, 400, 'validation_error');
      }
    }
    expect(callsOf(upstream)).toEqual([]);
    expect(upstream.requests).toHaveLength(before);
  });

  longVerifies('call:arguments-invalid', 'a body over 16 MB is refused and reaches no upstream', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    expect((await call(path, 'echo', `{"message":"${'x'.repeat(15 * 1024 * 1024)}"}`)).status).toBe(200);
    const before = upstream.requests.length;
    expectFailure(await call(path, 'echo', `{"message":"${'x'.repeat(17 * 1024 * 1024)}"}`), 413, 'validation_error');
    expect(upstream.requests).toHaveLength(before);
  });

  verifies('call:unknown-tool', 'a tool that does not exist answers 404, by every kind of upstream', async () => {
    for (const options of [{}, { sse: true }, { modernOnly: true }]) {
      const path = await connect((await start(options)).url);
      for (const missing of ['nothing', 'repo', 'repo/nothing', 'echo/deeper', 'Echo', '%00']) {
        const answer = await call(path, missing, {});
        expect([missing, answer.status, answer.text]).toEqual([missing, 404, notFound]);
      }
    }
  });

  verifies(
    'call:unknown-tool',
    'a server that reports an unknown tool as an isError result makes no difference',
    async () => {
      const upstream = closing(
        await startScripted(({ method }) =>
          method === 'tools/list' ? '{"tools":[{"name":"known","inputSchema":{}}]}' : '{"content":[],"isError":true}',
        ),
      );
      const path = await connect(upstream.url);
      expect(await call(path, 'unknown', {})).toMatchObject({ status: 404, text: notFound });
      expect(await call(path, 'known', {})).toMatchObject({ status: 200, text: '{"content":[],"isError":true}' });
    },
  );

  verifies('error:hint', 'the nearest tool costs no list of its own', async () => {
    const lists = '{"tools":[{"name":"known","inputSchema":{}}],"ttlMs":0}';
    const upstream = closing(
      await startScripted(({ method }) => (method === 'tools/list' ? lists : '{"content":[],"isError":true}')),
    );
    const path = await connect(upstream.url);
    const before = upstream.count('tools/list');
    const { status, headers } = await call(path, 'knwon', {});
    expect([status, headers.get('slipway-hint')]).toEqual([404, expect.stringContaining('Did you mean')]);
    expect(upstream.count('tools/list')).toBe(before + 1);
  });
});

verifies('error:hint', 'names of any characters arrive percent-encoded and cut', async () => {
  const [plain, long] = ['größe\r\nx: 100 %', '字'.repeat(60)];
  const tools = [plain, long].map((name) => ({ name, inputSchema: { type: 'object' } }));
  const lists = JSON.stringify({ tools, ttlMs: 0 });
  const upstream = closing(
    await startScripted(({ method }) => (method === 'tools/list' ? lists : '{"content":[],"isError":true}')),
  );
  const path = await connect(upstream.url);
  const hintOf = async (tool: string) => {
    const { status, text, headers } = await call(path, encodeURIComponent(tool), {});
    expect([status, text]).toEqual([404, notFound]);
    return headers.get('slipway-hint') ?? '';
  };
  const missing = `The connection "${path.split('/').at(-1)}" has no such tool.`;
  expect(decodeURIComponent(await hintOf(`${plain}s`))).toBe(`${missing} Did you mean "${plain}"?`);
  const cut = await hintOf(`${long}s`);
  expect([cut.length > 500, cut.length <= 512]).toEqual([true, true]);
  expect(decodeURIComponent(cut)).toContain(`${missing} Did you mean "字`);
});

describe('authentication and ownership', () => {
  it('answers 401 without a key and 401 with a wrong one, and reaches no upstream', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const before = upstream.requests.length;
    const wrong = { ...owner, key: `slipway_${'x'.repeat(43)}` };
    for (const account of [undefined, wrong]) {
      const answer = await send(app, account, `${path}/.tools/echo`, { message: '' });
      expectFailure(answer, 401, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
    expect(upstream.requests).toHaveLength(before);
  });

  verifies(
    'call:foreign',
    'a foreign connection answers as an unknown one, and its upstream receives nothing',
    async () => {
      const upstream = await start();
      const path = await connect(upstream.url);
      expect((await call(path, 'echo', { message: '' })).status).toBe(200);
      const before = upstream.requests.length;
      const [, , namespace] = path.split('/');
      const foreign = await send(app, other, `${path}/.tools/echo`, { message: '' });
      const foreignDotted = await send(app, other, `${path}/.tools/repo/search`, { query: '' });
      const operator = await send(app, app.operator, `${path}/.tools/echo`, { message: '' });
      const missing = await send(app, owner, `/connect/${namespace}/${uniqueName()}/.tools/echo`, { message: '' });
      for (const { status, text } of [foreign, foreignDotted, operator, missing]) {
        expect([status, text]).toEqual([404, notFound]);
      }
      expect(upstream.requests).toHaveLength(before);
    },
  );
});

describe('failures of the upstream', () => {
  verifies('call:upstream-rejects', 'a JSON-RPC error answers 422 with the message of the server', async () => {
    for (const options of [{}, { sse: true }, { modernOnly: true }]) {
      const answer = await call(await connect((await start(options)).url), 'rpc_error', {});
      expectFailure(answer, 422, 'tool_error');
      expect(answer.body.message).toContain('The tool refused the arguments');
    }
  });

  verifies('call:upstream-rejects', 'an error without id or without message is an answer too', async () => {
    const errors = ['"id":null,"error":{"code":-32603,"message":"Broken"}', '"error":{"code":1}'];
    const upstream = closing(
      await startScripted(({ method }, res, nth) => {
        if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
        sendJson(res, `{"jsonrpc":"2.0",${errors[nth - 1]}}`);
      }),
    );
    const path = await connect(upstream.url);
    for (const [i] of errors.entries()) {
      const answer = await call(path, 't', {});
      expectFailure(answer, 422, 'tool_error');
      if (i === 0) expect(answer.body.message).toContain('Broken');
    }
  });

  verifies(
    'call:auth-required',
    'a server that requires authorization answers 409, and its 401 is not passed on',
    async () => {
      const locked = closing(await startFaulty('needs-auth'));
      const bare = closing(await startFaulty('needs-auth', { challenge: false }));
      for (const { url } of [locked, bare]) {
        const path = await connect(url);
        for (const tool of ['echo', 'repo/search']) {
          const answer = await call(path, tool, {});
          expectFailure(answer, 409, 'auth_required');
          expect(answer.headers.get('x-should-retry')).toBe('false');
          expect(answer.headers.get('www-authenticate')).toBeNull();
        }
      }
    },
  );

  verifies('call:auth-required', 'credentials that stop working in a running session answer 409', async () => {
    const upstream = closing(
      await startScripted((_, res) => {
        res.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      }),
    );
    expectFailure(await call(await connect(upstream.url), 'echo', {}), 409, 'auth_required');
  });

  const down: FaultKind[] = ['html', 'not-found', 'forbidden', 'hangs-up', 'empty', 'garbage', 'not-rpc', 'redirect'];
  down.push('server-error', 'tls-self-signed', 'bad-protocol-version', 'unavailable');
  for (const kind of down) {
    verifies(['call:upstream-down', 'call:no-retry'], `an upstream that is "${kind}" answers 502`, async () => {
      const faulty = closing(await startFaulty(kind));
      const path = await connect(faulty.url);
      for (const tool of ['echo', 'repo/search']) {
        const answer = await call(path, tool, {});
        expectFailure(answer, 502, 'upstream_error');
        expect(answer.headers.get('x-should-retry')).toBe('false');
      }
    });
  }

  verifies(['call:upstream-down', 'call:no-retry'], 'a dead host and a refused port answer 502', async () => {
    for (const url of [deadHost, await refusedPort()]) {
      const answer = await call(await connect(url), 'echo', {});
      expectFailure(answer, 502, 'upstream_error');
      expect(answer.headers.get('x-should-retry')).toBe('false');
    }
  });

  verifies('call:upstream-down', 'an upstream that dies after it was connected answers 502', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    expect((await call(path, 'echo', { message: '' })).status).toBe(200);
    await upstream.close();
    expectFailure(await call(path, 'echo', { message: '' }), 502, 'upstream_error');
  });

  const nonsense: Record<string, string> = {
    'no JSON': 'Hello',
    'a cut JSON': '{"jsonrpc":"2.0","id":',
    'an array': '[]',
    null: 'null',
    'a number': '5',
    'no result': '{"jsonrpc":"2.0","id":ID}',
    'an error that is null': '{"jsonrpc":"2.0","id":ID,"error":null}',
    'an error of a plain HTTP API': '{"id":ID,"error":"forbidden"}',
    'another id': '{"jsonrpc":"2.0","id":999,"result":{}}',
    'a request': '{"jsonrpc":"2.0","id":ID,"method":"ping"}',
    nothing: '',
  };
  for (const [what, text] of Object.entries(nonsense)) {
    for (const type of ['application/json', 'text/event-stream', 'text/html', 'application/octet-stream']) {
      verifies('call:upstream-down', `a call answered with ${what} as ${type} answers 502`, async () => {
        const upstream = closing(
          await startScripted(({ id, method }, res) => {
            if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
            const json = text.replace('ID', String(id));
            res.writeHead(200, { 'content-type': type });
            res.end(type === 'text/event-stream' ? `data: ${json}\n\n` : json);
          }),
        );
        const answer = await call(await connect(upstream.url), 't', {});
        expectFailure(answer, 502, 'upstream_error');
        expect(answer.headers.get('x-should-retry')).toBe('false');
        expect(upstream.count('tools/call')).toBe(1);
      });
    }
  }

  verifies('call:no-retry', 'every failed call has `x-should-retry: false`, whatever failed', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const [, , namespace] = path.split('/');
    const locked = await connect(closing(await startFaulty('needs-auth')).url);
    const down = await connect(await refusedPort());
    const answers = {
      'an unknown tool': await call(path, 'nothing', {}),
      'an unknown connection': await call(`/connect/${namespace}/${uniqueName()}`, 'echo', {}),
      'arguments that are no object': await call(path, 'echo', '[]'),
      'a rejected call': await call(path, 'rpc_error', {}),
      authorization: await call(locked, 'echo', {}),
      'an upstream that is down': await call(down, 'echo', {}),
      'a call cut off': await call(path, 'cut', {}),
      'a deadline': await send(hasty, owner, `${path}/.tools/hold`, {}),
    };
    const words = Object.entries(answers).map(([what, { headers }]) => `${what}: ${headers.get('x-should-retry')}`);
    expect(words).toEqual(Object.keys(answers).map((what) => `${what}: false`));
  });
});

describe('the deadline', () => {
  /** Calls the tool in the app with short deadlines and gives the answer with the milliseconds it took. */
  async function timed(path: string, tool: string, args: object = {}): Promise<Answer & { ms: number }> {
    const from = performance.now();
    const answer = await send(hasty, owner, `${path}/.tools/${tool}`, args);
    return { ...answer, ms: performance.now() - from };
  }

  function expectTimeout(answer: Answer & { ms: number }): void {
    expect(answer.body.message).toMatch(/ A call at the MCP endpoint http.*\/mcp may take longer: it fails after/);
    expectFailure(answer, 504, 'timeout');
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(answer.ms).toBeLessThan(CALL_MS + MARGIN_MS);
  }

  for (const options of [{}, { sse: true }, { sessions: true, sse: true }, { modernOnly: true }]) {
    verifies(
      'call:timeout',
      `a tool that does not answer ends at the deadline, ${JSON.stringify(options)}`,
      async () => {
        const upstream = await start(options);
        const path = await connect(upstream.url);
        // The session is open before, so that the call is under way when its time is over.
        const isOpen = async () => (await send(hasty, owner, `${path}/.tools/echo`, { message: '' })).status === 200;
        await until(isOpen, 'the session is open');
        const before = upstream.count('tools/call');
        const answer = await timed(path, 'hold');
        expectTimeout(answer);
        expect(answer.ms).toBeGreaterThan(CALL_MS - 50);
        expect(answer.body.message).toMatch(/unknown/);
        expect(answer.body.message).toContain(`${hasty.env.baseUrl}${path}/mcp`);
        await upstream.waitFor(({ requests }) => requests.some((one) => isCall(one) && one.aborted));
        expect(upstream.count('tools/call')).toBe(before + 1);
        // A slow tool does not change the status of its server.
        const { status } = (await hasty.as(owner).get(path)).body as { status: object };
        expect(status).toMatchObject({ state: 'connected' });
      },
    );
  }

  verifies('stop:graceful', 'a call that the stop of the process interrupts answers an error with its id', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const leaving = await app.sibling();
    (leaving.get(HttpAdapterHost).httpAdapter as SlipwayAdapter).finishMs = 0;
    const message = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hold', arguments: {} } };
    const running = [
      leaving
        .as(owner)
        .post(`${path}/.tools/hold`, {})
        .then((response) => response),
      leaving
        .as(owner)
        .post(`${path}/mcp`, message)
        .then((response) => response),
    ];
    await upstream.waitFor((seen) => seen.count('tools/call') === 2);
    const closed = leaving.close();
    const [rest, mcp] = (await Promise.all(running)) as { status: number; body: Record<string, unknown> }[];
    const sentence = expect.stringMatching(/restarting.*unknown/);
    expect([rest.status, rest.body]).toEqual([503, { error: 'unavailable', message: sentence }]);
    expect(mcp.body).toMatchObject({ jsonrpc: '2.0', id: 7, error: { message: sentence } });
    upstream.release();
    await closed;
    // The connection is not to blame.
    expect((await app.as(owner).get(path)).body.status).toMatchObject({ state: 'connected' });
  });

  verifies('call:timeout', 'the default deadline is below 55 seconds, and no setting can raise it above', async () => {
    expect(app.env.upstreamCallTimeoutMs).toBeLessThan(55_000);
    expect(app.env.upstreamConnectTimeoutMs).toBeLessThan(55_000);
    await expect(startApp({ UPSTREAM_CALL_TIMEOUT_MS: '55000' })).rejects.toThrow('UPSTREAM_CALL_TIMEOUT_MS');
  });

  verifies('call:timeout', 'a call of an upstream that accepts and never responds ends at the deadline', async () => {
    const path = await connectFast((await closingFaulty('silent')).url);
    expectTimeout(await timed(path, 'echo'));
  });

  verifies('call:timeout', 'listing, calling and looking up a name share one deadline', async () => {
    const waits = new Set<NodeJS.Timeout>();
    const upstream = closing(
      await startScripted(({ id, method }, res) => {
        if (method === 'tools/call') return;
        const tools = '{"tools":[{"name":"a.b","inputSchema":{}}]}';
        waits.add(setTimeout(() => sendJson(res, `{"jsonrpc":"2.0","id":${id},"result":${tools}}`), CALL_MS * 0.75));
      }),
    );
    const path = await connect(upstream.url);
    const answer = await timed(path, 'a/b');
    for (const wait of waits) clearTimeout(wait);
    expectTimeout(answer);
  });

  verifies('call:timeout', 'progress does not extend a call over REST', async () => {
    const upstream = await start({
      tools: [
        {
          name: 'busy',
          inputSchema: {},
          call: async ({ exchange }) => {
            for (let progress = 1; ; progress++) {
              await exchange.delay(50);
              exchange.send({ method: 'notifications/progress', params: { progressToken: 'x', progress } });
            }
          },
        },
      ],
    });
    expectTimeout(await timed(await connect(upstream.url), 'busy'));
  });

  async function closingFaulty(kind: FaultKind) {
    return closing(await startFaulty(kind));
  }

  /** Connects in the app that does not wait long for a handshake. */
  async function connectFast(mcpUrl: string): Promise<string> {
    return (await createConnection(hasty, owner, { mcpUrl })).path;
  }
});

function isCall({ body }: RecordedRequest): boolean {
  return (body as { method?: string } | undefined)?.method === 'tools/call';
}
