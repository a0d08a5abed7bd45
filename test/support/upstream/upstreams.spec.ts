import { describe, expect, it } from '@jest/globals';
import { type StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { connect } from 'node:net';
import { callRaw, connectV1, post, start, textOf } from './upstream-clients.js';
import { RAW_TOOL_RESULT, startUpstream, type Upstream } from './upstream.js';

describe.each([
  ['JSON', { sessions: false, sse: false }],
  ['JSON with sessions', { sessions: true, sse: false }],
  ['event streams', { sessions: false, sse: true }],
  ['event streams with sessions', { sessions: true, sse: true }],
])('an upstream that answers %s', (_, options) => {
  it('serves tools, resources, prompts and completion to the official client', async () => {
    const upstream = await start(options);
    const client = await connectV1(upstream.url);

    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hællo' } }))).toBe('hællo');
    const search = await client.callTool({ name: 'repo.search', arguments: { query: 'slip' } });
    expect(search.structuredContent).toEqual({
      items: [
        { name: 'slip-1', stars: 0 },
        { name: 'slip-2', stars: 1 },
      ],
    });
    expect((await client.callTool({ name: 'fail' })).isError).toBe(true);
    await expect(client.callTool({ name: 'rpc_error' })).rejects.toMatchObject({
      code: -32602,
      data: { field: 'city' },
    });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('repo.issues.create');
    expect((await client.listResources()).resources).toHaveLength(2);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
    const page = await client.readResource({ uri: 'docs://pages/pricing' });
    expect(page.contents[0]).toMatchObject({ text: 'Page pricing' });
    await expect(client.readResource({ uri: 'docs://none' })).rejects.toMatchObject({ code: -32002 });
    const prompt = await client.getPrompt({ name: 'review', arguments: { language: 'rust' } });
    expect(prompt.messages[0].content).toMatchObject({ text: 'Review this rust code, be friendly.' });
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name: 'review' },
      argument: { name: 'language', value: 'p' },
    });
    expect(completed.completion.values).toEqual(['php', 'python']);
    expect(client.getServerCapabilities()).not.toHaveProperty('logging');
    await client.ping();
    expect(upstream.count('initialize')).toBe(1);
    expect(upstream.sessions.size).toBe(options.sessions ? 1 : 0);
  });

  it('reports progress before the result', async () => {
    const upstream = await start(options);
    const client = await connectV1(upstream.url);
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
    const result = await client.callTool({ name: 'progress', arguments: { steps: 3 } }, undefined, { onprogress });
    expect(textOf(result)).toBe('3 steps done');
    expect(steps).toEqual([1, 2, 3]);
  });

  it('asks the client in the middle of a call and gets its answer', async () => {
    const upstream = await start(options);
    const client = await connectV1(upstream.url, { sampling: {} });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: 'assistant',
      model: 'none',
      content: { type: 'text', text: 'Nobody' },
    }));
    expect(textOf(await client.callTool({ name: 'asks' }))).toContain('Nobody');

    const silent = await connectV1(upstream.url);
    expect(JSON.parse(textOf(await silent.callTool({ name: 'asks' })))).toMatchObject({ error: { code: -32601 } });
  });

  it('breaks an answer off half way', async () => {
    const upstream = await start(options);
    const client = await connectV1(upstream.url);
    const headers = { 'mcp-session-id': [...upstream.sessions][0] ?? '' };
    const response = await post(upstream.url, 'tools/call', { name: 'cut' }, { headers });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    await upstream.waitFor(({ requests }) => requests.every(({ closedAt, method }) => closedAt || method === 'GET'));
    expect(upstream.requests.some(({ aborted }) => aborted)).toBe(false);
    await client.close();
  });

  it('does not mix up concurrent calls', async () => {
    const client = await connectV1((await start(options)).url);
    const tokens = Array.from({ length: 20 }, (_, i) => `token-${i}`);
    const call = async (token: string) => textOf(await client.callTool({ name: 'crosstalk', arguments: { token } }));
    expect(await Promise.all(tokens.map(call))).toEqual(tokens);
  });
});

describe('sessions', () => {
  it('answer 404 once forgotten, also to the official client', async () => {
    const upstream = await start({ sessions: true });
    const client = await connectV1(upstream.url);
    upstream.forgetSessions();
    await expect(client.callTool({ name: 'echo', arguments: { message: '' } })).rejects.toMatchObject({ code: 404 });

    const response = await post(upstream.url, 'tools/list', {}, { headers: { 'mcp-session-id': 'forgotten' } });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ id: null, error: { code: -32001 } });
  });

  it('answer 400 instead when told so, and 400 to a request without a session', async () => {
    const upstream = await start({ sessions: true, forgottenSessionStatus: 400 });
    const headers = { 'mcp-session-id': 'forgotten' };
    for (const response of [await post(upstream.url, 'ping', {}, { headers }), await post(upstream.url, 'ping')]) {
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ id: null, error: { code: -32000 } });
    }
  });

  it('end with DELETE', async () => {
    const upstream = await start({ sessions: true });
    const client = await connectV1(upstream.url);
    await (client.transport as StreamableHTTPClientTransport).terminateSession();
    expect(upstream.sessions.size).toBe(0);
    expect(upstream.requests.at(-1)).toMatchObject({ method: 'DELETE', path: '/mcp' });
  });
});

