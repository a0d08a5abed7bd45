import { describe, expect } from '@jest/globals';
import type { McpCall } from '../../../src/mcp/protocol/channel.js';
import { authRequired, UpstreamAuthRequiredError } from '../../../src/mcp/protocol/mcp-errors.js';
import { request, type Json } from '../../support/mcp/calls.js';
import { ask, askModern, initialize, messagesOf, modern, post } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint } from '../../support/mcp/mcp-endpoint.js';
import { ScriptedChannel } from '../../support/mcp/scripted-channel.js';
import { until } from '../../support/until.js';
import { RAW_TOOL_RESULT } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const prefix = 'io.modelcontextprotocol/';
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
const call = (id: unknown, name = 'x', more: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {}, ...more },
});
type EraScript = ConstructorParameters<typeof ScriptedChannel>[1];
const onLegacy = (script: EraScript) => startMcpEndpoint(new ScriptedChannel('legacy', script));
const onModern = (script: EraScript) => startMcpEndpoint(new ScriptedChannel('modern', script));

describe('a client of 2026-07-28', () => {
  verifies('mcp:eras', 'discovers us: our revisions, and what the upstream can', async () => {
    for (const { url, channel } of [await onLegacy(() => ({})), await onModern(() => ({}))]) {
      const { status, body } = await askModern(url, 'server/discover');
      expect(status).toBe(200);
      expect(body.result).toEqual({
        resultType: 'complete',
        ttlMs: 0,
        cacheScope: 'private',
        supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'],
        capabilities: {
          tools: { listChanged: true },
          prompts: {},
          resources: { subscribe: true, listChanged: true },
          ...(channel.era === 'modern' ? { logging: {} } : {}),
        },
        _meta: { [`${prefix}serverInfo`]: { name: 'scripted', version: '1' } },
      });
      expect(channel.calls).toEqual([]);
    }
  });

  verifies('mcp:eras', 'gets 404 and -32601 for methods that its revision or its upstream does not have', async () => {
    const { url, channel } = await onLegacy(() => ({ error: { code: -32601, message: 'Method not found' } }));
    for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe']) {
      const { status, body } = await askModern(url, method, { level: 'info', uri: 'a' });
      expect([method, status, body.error.code, body.id]).toEqual([method, 404, -32601, 1]);
    }
    expect(channel.calls).toEqual([]);
    const odd = await askModern(url, 'odd/method');
    expect([odd.status, odd.body.error.code]).toEqual([404, -32601]);
  });

  verifies('mcp:eras', 'neither receives a session nor needs one, and its notifications are accepted', async () => {
    const { url } = await onModern(() => text('done'));
    const { body, headers } = modern('tools/call', { name: 'x' });
    const ignored = { ...headers, 'mcp-session-id': 'any', 'last-event-id': '7' };
    const answer = await ask(url, body, ignored);
    expect([answer.status, answer.headers.get('mcp-session-id')]).toEqual([200, null]);
    const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    const taken = await ask(url, note, { 'mcp-protocol-version': '2026-07-28' });
    expect([taken.status, taken.text]).toEqual([202, '']);
  });

  verifies('mcp:passes-through', 'exchanges params and results byte for byte with an upstream of its era', async () => {
    const { url, channel } = await onModern(() => RAW_TOOL_RESULT);
    const { headers } = modern('tools/call', { name: 'x' });
    const own = '{"name":"x" , "arguments":{"b":9007199254740993,"a":1.0}';
    const meta = `"${prefix}protocolVersion":"2026-07-28", "x-own" : 1.50,"${prefix}clientCapabilities":{}`;
    const body = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":${own},"_meta":{${meta}}}}`;
    const answer = await ask(url, body, headers);
    expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"A","result":${RAW_TOOL_RESULT}}`);
    expect(channel.calls[0]?.params).toBe(`${own},"_meta":{ "x-own" : 1.50}}`);
    const plain = modern('tools/call', { name: 'x' });
    await ask(url, plain.body, plain.headers);
    expect(channel.calls[1]?.params).toBe('{"name":"x"}');
  });

  verifies('mcp:bridge', 'reads what its revision demands where an upstream of its era left that out', async () => {
    const { url } = await onModern(({ method }) =>
      method === 'tools/call' ? text('done') : { resources: [], ttlMs: 5 },
    );
    const called = await askModern(url, 'tools/call', { name: 'x' });
    expect(called.body.result).toEqual({ resultType: 'complete', ...text('done') });
    const listed = await askModern(url, 'resources/list');
    expect(listed.body.result).toEqual({ resultType: 'complete', cacheScope: 'private', resources: [], ttlMs: 5 });
  });

  verifies('mcp:bridge', 'reads the lists of a legacy upstream in its revision’s form', async () => {
    const annotated = (name: unknown) => ({
      type: 'object',
      properties: { a: { type: 'string', 'x-mcp-header': name } },
    });
    const tools = [
      { name: 'one', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' }, n: 1 },
      { name: 'good', inputSchema: annotated('Region') },
      { name: 'bad', inputSchema: annotated('no token') },
    ];
    const { url } = await onLegacy(({ method }) =>
      method === 'tools/list' ? { tools, nextCursor: '' } : { contents: [] },
    );
    const { body } = await askModern(url, 'tools/list');
    const marks = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
    const [{ execution: _, ...one }, good] = tools as Json[];
    expect(body.result).toEqual({ ...marks, tools: [one, good], nextCursor: '' });
    expect((await askModern(url, 'resources/read', { uri: 'a' })).body.result).toEqual({ ...marks, contents: [] });

    // Known from the list, the header is checked from now on.
    const given = modern('tools/call', { name: 'good', arguments: { a: 'ü' } });
    const refused = await ask(url, given.body, { ...given.headers, 'mcp-param-region': 'eu' });
    expect([refused.status, refused.body.error.code]).toEqual([400, -32020]);
    const encoded = `=?base64?${Buffer.from('ü').toString('base64')}?=`;
    expect((await ask(url, given.body, { ...given.headers, 'mcp-param-region': encoded })).status).toBe(200);
  });

  verifies('mcp:bridge', 'calls a legacy upstream, which sees nothing of the revision', async () => {
    const { url, channel } = await onLegacy((given) => {
      given.onNotification?.('{"method":"notifications/tools/list_changed"}', 'notifications/tools/list_changed');
      const log = '{"method":"notifications/message","params":{"level":"info","data":1}}';
      given.onNotification?.(log, 'notifications/message');
      return '{"content":[],"n":9007199254740993}';
    });
    const options = { capabilities: { elicitation: {}, sampling: {} }, meta: { traceparent: 't', [`${prefix}x`]: 1 } };
    const quiet = await askModern(url, 'tools/call', { name: 'x' }, options);
    expect(quiet.text).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"n":9007199254740993}}',
    );
    expect(channel.calls[0]).toMatchObject({ params: '{"name":"x","_meta":{"traceparent":"t"}}' });
    expect(channel.calls[0]?.profile?.capabilities).toEqual(options.capabilities);
    const levels: [string, number][] = [
      ['warning', 0],
      ['info', 1],
    ];
    for (const [level, count] of levels) {
      const answer = await askModern(url, 'tools/call', { name: 'x' }, { meta: { [`${prefix}logLevel`]: level } });
      expect([level, answer.events.length]).toEqual([level, count]);
    }
    expect(channel.calls.at(-1)?.params).toBe('{"name":"x"}');
  });

  verifies('mcp:bridge', 'receives the errors of a legacy upstream with codes of its revision', async () => {
    const cases: [code: number, method: string, expected: object, status: number][] = [
      [-32002, 'resources/read', { code: -32602, data: { uri: 'a' } }, 200],
      [-32002, 'tools/call', { code: -32603, data: { upstream: { code: -32002, message: 'No' } } }, 200],
      [-32001, 'tools/call', { code: -32603, data: { upstream: { code: -32001, message: 'No' } } }, 200],
      [-32021, 'tools/call', { code: -32603, data: { upstream: { code: -32021, message: 'No' } } }, 200],
      [-32602, 'tools/call', { code: -32602 }, 200],
      [-31999, 'tools/call', { code: -31999 }, 200],
      [-32601, 'prompts/list', { code: -32601 }, 404],
    ];
    for (const [code, method, expected, status] of cases) {
      const { url } = await onLegacy(() => ({ error: { code, message: 'No' } }));
      const answer = await askModern(url, method, method === 'tools/call' ? { name: 'x' } : { uri: 'a' });
      expect([code, answer.status, answer.body]).toEqual([
        code,
        status,
        { jsonrpc: '2.0', id: 1, error: expect.objectContaining(expected) },
      ]);
    }
  });

  verifies('mcp:input', 'receives requests of an upstream of its era unchanged', async () => {
    const question =
      '{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}},"requestState":"s\\u0041"}';
    const { url, channel } = await onModern(({ params }) =>
      params?.includes('inputResponses') ? text('done') : question,
    );
    const capabilities = { roots: {}, extensions: { 'a.b/c': {} }, elicitation: { form: {}, url: {} } };
    const first = await askModern(url, 'tools/call', { name: 'x' }, { capabilities });
    expect(first.text).toBe(`{"jsonrpc":"2.0","id":1,"result":${question}}`);
    const retry = { name: 'x', inputResponses: { q: { roots: [] } }, requestState: 'sA' };
    await askModern(url, 'tools/call', retry, { capabilities });
    expect(channel.calls.map(({ profile }) => profile?.capabilities)).toEqual([capabilities, capabilities]);
    expect(JSON.parse(channel.calls[1]?.params ?? '')).toEqual(retry);
  });

  verifies('mcp:input', 'without a capability that its upstream needs gets -32021', async () => {
    const data = {
      requiredCapabilities: { elicitation: { url: {} } },
      elicitations: [{ mode: 'url', url: 'https://a.example/x', message: 'Visit' }],
    };
    const error = { code: -32021, message: 'No. Open https://a.example/x , then call again.', data };
    const { url } = await onModern(() => ({ error: { ...error, message: 'No' } }));
    for (const capabilities of [{}, { elicitation: {} }]) {
      const answer = await askModern(url, 'tools/call', { name: 'x' }, { capabilities });
      expect([answer.status, answer.body.error]).toEqual([400, error]);
    }
    const has = await askModern(url, 'tools/call', { name: 'x' }, { capabilities: { elicitation: { url: {} } } });
    expect([has.status, has.body.error.code, has.body.error.data.upstream.code]).toEqual([200, -32603, -32021]);
  });

  verifies('mcp:input', 'receives the URL that a legacy upstream requires, and continues', async () => {
    const elicitations = [{ mode: 'url', elicitationId: 'e', url: 'https://a.example/x', message: 'Visit' }];
    let visited = false;
    const { url, channel } = await onLegacy(() =>
      visited ? text('done') : { error: { code: -32042, message: 'Visit first', data: { elicitations } } },
    );
    const able = { capabilities: { elicitation: { url: {} } } };
    const led = await askModern(url, 'tools/call', { name: 'x' }, able);
    const question = {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Visit', url: 'https://a.example/x' },
    };
    expect(led.body.result).toEqual({ resultType: 'input_required', inputRequests: { 'elicitation-1': question } });
    const unable = await askModern(url, 'tools/call', { name: 'x' }, { capabilities: { elicitation: {} } });
    const message = 'Visit first. Open https://a.example/x , then call again.';
    const data = { requiredCapabilities: { elicitation: { url: {} } }, elicitations };
    expect([unable.status, unable.body.error]).toEqual([400, { code: -32021, message, data }]);
    visited = true;
    const retry = (action: string) =>
      askModern(url, 'tools/call', { name: 'x', inputResponses: { 'elicitation-1': { action } } }, able);
    expect((await retry('accept')).body.result).toEqual({ resultType: 'complete', ...text('done') });
    expect(channel.calls.at(-1)?.params).toBe('{"name":"x"}');
    const before = channel.calls.length;
    expect((await retry('decline')).body.result).toMatchObject({ isError: true });
    expect(channel.calls).toHaveLength(before);
  });

  verifies('mcp:vanish', 'cancels its call by closing its connection', async () => {
    const { url, channel } = await onModern(() => new Promise(() => undefined));
    const leaving = new AbortController();
    const { body, headers } = modern('tools/call', { name: 'x' });
    const gone = expect(post(url, body, headers, leaving.signal)).rejects.toThrow();
    await until(() => channel.running === 1, 'the call runs');
    leaving.abort();
    await gone;
    await until(() => channel.running === 0, 'the call is cancelled');
  });
});

describe('a client of 2025-11-25 and older', () => {
  verifies('mcp:bridge', 'reads a modern upstream’s results in its revision’s form', async () => {
    const modernOnly = '"resultType":"complete", "ttlMs":5,"cacheScope":"public"';
    const own = `"_meta":{"${prefix}serverInfo":{"name":"a"},"x-own":1.50}`;
    const { url } = await onModern(({ method }) =>
      method === 'tools/call'
        ? `{${modernOnly},"content":[{"n":9007199254740993}],${own}}`
        : `{${modernOnly},"prompts":[]}`,
    );
    const called = await ask(url, call('A'));
    expect(called.text).toBe(
      '{"jsonrpc":"2.0","id":"A","result":{"content":[{"n":9007199254740993}],"_meta":{"x-own":1.50}}}',
    );
    const listed = await ask(url, request(1, 'prompts/list'));
    expect(listed.text).toBe('{"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}');
  });

  verifies('mcp:bridge', 'gets structured output as the object its revision demands', async () => {
    const list = { type: 'array', items: { $ref: '#/$defs/a' }, $defs: { a: { type: 'number' } } };
    const either = { oneOf: [{ type: 'object' }, list] };
    const tools = [
      { name: 'list', inputSchema: {}, outputSchema: list },
      { name: 'either', inputSchema: {}, outputSchema: either },
      { name: 'object', inputSchema: {}, outputSchema: { type: 'object' } },
    ];
    const given: Record<string, unknown> = { list: [1, 2], either: { a: 1 }, object: { b: 2 } };
    const { url } = await onModern(({ method, params }) => {
      if (method === 'tools/list') return { resultType: 'complete', tools };
      const { name } = JSON.parse(params ?? '') as { name: string };
      return { resultType: 'complete', content: [], structuredContent: given[name] };
    });
    const { body } = await ask(url, request(1, 'tools/list'));
    const schemas = body.result.tools.map(({ outputSchema }: Json) => outputSchema);
    expect(schemas[0]).toEqual({
      type: 'object',
      properties: { result: { ...list, items: { $ref: '#/properties/result/$defs/a' } } },
      required: ['result'],
    });
    expect(schemas[1].properties.result.oneOf).toHaveLength(2);
    expect(schemas[2]).toEqual({ type: 'object' });
    const output = async (name: string) => (await ask(url, call(1, name))).body.result;
    expect(await output('list')).toEqual({
      content: [{ type: 'text', text: '[1,2]' }],
      structuredContent: { result: [1, 2] },
    });
    expect(await output('either')).toEqual({ content: [], structuredContent: { result: { a: 1 } } });
    expect(await output('object')).toEqual({ content: [], structuredContent: { b: 2 } });
  });

  verifies('mcp:bridge', 'gets as text what its old revision does not know', async () => {
    const content = [
      { type: 'resource_link', uri: 'a://b', name: 'b' },
      { type: 'audio', data: 'AA==', mimeType: 'audio/wav' },
      { type: 'text', text: 't' },
    ];
    const { url } = await onModern(() => ({ resultType: 'complete', content, structuredContent: { a: 1 } }));
    const types = async (version: string) => {
      const session = await initialize(url, {}, version);
      const { result } = (await ask(url, call(1), session)).body;
      return [...result.content.map(({ type }: Json) => type), 'structuredContent' in result];
    };
    expect(await types('2025-11-25')).toEqual(['resource_link', 'audio', 'text', true]);
    expect(await types('2025-06-18')).toEqual(['resource_link', 'audio', 'text', true]);
    expect(await types('2025-03-26')).toEqual(['text', 'audio', 'text', false]);
    expect(await types('2024-11-05')).toEqual(['text', 'text', 'text', false]);
  });

  verifies('mcp:bridge', 'receives the errors of a modern upstream with codes of its revision', async () => {
    const missing = { code: -32602, message: 'No', data: { uri: 'a' } };
    const { url } = await onModern(() => ({ error: missing }));
    const read = await ask(url, request(1, 'resources/read', { uri: 'a' }));
    expect([read.status, read.body.error]).toEqual([200, { ...missing, code: -32002 }]);
    expect((await ask(url, call(1))).body.error).toEqual(missing);
  });

  const question = {
    a: { method: 'elicitation/create', params: { mode: 'form', message: 'Who?', requestedSchema: {} } },
    b: { method: 'roots/list' },
  };
  /** Asks both questions, then answers what it was told. */
  const asking = () =>
    onModern(({ params }) => {
      const { inputResponses, requestState } = JSON.parse(params ?? '{}');
      if (requestState !== 'é"1') {
        return `{"resultType":"input_required","inputRequests":${JSON.stringify(question)},"requestState":"\\u00e9\\"1"}`;
      }
      return { resultType: 'complete', ...text(JSON.stringify(inputResponses)) };
    });

  verifies('mcp:input', 'receives the requests of a modern upstream, and its call continues', async () => {
    const { url, channel } = await asking();
    const session = await initialize(url, { elicitation: {}, roots: { listChanged: true } });
    const stream = messagesOf(await post(url, call(1), session));
    for (const [result] of [[{ action: 'accept', content: { n: 'x' } }], [{ roots: [] }]]) {
      const asked = (await stream.next()).value;
      expect([asked.method, asked.params]).toEqual(
        asked.method === 'roots/list' ? ['roots/list', undefined] : ['elicitation/create', question.a.params],
      );
      const answered = await ask(
        url,
        `{"jsonrpc":"2.0","id":"${asked.id}","result":${JSON.stringify(result)}}`,
        session,
      );
      expect([answered.status, answered.text]).toEqual([202, '']);
    }
    const answer = (await stream.next()).value;
    expect(JSON.parse(answer.result.content[0].text)).toEqual({
      a: { action: 'accept', content: { n: 'x' } },
      b: { roots: [] },
    });
    expect((await stream.next()).done).toBe(true);
    expect(channel.calls.map(({ profile }) => profile?.capabilities)).toEqual([
      { elicitation: {}, roots: { listChanged: true } },
      { elicitation: {}, roots: { listChanged: true } },
    ]);
    expect(channel.calls[1]?.params).toContain('"requestState":"\\u00e9\\"1"');
  });

  verifies('mcp:input', 'without session, stream or capability gets an error with the request', async () => {
    const { url } = await asking();
    const able = await initialize(url, { elicitation: {}, roots: {} });
    const unable = await initialize(url, { elicitation: {} });
    const cases = [{}, { ...able, accept: 'application/json' }, unable];
    for (const headers of cases) {
      const { status, body } = await ask(url, call(1), headers);
      expect([status, body.result.isError]).toEqual([200, true]);
      expect(body.result.content[0].text).toContain('roots');
      const other = request(1, 'prompts/get', { name: 'x' });
      expect((await ask(url, other, headers)).body.error.code).toBe(-32603);
    }
  });

  verifies('mcp:bridge', 'is given no task to follow, which it never declared to take', async () => {
    const { url } = await onModern(() => ({ resultType: 'task', taskId: 't' }));
    expect((await ask(url, call(1))).body.result).toMatchObject({ isError: true });
  });

  verifies('mcp:input', 'receives a bounded number of requests', async () => {
    const { url, channel } = await onModern(() => ({ resultType: 'input_required', requestState: 'again' }));
    const { body } = await ask(url, call(1), await initialize(url));
    expect(body.result).toMatchObject({ isError: true });
    expect(channel.calls).toHaveLength(9);
  });

  verifies('mcp:input', 'is sent to a page only if its revision has that, and with an id', async () => {
    const page = { method: 'elicitation/create', params: { mode: 'url', message: 'Visit', url: 'https://a.example' } };
    const { url, channel } = await onModern(({ params }) =>
      params?.includes('inputResponses')
        ? text('done')
        : { resultType: 'input_required', inputRequests: { page }, requestState: 's' },
    );
    const capabilities = { elicitation: { form: {}, url: {} } };
    const old = await initialize(url, capabilities, '2025-06-18');
    const refused = (await ask(url, call(1), old)).body.result;
    expect(refused).toMatchObject({ isError: true });
    expect(refused.content[0].text).toContain('https://a.example');
    expect(channel.calls[0]?.profile?.capabilities).toEqual({ elicitation: {} });

    const session = await initialize(url, capabilities);
    const stream = messagesOf(await post(url, call(1), session));
    const asked = (await stream.next()).value;
    expect(asked.params).toEqual({ ...page.params, elicitationId: expect.stringMatching(/^[\w-]{36}$/) });
    await ask(url, { jsonrpc: '2.0', id: asked.id, result: { action: 'accept' } }, session);
    expect((await stream.next()).value.result).toEqual(text('done'));
  });

  verifies('mcp:input', 'receives what a legacy upstream asks and it can answer, in its session', async () => {
    const answers: unknown[] = [];
    const { url, channel } = await onLegacy(async ({ onRequest }) => {
      answers.push(await onRequest?.('sampling/createMessage', '{"n":9007199254740993}'));
      answers.push(await onRequest?.('roots/list', undefined));
      return text('done');
    });
    const session = await initialize(url, { sampling: {} });
    const stream = messagesOf(await post(url, call(1), session));
    const asked = (await stream.next()).value;
    const result = '{"role":"assistant", "n":9007199254740993}';
    await ask(url, `{"jsonrpc":"2.0","id":"${asked.id}","result":${result}}`, session);
    expect((await stream.next()).value.result).toEqual(text('done'));
    expect(answers).toEqual([{ result }, { error: expect.objectContaining({ code: -32601 }) }]);
    expect(channel.calls[0]?.profile).toEqual({
      key: expect.stringMatching(/^[\w-]{22}$/),
      capabilities: { sampling: {} },
      onRequest: expect.any(Function),
    });
    // Somebody who can be asked nothing shares the upstream session of everybody.
    await ask(url, call(1), await initialize(url));
    expect(channel.calls[1]?.profile).toBeUndefined();
  });

  verifies('mcp:vanish', 'leaves no request and no call behind when it disconnects during a request', async () => {
    const { url, channel } = await onLegacy(async ({ onRequest }) => ({
      answer: await onRequest?.('roots/list', undefined),
    }));
    const leaving = new AbortController();
    // Clients of newer revisions may come back to the stream: `mcp:resume`.
    const session = await initialize(url, { roots: {} }, '2025-03-26');
    const response = await post(url, call(1), session, leaving.signal);
    const asked = (await messagesOf(response).next()).value;
    leaving.abort();
    await until(() => channel.running === 0, 'the call is over');
    const late = await ask(url, { jsonrpc: '2.0', id: asked.id, result: { roots: [] } }, session);
    expect(late.status).toBe(202);
  });
});

