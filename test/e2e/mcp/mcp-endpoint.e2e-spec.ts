import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import {
  eventsOf,
  mcp,
  type Json,
  mcpAccept,
  open,
  request,
  send,
  times,
  toolCall,
  type Answer,
} from '../../support/mcp/calls.js';
import { createConnection } from '../../support/factories.js';
import { refusedPort, startFaulty, type FaultKind } from '../../support/special-upstreams/faulty-upstreams.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { closing, post, start } from '../../support/upstream/upstream-clients.js';
import { RAW_TOOL_RESULT, type ToolDef, type UpstreamOptions } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const CALL_MS = 800;
/** Room for a busy machine: what had no deadline would take for ever. */
const MARGIN_MS = 20_000;

let app: TestApp;
let hasty: TestApp;
let owner: TestAccount;
let other: TestAccount;

beforeAll(async () => {
  app = await startApp();
  hasty = await app.sibling({
    UPSTREAM_CALL_TIMEOUT_MS: `${CALL_MS}`,
    MCP_CALL_TIMEOUT_MS: `${CALL_MS}`,
    UPSTREAM_CONNECT_TIMEOUT_MS: `${CALL_MS}`,
  });
  owner = await app.account();
  other = await app.account();
});
afterAll(async () => {
  await hasty.close();
  await app.close();
});

async function connect(mcpUrl: string): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl })).path;
}

/** A JSON-RPC error with this id, and a text for people. */
function expectRpcError({ body, headers }: Answer, id: unknown, code?: number): void {
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(body).toEqual({
    jsonrpc: '2.0',
    id,
    error: expect.objectContaining({ code: code ?? expect.any(Number), message: expect.stringMatching(/\w/) }),
  });
}

