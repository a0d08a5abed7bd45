/** The MCP endpoint of a connection: what passes. Failures that every door has are in `doors.e2e-spec.ts`. */
import { describe, expect } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { eventsOf, type Json, mcpAccept, open, request, times, toolCall } from '../../support/mcp/calls.js';
import { doorsOf, expectRpcError } from '../../support/mcp/doors.js';
import { sendJson } from '../../support/special-upstreams/scripted-upstream.js';
import { post, start } from '../../support/upstream/upstream-clients.js';
import { RAW_TOOL_RESULT, type ToolDef, type UpstreamOptions } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const { connected, scripted, ask } = doorsOf(app, owner);

describe('a request', () => {
  verifies('mcp:no-handshake', 'succeeds without a handshake, by both forms of the path', async () => {
    const { upstream, path } = await connected({ sessions: true });
    for (const form of [path, path.replace('/connect', '')]) {
      const answer = await ask(form, toolCall(1, 'echo', { message: 'hællo' }));
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.body).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'hællo' }] } });
    }
    expect(upstream.count('initialize')).toBe(1);
  });

  verifies('mcp:no-handshake', 'needs no Accept header and no known content type', async () => {
    const { path } = await connected();
    const headers = { accept: '*/*', 'content-type': 'text/plain' };
    const answer = await ask(path, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { headers });
    expect([answer.status, answer.body.result.tools.length]).toEqual([200, 13]);
  });

  verifies('mcp:eras', 'is -32600 without the member jsonrpc, with and without an id', async () => {
    const { upstream, path } = await connected();
    for (const text of ['{"method":"tools/list"}', '{"id":1,"method":"tools/list"}']) {
      const { status, body } = await ask(path, text);
      expect([text, status, body.error]).toEqual([text, 400, { code: -32600, message: 'jsonrpc must be "2.0"' }]);
    }
    expect(upstream.count('tools/list')).toBe(0);
  });

  verifies('mcp:session-ignored', 'gets no session id for smithery-stateless', async () => {
    const { upstream, path } = await connected({ sessions: true });
    const headers = { 'mcp-session-id': 'smithery-stateless' };
    const answer = await ask(path, request(1, 'tools/list'), { headers });
    expect([answer.status, answer.headers.get('mcp-session-id')]).toEqual([200, null]);
    const sent = upstream.requests.map(({ headers }) => headers['mcp-session-id']).filter(Boolean);
    expect(new Set(sent)).toEqual(upstream.sessions);
  });

  verifies('mcp:initialize', 'initialize describes the upstream in the client’s revision, in a session', async () => {
    const { upstream, path } = await connected({
      sessions: true,
      iconUrl: 'http://127.0.0.1/i.png',
      serverInfo: { 'x-own': [1] },
    });
    const clientInfo = { name: 'spec', version: '1' };
    for (const [asked, given] of [
      ['2025-11-25', '2025-11-25'],
      ['2025-03-26', '2025-03-26'],
      ['2024-11-05', '2024-11-05'],
      ['1999-01-01', '2025-11-25'],
      ['2026-07-28', '2025-11-25'],
    ]) {
      const params = { protocolVersion: asked, capabilities: { sampling: {}, roots: {} }, clientInfo };
      const answer = await ask(path, request('init', 'initialize', params));
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
  });

  verifies('mcp:initialize', 'ping gets the reply of Slipway, and session-wide methods do not exist', async () => {
    const { upstream, path } = await connected();
    const before = upstream.requests.length;
    expect((await ask(path, request(1, 'ping'))).text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
    for (const method of ['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
      const answer = await ask(path, request('x', method, { uri: 'docs://readme', level: 'debug' }));
      expectRpcError(answer, 200, 'x', -32601);
    }
    expect(upstream.requests).toHaveLength(before);
  });

  verifies('mcp:notification', 'without an id is a notification: 202 and nothing else, no call upstream', async () => {
    const { upstream, path } = await connected();
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
      const answer = await ask(path, message);
      expect([JSON.stringify(message), answer.status, answer.text]).toEqual([JSON.stringify(message), 202, '']);
    }
    expect(upstream.requests).toHaveLength(before);
  });

  const ids = ['1', '0', '-0', '"1"', '""', '"text"', '9007199254740993', '123456789012345678901234567890', '1E400'];
  ids.push('1.50', '-17', '"\\u0041\\/\\"\\\\\\n"', '"ünï🌊"', '"\\ud800"', '"__proto__"', '"null"');
  for (const options of [{}, { sse: true }, { modernOnly: true }] as UpstreamOptions[]) {
    verifies('mcp:passes-through', `has its id given back as written, ${JSON.stringify(options)}`, async () => {
      const { path } = await connected(options);
      for (const id of ids) {
        for (const message of [
          `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"raw"}}`,
          ` { "jsonrpc":"2.0", "params" : {"name":"raw","id":5} ,\n"method":"tools\\/call", "\\u0069d"\t:\r\n${id} } `,
        ]) {
          const answer = await ask(path, message);
          // Older clients do not know the member that every result of 2026-07-28 has.
          const result = RAW_TOOL_RESULT.replace(options.modernOnly ? '"resultType":"complete",' : '', '');
          expect(answer.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
        }
        const ping = await ask(path, `{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
        expect(ping.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
        const failed = await ask(
          path,
          `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"rpc_error"}}`,
        );
        expect(failed.text).toContain(`"id":${id},`);
        expect(failed.body.error.code).toBe(-32602);
      }
    });
  }

  verifies('mcp:passes-through', 'passes byte for byte, and so does its response, except for the id', async () => {
    const result = '{ "b" : 9007199254740993, "a":[ 1.10 ],"id":"inner", "result":{}, "\\u0061b":1 }';
    const { upstream, path } = await scripted(() => result);
    const params = '{ "name":"x", "arguments":{"n":9007199254740993, "\\u0069d": 1.0 },"cursor" :null }';
    const answer = await ask(path, `{"jsonrpc":"2.0","id":"A","method":"odd/method","params":${params}}`);
    expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"A","result":${result}}`);
    expect(upstream.seen.at(-1)).toMatchObject({ method: 'odd/method', params: { name: 'x' } });
  });

  for (const options of [{}, { sse: true }, { sessions: true }]) {
    verifies(
      ['mcp:passes-through', 'channel:sse'],
      `gets the reply of the upstream, ${JSON.stringify(options)}`,
      async () => {
        const { path } = await connected(options);
        const plain = await start();
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
          const answer = await ask(path, request(7, method, params));
          expect([method, answer.status, answer.text]).toEqual([method, 200, direct]);
        }
      },
    );
  }

  verifies('mcp:passes-through', 'reaches an upstream of 2026-07-28 alone, with any params', async () => {
    const { upstream, path } = await connected({ modernOnly: true });
    const call = await ask(path, toolCall('a', 'echo', { message: 'hi' }, { 'x-own': 1 }));
    expect(call.body).toMatchObject({ id: 'a', result: { content: [{ text: 'hi' }] } });
    const seen = upstream.requests.at(-1);
    expect(seen?.headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'echo' });
    expect((seen?.body as Json).params._meta).toMatchObject({ 'x-own': 1 });
    for (const params of ['', ',"params":{}', ',"params":{"_meta":{}}', ',"params": { "_meta" : { } } ']) {
      const answer = await ask(path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"${params}}`);
      expect([params, answer.body.result?.tools.length]).toEqual([params, 13]);
    }
    const read = await ask(path, request(1, 'resources/read', { uri: 'docs://pages/ünï' }));
    expect(read.body.result.contents[0].text).toBe('Page ünï');
    expect(upstream.count('server/discover')).toBe(1);
  });

  verifies('mcp:bad-request', '_meta that is not an object fails alone, on an upstream of 2026-07-28', async () => {
    const { path } = await connected({ modernOnly: true });
    for (const meta of ['"\\\\"', '[]', 'null']) {
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`;
      const { status, body } = await ask(path, text);
      expect([meta, [200, 400].includes(status), body?.jsonrpc]).toEqual([meta, true, '2.0']);
      expect(body.error?.code).not.toBe(-32603);
    }
  });
});

describe('a failure of the upstream', () => {
  verifies('mcp:upstream-error', 'a JSON-RPC error keeps its code, message and data, byte for byte', async () => {
    const error = '{"data":{"n":9007199254740993,"field" : "city"},"message":"No\\u0021","code":-31999,"x":1}';
    for (const status of [200, 400, 404, 500]) {
      const { path } = await scripted(({ id }, res) =>
        sendJson(res, `{"error":${error},"id":${id},"jsonrpc":"2.0"}`, status),
      );
      const answer = await ask(path, toolCall('mine', 'x'));
      expect([answer.status, answer.text]).toEqual([200, `{"error":${error},"id":"mine","jsonrpc":"2.0"}`]);
    }
  });

  verifies('mcp:upstream-error', 'an error without an id, or with null, gets that of the request', async () => {
    const error = { code: -32000, message: 'No', data: [1] };
    for (const id of ['"id":null,', '']) {
      const { path } = await scripted((_, res) =>
        sendJson(res, `{"jsonrpc":"2.0",${id}"error":${JSON.stringify(error)}}`),
      );
      expect((await ask(path, toolCall('mine', 'x'))).body).toEqual({ jsonrpc: '2.0', id: 'mine', error });
    }
  });
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

  verifies('mcp:progress', 'reaches the client as it happens, under its own token, ahead of the response', async () => {
    for (const token of ['"mine"', '1', '9007199254740993', '"\\u0041"']) {
      const { upstream, path } = await connected({ tools: [steps] });
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
      const reports = [1, 2, 3].map(
        (step) =>
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step},"message":"a"}}`,
      );
      expect(eventsOf(text)).toEqual([
        ...reports,
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}',
      ]);
      expect(upstream.requests.at(-1)?.raw).not.toContain(`"progressToken" : ${token} `);
      expect(upstream.requests.at(-1)?.raw).toContain('"x":1.0');
    }
  });

  verifies('mcp:progress', 'stays with each caller of the same token and id; upstream they differ', async () => {
    const { upstream, path } = await connected({ tools: [steps] });
    const callers = times(10, (i) => `caller-${i}`);
    const answers = callers.map((who) => ask(path, toolCall(1, 'steps', { who }, { progressToken: 1 })));
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
  });

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
    const { path } = await connected({ tools: [leaky, steps] });
    // Use up the first tokens, so that those the tool guesses are not this call's.
    for (const i of [1, 2, 3]) await ask(path, toolCall(i, 'leaky', {}, { progressToken: i }));
    for (const meta of [undefined, { progressToken: 'mine' }]) {
      const { text } = await ask(path, toolCall(1, 'leaky', {}, meta));
      expect(text).not.toContain('notifications/progress');
    }
  });

  verifies('mcp:progress', 'is left out for a client that takes no event stream', async () => {
    const { path } = await connected();
    const headers = { accept: 'application/json' };
    const message = toolCall(1, 'progress', { steps: 3 }, { progressToken: 1 });
    const answer = await ask(path, message, { headers });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body.result.content[0].text).toBe('3 steps done');
  });

  verifies('mcp:upstream-down', 'a call that fails after its progress closes its stream with an error', async () => {
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
    const { path } = await connected({ tools: [broken] });
    const { status, text } = await ask(path, toolCall('id', 'broken', {}, { progressToken: 1 }));
    const events = eventsOf(text).map((event) => JSON.parse(event));
    expect([status, events.length]).toEqual([200, 2]);
    expect(events[1]).toMatchObject({ id: 'id', error: { message: expect.stringMatching(/unknown/) } });
  });
});