describe('an upstream that requires authorization', () => {
  const setupUrl = 'https://slipway.example/setup/1';
  const locked = (era: 'legacy' | 'modern') => {
    const channel = new ScriptedChannel(era, ({ params }) => {
      if (params?.includes('in!')) return text('in');
      throw new UpstreamAuthRequiredError(authRequired.headers, [], 'unauthorized', setupUrl);
    });
    return channel;
  };

  for (const era of ['legacy', 'modern'] as const) {
    verifies(['mcp:auth-required', 'mcp:input'], `leads a client of 2026-07-28 to its page (${era})`, async () => {
      const { url } = await startMcpEndpoint(locked(era));
      const able = { capabilities: { elicitation: { url: {} } } };
      const { body } = await askModern(url, 'tools/call', { name: 'x' }, able);
      expect(body.result).toMatchObject({ resultType: 'input_required' });
      const [[key, question]] = Object.entries(body.result.inputRequests) as [[string, Json]];
      expect(question).toMatchObject({ method: 'elicitation/create', params: { mode: 'url', url: setupUrl } });
      const retry = (action: string, name: string) =>
        askModern(url, 'tools/call', { name, inputResponses: { [key]: { action } } }, able);
      expect((await retry('accept', 'in!')).body.result.content).toEqual(text('in').content);
      expect((await retry('cancel', 'in!')).body.result).toMatchObject({ isError: true });
      expect((await askModern(url, 'tools/list', {}, able)).body.error).toMatchObject({
        code: -33001,
        data: { setupUrl },
      });
      const plain = await askModern(url, 'tools/call', { name: 'x' });
      expect([plain.status, plain.body.result.isError]).toEqual([200, true]);
      expect(plain.body.result.content[0].text).toContain(setupUrl);
    });

    verifies('mcp:auth-required', `leads a client of 2025-11-25 to its page by -32042 (${era})`, async () => {
      const { url } = await startMcpEndpoint(locked(era));
      const session = await initialize(url, { elicitation: { url: {} } });
      const { status, body } = await ask(url, call(1), session);
      expect([status, body.error.code]).toEqual([200, -32042]);
      expect(body.error.data.elicitations).toEqual([
        { mode: 'url', url: setupUrl, message: expect.any(String), elicitationId: expect.any(String) },
      ]);
      const plain = await ask(url, call(1), await initialize(url, { elicitation: {} }));
      expect(plain.body.result.isError).toBe(true);
      expect(plain.body.result.content[0].text).toContain(setupUrl);
      const list = await ask(url, request(1, 'tools/list'));
      expect(list.body.error).toMatchObject({ code: -33001, data: { setupUrl } });
    });
  }
});