describe('a request', () => {
  verifies('mcp:no-handshake', 'is answered without a handshake, by both forms of the path', async () => {
    const upstream = await start({ sessions: true });
    const path = await connect(upstream.url);
    for (const form of [path, path.replace('/connect', '')]) {
      const answer = await mcp(app, owner, form, toolCall(1, 'echo', { message: 'hællo' }));
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.body).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'hællo' }] } });
    }
    expect(upstream.count('initialize')).toBe(1);
  });

  verifies('mcp:no-handshake', 'needs no Accept header and no known content type', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const headers = { accept: '*/*', 'content-type': 'text/plain' };
    const answer = await mcp(app, owner, path, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { headers });
    expect([answer.status, answer.body.result.tools.length]).toEqual([200, 13]);
  });

  verifies('mcp:jsonrpc', 'is -32600 without the member jsonrpc, with and without an id', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    for (const text of ['{"method":"tools/list"}', '{"id":1,"method":"tools/list"}']) {
      const { status, body } = await mcp(app, owner, path, text);
      expect([text, status, body.error]).toEqual([text, 400, { code: -32600, message: 'jsonrpc must be "2.0"' }]);
    }
    expect(upstream.count('tools/list')).toBe(0);
  });

  verifies(
    'mcp:session-ignored',
    'with smithery-stateless as session id is answered, and the id goes nowhere',
    async () => {
      const upstream = await start({ sessions: true });
      const path = await connect(upstream.url);
      const headers = { 'mcp-session-id': 'smithery-stateless' };
      const answer = await mcp(app, owner, path, request(1, 'tools/list'), { headers });
      expect([answer.status, answer.headers.get('mcp-session-id')]).toEqual([200, null]);
      const sent = upstream.requests.map(({ headers }) => headers['mcp-session-id']).filter(Boolean);
      expect(new Set(sent)).toEqual(upstream.sessions);
    },
  );

  verifies(
    'mcp:initialize',
    'initialize describes the upstream, in the client’s revision, and opens a session of this service',
    async () => {
      const upstream = await start({ sessions: true, iconUrl: 'http://127.0.0.1/i.png', serverInfo: { 'x-own': [1] } });
      const path = await connect(upstream.url);
      const clientInfo = { name: 'spec', version: '1' };
      for (const [asked, given] of [
        ['2025-11-25', '2025-11-25'],
        ['2025-03-26', '2025-03-26'],
        ['2024-11-05', '2024-11-05'],
        ['1999-01-01', '2025-11-25'],
        ['2026-07-28', '2025-11-25'],
      ]) {
        const params = { protocolVersion: asked, capabilities: { sampling: {}, roots: {} }, clientInfo };
        const answer = await mcp(app, owner, path, request('init', 'initialize', params));
        expect(answer.status).toBe(200);
        expect(answer.headers.get('mcp-session-id')).toMatch(/^[\x21-\x7e]{60,300}$/);
        expect(answer.body).toEqual({
          jsonrpc: '2.0',
          id: 'init',
          result: {
            protocolVersion: given,
            capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
            serverInfo: {
              name: 'upstream',
              title: 'Test upstream',
              version: '1.0.0',
              icons: [{ src: 'http://127.0.0.1/i.png' }],
              'x-own': [1],
            },
            instructions: 'A server for tests.',
          },
        });
      }
      expect(upstream.count('initialize')).toBe(1);
      const declared = upstream.requests.find(({ raw }) => raw.includes('"initialize"'))?.body as { params: object };
      expect(declared.params).toMatchObject({ capabilities: {} });
    },
  );

  verifies('mcp:initialize', 'ping is answered by ourselves, and session-wide methods do not exist', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const before = upstream.requests.length;
    expect((await mcp(app, owner, path, request(1, 'ping'))).text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
    for (const method of ['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
      const answer = await mcp(app, owner, path, request('x', method, { uri: 'docs://readme', level: 'debug' }));
      expect(answer.status).toBe(200);
      expectRpcError(answer, 'x', -32601);
    }
    expect(upstream.requests).toHaveLength(before);
  });

  verifies('mcp:notification', 'without an id is a notification: 202 and nothing else, no call upstream', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const before = upstream.requests.length;
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'nothing' } },
      { jsonrpc: '2.0', method: 'notifications/cancelled' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: {} },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: { odd: 1 } } },
      { jsonrpc: '2.0', method: 'notifications/unknown', params: { any: [] } },
      { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo', arguments: {} } },
      { jsonrpc: '2.0', id: 'srv-1', result: {} },
      { jsonrpc: '2.0', id: 7, error: { code: -32601, message: 'no' } },
    ]) {
      const answer = await mcp(app, owner, path, message);
      expect([JSON.stringify(message), answer.status, answer.text]).toEqual([JSON.stringify(message), 202, '']);
    }
    expect(upstream.requests).toHaveLength(before);
  });

  const ids = ['1', '0', '-0', '"1"', '""', '"text"', '9007199254740993', '123456789012345678901234567890', '1E400'];
  ids.push('1.50', '-17', '"\\u0041\\/\\"\\\\\\n"', '"ünï🌊"', '"\\ud800"', '"__proto__"', '"null"');
  for (const options of [{}, { sse: true }, { modernOnly: true }] as UpstreamOptions[]) {
    verifies(
      'mcp:id-kept',
      `has its id given back as it was written, from an upstream ${JSON.stringify(options)}`,
      async () => {
        const upstream = await start(options);
        const path = await connect(upstream.url);
        for (const id of ids) {
          for (const message of [
            `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"raw"}}`,
            ` { "jsonrpc":"2.0", "params" : {"name":"raw","id":5} ,\n"method":"tools\\/call", "\\u0069d"\t:\r\n${id} } `,
          ]) {
            const answer = await mcp(app, owner, path, message);
            // Older clients do not know the member that every result of 2026-07-28 has.
            const result = options.modernOnly
              ? RAW_TOOL_RESULT.replace('"resultType":"complete",', '')
              : RAW_TOOL_RESULT;
            expect(answer.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
          }
          const ping = await mcp(app, owner, path, `{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
          expect(ping.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
          const failed = await mcp(
            app,
            owner,
            path,
            `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"rpc_error"}}`,
          );
          expect(failed.text).toContain(`"id":${id},`);
          expect(failed.body.error.code).toBe(-32602);
        }
      },
    );
  }

  verifies('mcp:passes-through', 'passes byte for byte, and so does its answer, except for the id', async () => {
    const result = '{ "b" : 9007199254740993, "a":[ 1.10 ],"id":"inner", "result":{}, "\\u0061b":1 }';
    const upstream = closing(await startScripted(() => result));
    const path = await connect(upstream.url);
    const params = '{ "name":"x", "arguments":{"n":9007199254740993, "\\u0069d": 1.0 },"cursor" :null }';
    const answer = await mcp(app, owner, path, `{"jsonrpc":"2.0","id":"A","method":"odd/method","params":${params}}`);
    expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"A","result":${result}}`);
    expect(upstream.seen.at(-1)).toMatchObject({ method: 'odd/method', params: { name: 'x' } });
  });

  verifies('mcp:passes-through', 'passes its params byte for byte', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const params = '{ "name":"echo", "arguments":{"message":"x","n":9007199254740993, "\\u0069d": 1.0 } }';
    await mcp(app, owner, path, `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":${params}}`);
    expect(upstream.requests.at(-1)?.raw).toContain(`"params":${params}`);
  });

  for (const options of [{}, { sse: true }, { sessions: true }]) {
    verifies(
      ['mcp:passes-through', 'channel:sse'],
      `for tools, resources, prompts and completion is answered as the upstream ${JSON.stringify(options)} does`,
      async () => {
        const upstream = await start(options);
        const plain = await start();
        const path = await connect(upstream.url);
        const asked: [string, object][] = [
          ['tools/list', {}],
          ['tools/call', { name: 'repo.search', arguments: { query: 'q', limit: 3 } }],
          ['tools/call', { name: 'fail', arguments: {} }],
          ['tools/call', { name: 'rpc_error', arguments: {} }],
          ['tools/call', { name: 'unknown', arguments: {} }],
          ['resources/list', {}],
          ['resources/templates/list', {}],
          ['resources/read', { uri: 'docs://readme' }],
          ['resources/read', { uri: 'docs://pixel' }],
          ['resources/read', { uri: 'docs://none' }],
          ['prompts/list', {}],
          ['prompts/get', { name: 'review', arguments: { language: 'rust' } }],
          ['prompts/get', { name: 'none' }],
          ['completion/complete', { ref: {}, argument: { name: 'language', value: 'p' } }],
          ['unknown/method', {}],
        ];
        for (const [method, params] of asked) {
          const direct = await (await post(plain.url, method, params)).text();
          const answer = await mcp(app, owner, path, request(7, method, params));
          expect([method, answer.status, answer.text]).toEqual([method, 200, direct]);
        }
      },
    );
  }

  verifies('mcp:passes-through', 'pages of a list are the client’s to follow', async () => {
    const upstream = await start({ pageSize: 5 });
    const path = await connect(upstream.url);
    const first = await mcp(app, owner, path, request(1, 'tools/list'));
    expect(first.body.result.tools).toHaveLength(5);
    const cursor = first.body.result.nextCursor as string;
    const second = await mcp(app, owner, path, request(1, 'tools/list', { cursor }));
    expect(second.body.result.tools[0].name).toBe('slow');
  });

  verifies('mcp:passes-through', 'reaches an upstream of 2026-07-28 alone, with any params', async () => {
    const upstream = await start({ modernOnly: true });
    const path = await connect(upstream.url);
    const call = await mcp(app, owner, path, toolCall('a', 'echo', { message: 'hi' }, { 'x-own': 1 }));
    expect(call.body).toMatchObject({ id: 'a', result: { content: [{ text: 'hi' }] } });
    const seen = upstream.requests.at(-1);
    expect(seen?.headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'echo' });
    expect((seen?.body as Json).params._meta).toMatchObject({ 'x-own': 1 });
    for (const params of ['', ',"params":{}', ',"params":{"_meta":{}}', ',"params": { "_meta" : { } } ']) {
      const answer = await mcp(app, owner, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"${params}}`);
      expect([params, answer.body.result?.tools.length]).toEqual([params, 13]);
    }
    const read = await mcp(app, owner, path, request(1, 'resources/read', { uri: 'docs://pages/ünï' }));
    expect(read.body.result.contents[0].text).toBe('Page ünï');
    expect(upstream.count('server/discover')).toBe(1);
  });

  verifies('mcp:bad-request', '_meta that is not an object fails alone, on an upstream of 2026-07-28', async () => {
    const path = await connect((await start({ modernOnly: true })).url);
    for (const meta of ['"\\\\"', '[]', 'null']) {
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`;
      const { status, body } = await mcp(app, owner, path, text);
      expect([meta, [200, 400].includes(status), body?.jsonrpc]).toEqual([meta, true, '2.0']);
      expect(body.error?.code).not.toBe(-32603);
    }
  });
});

describe('a bad request', () => {
  let path: string;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const upstream = await startScripted(() => '{}');
    close = upstream.close;
    path = await connect(upstream.url);
  });
  afterAll(() => close());

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
    'null for params': [-32600, '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}'],
  };
  for (const [what, [code, text]] of Object.entries(bodies)) {
    verifies('mcp:bad-request', `with ${what} answers 400 and a JSON-RPC error`, async () => {
      const answer = await mcp(app, owner, path, text);
      expect(answer.status).toBe(400);
      expectRpcError(answer, answer.body.id, code);
    });
  }

  verifies('mcp:bad-request', 'over 16 MB answers 413 and a JSON-RPC error', async () => {
    const answer = await mcp(app, owner, path, request(1, 'x', { pad: 'x'.repeat(17 * 1024 * 1024) }));
    expect(answer.status).toBe(413);
    expectRpcError(answer, null);
  });

  verifies(
    'mcp:bad-request',
    'of an unknown protocol version answers 400 and -32022 with the supported versions',
    async () => {
      const prefix = 'io.modelcontextprotocol/';
      const _meta = { [`${prefix}protocolVersion`]: '2099-01-01', [`${prefix}clientCapabilities`]: {} };
      const asked = [
        await mcp(app, owner, path, request(1, 'tools/list'), { headers: { 'mcp-protocol-version': '1999-01-01' } }),
        await mcp(app, owner, path, request(1, 'server/discover', { _meta })),
      ];
      for (const [i, answer] of asked.entries()) {
        expect(answer.status).toBe(400);
        expectRpcError(answer, 1, -32022);
        expect(answer.body.error.data).toEqual({
          supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'],
          requested: i === 0 ? '1999-01-01' : '2099-01-01',
        });
      }
      for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
        const headers = { 'mcp-protocol-version': version };
        expect((await mcp(app, owner, path, request(1, 'tools/list'), { headers })).status).toBe(200);
      }
    },
  );

  it('from a page of a foreign site answers 403 and a JSON-RPC error; programs and local pages are served', async () => {
    for (const origin of ['https://evil.example', 'http://127.0.0.1.evil.example', 'null', 'http://localhost.evil']) {
      const answer = await mcp(app, owner, path, request(1, 'ping'), { headers: { origin } });
      expect([origin, answer.status]).toEqual([origin, 403]);
      expectRpcError(answer, null);
    }
    for (const origin of [app.url, 'http://localhost:6274', 'http://[::1]:1']) {
      const answer = await mcp(app, owner, path, request(1, 'ping'), { headers: { origin } });
      expect([origin, answer.status]).toEqual([origin, 200]);
    }
  });

  verifies('mcp:get-delete', 'by GET or DELETE answers 405 and names POST, in both forms of the path', async () => {
    for (const form of [path, path.replace('/connect', '')]) {
      for (const method of ['GET', 'DELETE']) {
        const headers = { accept: 'text/event-stream', 'mcp-session-id': 'smithery-stateless' };
        const answer = await send(app, owner, `${form}/mcp`, undefined, { method, headers });
        expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
        expectRpcError(answer, null);
      }
    }
  });

  verifies(
    'mcp:unknown-connection',
    'to an unknown or foreign connection answers 404, byte for byte alike',
    async () => {
      const upstream = await start();
      const own = await connect(upstream.url);
      expect((await mcp(app, owner, own, request(1, 'tools/list'))).status).toBe(200);
      const before = upstream.requests.length;
      const [, , namespace] = own.split('/');
      const answers = [
        await mcp(app, other, own, request(1, 'tools/list')),
        await mcp(app, app.operator, own, request(1, 'tools/list')),
        await mcp(app, owner, `/connect/${namespace}/${uniqueName()}`, request(1, 'tools/list')),
        await mcp(app, owner, `/connect/${uniqueName()}/${uniqueName()}`, request(1, 'tools/list')),
        await mcp(app, other, own.replace('/connect', ''), request(1, 'initialize')),
      ];
      await app.as(owner).delete(own).expect(200);
      answers.push(await mcp(app, owner, own, request(1, 'tools/list')));
      for (const answer of answers) {
        expect(answer.status).toBe(404);
        expectRpcError(answer, null);
      }
      // The hint of the owner differs; without it all are alike, and strangers never have another one.
      const alike = answers.map(({ body: { error, ...rest } }) =>
        JSON.stringify({ ...rest, ...error, data: undefined }),
      );
      expect(new Set(alike).size).toBe(1);
      expect(new Set([answers[0], answers[1], answers[4]].map(({ text }) => text)).size).toBe(1);
      expect(upstream.requests.slice(before).map(({ method }) => method)).toEqual([]);
    },
  );

  verifies('mcp:no-key', 'without a valid key answers 401, a challenge and a JSON-RPC error', async () => {
    const wrong = { ...owner, key: `slipway_${'x'.repeat(43)}` };
    for (const account of [undefined, wrong]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const body = method === 'POST' ? request(1, 'ping') : undefined;
        const answer = await send(app, account, `${path}/mcp`, body, { method });
        expect([method, answer.status]).toEqual([method, 401]);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
        expectRpcError(answer, null);
      }
    }
    const basic = { authorization: `Basic ${owner.key}` };
    expect((await mcp(app, undefined, path, request(1, 'ping'), { headers: basic })).status).toBe(401);
  });
});

describe('a failure of the upstream', () => {
  verifies('mcp:upstream-error', 'a JSON-RPC error keeps its code, message and data, byte for byte', async () => {
    const error = '{"data":{"n":9007199254740993,"field" : "city"},"message":"No\\u0021","code":-31999,"x":1}';
    for (const status of [200, 400, 404, 500]) {
      const upstream = closing(
        await startScripted(({ id }, res) => {
          res.writeHead(status, { 'content-type': 'application/json' });
          res.end(`{"error":${error},"id":${id},"jsonrpc":"2.0"}`);
        }),
      );
      const answer = await mcp(app, owner, await connect(upstream.url), toolCall('mine', 'x'));
      expect([answer.status, answer.text]).toEqual([200, `{"error":${error},"id":"mine","jsonrpc":"2.0"}`]);
    }
  });

  verifies(
    'mcp:upstream-error',
    'an error without an id, or with null for one, gets the id of the request',
    async () => {
      for (const id of ['"id":null,', '']) {
        const upstream = closing(
          await startScripted((_, res) => {
            res.writeHead(200, { 'content-type': 'application/json' });
            res.end(`{"jsonrpc":"2.0",${id}"error":{"code":-32000,"message":"No","data":[1]}}`);
          }),
        );
        const answer = await mcp(app, owner, await connect(upstream.url), toolCall('mine', 'x'));
        expect(answer.body).toEqual({ jsonrpc: '2.0', id: 'mine', error: { code: -32000, message: 'No', data: [1] } });
      }
    },
  );

  const down: FaultKind[] = ['html', 'not-found', 'forbidden', 'hangs-up', 'empty', 'garbage', 'not-rpc', 'redirect'];
  down.push('server-error', 'tls-self-signed', 'bad-protocol-version', 'unavailable', 'silent', 'slow-body', 'too-big');
  for (const kind of down) {
    verifies('mcp:upstream-down', `an upstream that is "${kind}" gives 200 and a JSON-RPC error`, async () => {
      const faulty = closing(await startFaulty(kind));
      const { path } = await createConnection(hasty, owner, { mcpUrl: faulty.url });
      for (const message of [toolCall('id', 'echo'), request('id', 'tools/list'), request('id', 'initialize')]) {
        const answer = await mcp(hasty, owner, path, message);
        expect(answer.status).toBe(200);
        expectRpcError(answer, 'id');
        const { code } = answer.body.error;
        expect(code >= -32768 && code <= -32000).toBe(false);
      }
    });
  }

  verifies(
    'mcp:upstream-down',
    'a refused port, and an upstream that dies later, give 200 and a JSON-RPC error',
    async () => {
      const upstream = await start();
      const dying = await connect(upstream.url);
      await mcp(app, owner, dying, request(1, 'tools/list'));
      await upstream.close();
      for (const path of [await connect(await refusedPort()), dying]) {
        const answer = await mcp(app, owner, path, request(1, 'tools/list'));
        expect(answer.status).toBe(200);
        expectRpcError(answer, 1);
      }
    },
  );

  verifies('mcp:upstream-down', 'a tool that is too slow gives 200 and a JSON-RPC error at the deadline', async () => {
    for (const options of [{}, { sse: true }]) {
      const path = await connect((await start(options)).url);
      // The session is open before, so that the call is under way when its time is over.
      const echo = toolCall(1, 'echo', { message: '' });
      await until(async () => 'result' in (await mcp(hasty, owner, path, echo)).body, 'the session is open');
      const from = performance.now();
      const answer = await mcp(hasty, owner, path, toolCall(1, 'hold'));
      expect(performance.now() - from).toBeLessThan(CALL_MS + MARGIN_MS);
      expect(answer.status).toBe(200);
      expectRpcError(answer, 1);
      expect(answer.body.error.message).toMatch(/unknown/);
    }
  });

  verifies(
    'mcp:auth-required',
    'a server that requires authorization is reported in a tool result, or an error, never as 401',
    async () => {
      const locked = closing(await startFaulty('needs-auth'));
      const expired = closing(await startScripted((_, res) => void res.writeHead(401).end()));
      for (const { url } of [locked, expired]) {
        const path = await connect(url);
        const call = await mcp(app, owner, path, toolCall('id', 'echo'));
        expect([call.status, call.headers.get('www-authenticate')]).toEqual([200, null]);
        expect(call.body).toEqual({
          jsonrpc: '2.0',
          id: 'id',
          result: { isError: true, content: [{ type: 'text', text: expect.stringContaining('401') }] },
        });
        for (const method of ['tools/list', 'resources/read', 'prompts/get']) {
          const answer = await mcp(app, owner, path, request('id', method, { name: 'x', uri: 'x' }));
          expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([200, null]);
          expectRpcError(answer, 'id');
          expect([-32001, -32603]).not.toContain(answer.body.error.code);
        }
      }
    },
  );
});

describe('progress', () => {
  /** Reports two steps, waits to be released, reports a third and answers. */
  const steps: ToolDef = {
    name: 'steps',
    inputSchema: {},
    call: async ({ args, params, exchange, held }) => {
      const progressToken = (params._meta as Json)?.progressToken;
      const report = (progress: number) =>
        exchange.send({ method: 'notifications/progress', params: { progressToken, progress, message: args.who } });
      report(1);
      report(2);
      await held();
      report(3);
      return { content: [{ type: 'text', text: String(args.who) }] };
    },
  };

  verifies('mcp:progress', 'reaches the client as it happens, under its own token, ahead of the answer', async () => {
    for (const token of ['"mine"', '1', '9007199254740993', '"\\u0041"']) {
      const upstream = await start({ tools: [steps] });
      const path = await connect(upstream.url);
      const message =
        `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
        `"params":{"name":"steps","arguments":{"who":"a"},"_meta":{"x":1.0, "progressToken" : ${token} }}}`;
      const response = await open(app, owner, `${path}/mcp`, message, { headers: mcpAccept });
      // The headers and the first events are here while the tool still runs.
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
      expect(response.headers.get('x-accel-buffering')).toBe('no');
      const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      while (eventsOf(text).length < 2 || !text.endsWith('\n\n')) text += (await reader.read()).value ?? '';
      expect(eventsOf(text)).toHaveLength(2);
      upstream.release();
      for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
      const events = eventsOf(text);
      for (const [i, event] of events.slice(0, 3).entries()) {
        expect(event).toBe(
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${i + 1},"message":"a"}}`,
        );
      }
      expect(events).toHaveLength(4);
      expect(JSON.parse(events[3])).toEqual({
        jsonrpc: '2.0',
        id: 1,
        result: { content: [{ type: 'text', text: 'a' }] },
      });
      expect(upstream.requests.at(-1)?.raw).not.toContain(`"progressToken" : ${token} `);
      expect(upstream.requests.at(-1)?.raw).toContain('"x":1.0');
    }
  });

  verifies(
    'mcp:progress',
    'of callers with one token and one id stays with each, and their tokens differ upstream',
    async () => {
      const upstream = await start({ tools: [steps] });
      const path = await connect(upstream.url);
      const callers = times(10, (i) => `caller-${i}`);
      const answers = callers.map((who) => mcp(app, owner, path, toolCall(1, 'steps', { who }, { progressToken: 1 })));
      await upstream.waitFor((u) => u.count('tools/call') === callers.length);
      upstream.release();
      for (const [i, { text }] of (await Promise.all(answers)).entries()) {
        const events = eventsOf(text).map((event) => JSON.parse(event));
        expect(events).toHaveLength(4);
        for (const event of events.slice(0, 3)) {
          expect(event.params).toMatchObject({ progressToken: 1, message: callers[i] });
        }
        expect(events[3].result.content[0].text).toBe(callers[i]);
      }
      const tokens = upstream.requests.map(({ body }) => (body as Json)?.params?._meta?.progressToken).filter(Boolean);
      expect(new Set(tokens).size).toBe(callers.length);
    },
  );

  verifies('mcp:progress', 'under another client’s token, or without a request, reaches no client', async () => {
    const leaky: ToolDef = {
      name: 'leaky',
      inputSchema: {},
      call: ({ exchange }) => {
        for (const progressToken of ['slipway-1', 'slipway-2', 1, 'mine', null, { a: 1 }]) {
          exchange.send({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
        }
        exchange.send({ method: 'notifications/progress' });
        return { content: [] };
      },
    };
    const upstream = await start({ tools: [leaky, steps] });
    const path = await connect(upstream.url);
    // Use up the first tokens, so that those the tool guesses are not this call's.
    for (const i of [1, 2, 3]) await mcp(app, owner, path, toolCall(i, 'leaky', {}, { progressToken: i }));
    for (const meta of [undefined, { progressToken: 'mine' }]) {
      const { text } = await mcp(app, owner, path, toolCall(1, 'leaky', {}, meta));
      expect(text).not.toContain('notifications/progress');
    }
  });

  verifies('mcp:progress', 'is left out for a client that takes no event stream', async () => {
    const path = await connect((await start()).url);
    const headers = { accept: 'application/json' };
    const message = toolCall(1, 'progress', { steps: 3 }, { progressToken: 1 });
    const answer = await mcp(app, owner, path, message, { headers });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body.result.content[0].text).toBe('3 steps done');
  });

  verifies('mcp:progress', 'extends the deadline of a call whose client receives it', async () => {
    const rounds = 12;
    const busy: ToolDef = {
      name: 'busy',
      inputSchema: {},
      call: async ({ params, exchange }) => {
        const progressToken = (params._meta as Json)?.progressToken;
        for (let progress = 1; progress <= rounds; progress++) {
          await exchange.delay(CALL_MS / 8);
          exchange.send({ method: 'notifications/progress', params: { progressToken, progress } });
        }
        return { content: [] };
      },
    };
    const path = await connect((await start({ tools: [busy] })).url);
    const { text } = await mcp(hasty, owner, path, toolCall(1, 'busy', {}, { progressToken: 1 }));
    const events = eventsOf(text).map((event) => JSON.parse(event));
    expect(events).toHaveLength(rounds + 1);
    expect(events.at(-1)).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } });
  });

  verifies(
    'mcp:long-calls',
    'log messages extend the time of a call, also of a client that takes no stream',
    async () => {
      const chatty: ToolDef = {
        name: 'chatty',
        inputSchema: {},
        call: async ({ exchange }) => {
          for (let i = 0; i < 12; i += 1) {
            await exchange.delay(CALL_MS / 8);
            exchange.send({ method: 'notifications/message', params: { level: 'info', data: i } });
          }
          return { content: [] };
        },
      };
      const path = await connect((await start({ tools: [chatty] })).url);
      for (const accept of ['application/json', 'application/json, text/event-stream']) {
        const { text } = await mcp(hasty, owner, path, toolCall(1, 'chatty'), { headers: { accept } });
        expect([accept, text]).toEqual([accept, expect.stringContaining('"result":{"content":[]}')]);
      }
    },
  );

  verifies(
    'mcp:long-calls',
    'a connection has its own time of silence, at its endpoint and its namespace',
    async () => {
      const path = await connect((await start({ sse: true })).url);
      const set = (callTimeoutMs: number | null) => app.as(owner).put(path, { callTimeoutMs });
      expect((await set(300)).body).toMatchObject({ callTimeoutMs: 300 });
      const [, , namespace, connectionId] = path.split('/');
      const late = / sent nothing for 0\.3 s: .* reports no progress\. .*unknown/;
      const calls: [string, string][] = [
        [`${path}/mcp`, 'hold'],
        [`/connect/${namespace}/.mcp`, `${connectionId}__hold`],
      ];
      for (const [endpoint, tool] of calls) {
        const answer = await send(app, owner, endpoint, toolCall(1, tool), { headers: mcpAccept });
        expectRpcError(answer, 1, -33003);
        expect(answer.body.error.message).toMatch(late);
      }
      for (const bad of [99, 3_600_001, 1.5, '300', {}]) {
        expect([bad, (await app.as(owner).put(path, { callTimeoutMs: bad })).status]).toEqual([bad, 400]);
      }
      expect((await set(null)).body).not.toHaveProperty('callTimeoutMs');
    },
  );

  verifies(
    'mcp:upstream-down',
    'a call that fails after its progress ends its stream with a JSON-RPC error',
    async () => {
      const broken: ToolDef = {
        name: 'broken',
        inputSchema: {},
        call: ({ params, exchange }) => {
          const progressToken = (params._meta as Json)?.progressToken;
          exchange.send({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
          exchange.cut('{"jsonrpc":"2.0","result":{"never":"whole"}}');
          return new Promise(() => undefined);
        },
      };
      const path = await connect((await start({ tools: [broken] })).url);
      const { status, text } = await mcp(app, owner, path, toolCall('id', 'broken', {}, { progressToken: 1 }));
      const events = eventsOf(text).map((event) => JSON.parse(event));
      expect([status, events.length]).toEqual([200, 2]);
      expect(events[1]).toMatchObject({ id: 'id', error: { message: expect.stringMatching(/unknown/) } });
    },
  );

  verifies('mcp:passes-through', 'other notifications ahead of an answer reach its client', async () => {
    const talk: ToolDef = {
      name: 'talk',
      inputSchema: {},
      call: ({ exchange }) => {
        exchange.send({ method: 'notifications/message', params: { level: 'info', data: 'line\none' } });
        return { content: [] };
      },
    };
    const path = await connect((await start({ tools: [talk] })).url);
    const events = eventsOf((await mcp(app, owner, path, toolCall(1, 'talk'))).text).map((event) => JSON.parse(event));
    expect(events).toEqual([
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'line\none' } },
      { jsonrpc: '2.0', id: 1, result: { content: [] } },
    ]);
  });
});