describe('waiting calls', () => {
  it('answer when released', async () => {
    const upstream = await start();
    const calls = [callRaw(upstream.url, 'hold'), callRaw(upstream.url, 'slow', { ms: 60_000 })];
    await upstream.waitFor((u) => u.count('tools/call') === 2);
    upstream.release();
    const answers = await Promise.all(calls.map(async (call) => (await call).json()));
    expect(answers).toMatchObject([{ result: { content: [{ text: 'released' }] } }, { id: 7 }]);
  });

  it('are recorded as aborted when their client leaves', async () => {
    const upstream = await start();
    const leaving = new AbortController();
    const call = callRaw(upstream.url, 'hold', {}, leaving.signal);
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await upstream.waitFor(({ requests }) => requests[0].aborted);
    expect(requests(upstream)).toEqual([{ aborted: true, closedAt: expect.any(Number) }]);
  });

  it('record the cancel notification of the official client', async () => {
    const upstream = await start({ sse: true });
    const client = await connectV1(upstream.url);
    const leaving = new AbortController();
    const call = expect(client.callTool({ name: 'hold' }, undefined, { signal: leaving.signal })).rejects.toThrow();
    await upstream.waitFor((u) => u.count('tools/call') === 1);
    leaving.abort();
    await call;
    await upstream.waitFor((u) => u.count('notifications/cancelled') === 1);
    const [held] = upstream.requests.filter(({ raw }) => raw.includes('tools/call'));
    const { id } = held.body as { id: number };
    expect(upstream.requests.at(-1)?.body).toMatchObject({ params: { requestId: id } });
  });

  it('do not delay close, nor does a connection that never spoke', async () => {
    const upstream = await startUpstream();
    const call = expect(callRaw(upstream.url, 'hold')).rejects.toThrow();
    const socket = connect(upstream.port, '127.0.0.1').on('error', () => undefined);
    await upstream.waitFor((u) => u.count('tools/call') === 1 && u.connections === 2);
    await upstream.close();
    await call;
    socket.destroy();
  });

  function requests(upstream: Upstream): object[] {
    return upstream.requests.map(({ aborted, closedAt }) => ({ aborted, closedAt }));
  }
});

describe('options', () => {
  it('answers as many bytes as wanted', async () => {
    const client = await connectV1((await start()).url);
    expect(textOf(await client.callTool({ name: 'big', arguments: { bytes: 1_000_000 } }))).toHaveLength(1_000_000);
  });

  it('pages tools with an opaque cursor and refuses a made-up one', async () => {
    const upstream = await start({ pageSize: 5 });
    const client = await connectV1(upstream.url);
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.listTools({ cursor });
      expect(page.tools.length).toBeLessThanOrEqual(5);
      names.push(...page.tools.map(({ name }) => name));
      cursor = page.nextCursor;
    } while (cursor);
    expect(new Set(names).size).toBe(13);
    expect(upstream.count('tools/list')).toBe(3);
    await expect(client.listTools({ cursor: '5' })).rejects.toMatchObject({ code: -32602 });
  });

  it('answers 401 with a challenge until the headers are right', async () => {
    const upstream = await start({ requireHeaders: { Authorization: 'Bearer s3cret' } });
    const refused = await post(upstream.url, 'ping');
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer resource_metadata="http:.+"$/);
    const client = await connectV1(upstream.url, {}, { headers: { Authorization: 'Bearer s3cret' } });
    expect((await client.listTools()).tools).toHaveLength(13);
  });

  it('lists own tools with unknown fields and passes a raw result byte for byte', async () => {
    const inputSchema = { type: 'object', 'x-odd': [1] };
    const custom = { name: 'own', inputSchema, 'x-vendor': { a: 1 } };
    const upstream = await start({ tools: [custom, { name: 'raw', inputSchema }], iconUrl: 'http://127.0.0.1/i.png' });
    const listed = (await (await post(upstream.url, 'tools/list')).json()) as { result: { tools: object[] } };
    expect(listed.result.tools[0]).toEqual(custom);
    expect(await (await callRaw(upstream.url, 'raw')).text()).toBe(
      `{"jsonrpc":"2.0","id":7,"result":${RAW_TOOL_RESULT}}`,
    );
    const client = await connectV1(upstream.url);
    expect(client.getServerVersion()?.icons).toEqual([{ src: 'http://127.0.0.1/i.png' }]);
    expect(textOf(await client.callTool({ name: 'own', arguments: { a: 1 } }))).toBe('{"a":1}');
  });

  it('keeps a raw result of several lines whole on an event stream', async () => {
    const upstream = await start({ sse: true, rawToolResult: '{\n  "content": []\n}' });
    const client = await connectV1(upstream.url);
    expect((await client.callTool({ name: 'raw' })).content).toEqual([]);
  });

  it('delays initialize, and drops it when the client leaves', async () => {
    const upstream = await start({ delayInitializeMs: 60_000, sessions: true });
    const leaving = new AbortController();
    const signal = leaving.signal;
    const call = post(upstream.url, 'initialize', { protocolVersion: '2025-11-25' }, { signal });
    await upstream.waitFor((u) => u.count('initialize') === 1);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await upstream.waitFor(({ requests }) => requests[0].aborted);
    expect(upstream.sessions.size).toBe(0);
  });

  it('says what it saw when waiting is in vain', async () => {
    const upstream = await start();
    await post(upstream.url, 'ping');
    await expect(upstream.waitFor(() => false, 1)).rejects.toThrow('The upstream saw: ping');
  });
});