describe('a batch', () => {
  verifies('mcp:batch', 'is taken from a client of 2025-03-26, and each message answered for itself', async () => {
    const { url } = await onLegacy(({ params }) =>
      params?.includes('bad') ? { error: { code: -32602, message: 'No' } } : '{"n":9007199254740993}',
    );
    const session = await initialize(url, {}, '2025-03-26');
    const batch = [
      call('a'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      call(2, 'bad'),
      request(3, 'ping'),
      request(4, 'initialize', {}),
    ];
    const { status, text: answer, body } = await ask(url, batch, session);
    expect(status).toBe(200);
    expect(answer).toContain('{"n":9007199254740993}');
    expect(body.map(({ id, error }: Json) => [id, error?.code])).toEqual([
      ['a', undefined],
      [2, -32602],
      [3, undefined],
      [null, -32600],
    ]);
    expect((await ask(url, [batch[1]], session)).status).toBe(202);
  });

  verifies('mcp:batch', 'is refused from others, empty, too long, or with a modern message in it', async () => {
    const { url } = await onLegacy(() => ({}));
    const old = await initialize(url, {}, '2025-03-26');
    const cases: [unknown[], Record<string, string>][] = [
      [[call(1)], {}],
      [[call(1)], await initialize(url, {}, '2025-11-25')],
      [[], old],
      [[5], old],
      [Array.from({ length: 101 }, (_, i) => call(i)), old],
      [[call(1), modern('tools/list').body], old],
    ];
    for (const [batch, headers] of cases) {
      const { status, body } = await ask(url, batch, headers);
      expect([status, body.error.code]).toEqual([400, -32600]);
    }
  });
});

describe('the requests of one caller', () => {
  longVerifies('mcp:vanish', 'are bounded in number, and free their slots when they complete', async () => {
    const { url, channel } = await onLegacy(() => new Promise(() => undefined));
    const leaving = new AbortController();
    const held = Array.from({ length: 1_024 }, (_, i) => post(url, call(i), {}, leaving.signal).catch(() => undefined));
    await until(() => channel.running === 1_024, 'all of them run');
    const more = await ask(url, call(1));
    expect([more.status, more.headers.get('retry-after'), more.body.jsonrpc]).toEqual([429, '1', '2.0']);
    const ping = request(1, 'ping');
    expect((await ask(url, ping, { authorization: 'Bearer two' })).status).toBe(200);
    leaving.abort();
    await Promise.all(held);
    await until(async () => (await ask(url, ping)).status === 200, 'there is room again');
    expect(channel.running).toBe(0);
  });
});

describe('log messages', () => {
  const logging = (channel: McpCall) => {
    for (const level of ['debug', 'warning', 'odd']) {
      const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: 1 } });
      channel.onNotification?.(note, 'notifications/message');
    }
    return text('done');
  };

  for (const era of ['legacy', 'modern'] as const) {
    verifies('mcp:session', `come in the level a session asked for (${era} upstream)`, async () => {
      const { url, channel } = await startMcpEndpoint(new ScriptedChannel(era, logging));
      const session = await initialize(url);
      const set = (level: string, headers: Record<string, string> = session) =>
        ask(url, request(1, 'logging/setLevel', { level }), headers);
      expect((await ask(url, call(1), session)).events).toHaveLength(3);
      expect((await set('warning')).body.result).toEqual({});
      expect((await ask(url, call(1), session)).events).toHaveLength(2);
      const meta = JSON.parse(channel.calls.at(-1)?.params ?? '')._meta;
      expect(meta).toEqual(era === 'modern' ? { [`${prefix}logLevel`]: 'warning' } : undefined);
      expect((await set('loud')).body.error.code).toBe(-32602);
      expect((await set('info', {})).body.error.code).toBe(-32601);
      // Another session of the same caller has its own.
      expect((await ask(url, call(1), await initialize(url))).events).toHaveLength(3);
    });
  }
});
