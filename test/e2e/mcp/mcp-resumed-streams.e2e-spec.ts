import { describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { ask, initialize, KEY, post } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint, TestPubSub } from '../../support/mcp/mcp-endpoint.js';
import { ScriptedChannel } from '../../support/mcp/scripted-channel.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** One SSE event: its id and its data. */
type Event = [id: string, data: string];

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', _meta: { progressToken: 'p' } } };
const done = { content: [{ type: 'text', text: 'done' }] };
const answer = JSON.stringify({ jsonrpc: '2.0', id: 1, result: done });

/** Two processes of one service before an upstream whose calls log what the test says and end when it says so. */
async function processes() {
  const relay = new TestPubSub();
  const running: { log: (data: unknown) => void; finish: () => void }[] = [];
  const channel = new ScriptedChannel('legacy', ({ onNotification }) => {
    return new Promise((resolve) => {
      const log = (data: unknown) => {
        const params = { level: 'error', data };
        const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params });
        onNotification?.(text, 'notifications/message');
      };
      running.push({ log, finish: () => resolve(done) });
    });
  });
  const [one, two] = [await startMcpEndpoint(channel, relay), await startMcpEndpoint(channel, relay)];
  const begun = async () => {
    await until(() => running.length > 0, 'the call runs');
    return running.pop() as (typeof running)[number];
  };
  return { channel, one: one.url, two: two.url, begun, stop: one.stop };
}

/** Reads a stream event by event. */
function eventsOf(response: Response) {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return async (): Promise<Event | null> => {
    while (!text.includes('\n\n')) {
      const { value, done: isOver } = await reader.read();
      if (isOver) return null;
      text += value;
    }
    const [first = '', ...rest] = text.split('\n\n');
    text = rest.join('\n\n');
    const field = (name: string) => first.match(new RegExp(`^${name}: (.*)$`, 'm'))?.[1] ?? '';
    return [field('id'), field('data')];
  };
}

/** Begins a call that logs "first", reads that, and leaves. */
async function leaves(
  url: string,
  headers: Record<string, string>,
  begun: Awaited<ReturnType<typeof processes>>['begun'],
) {
  const leaving = new AbortController();
  const posted = post(url, call, headers, leaving.signal);
  const work = await begun();
  work.log('first');
  const next = eventsOf(await posted);
  const events = [await next()];
  if (events[0]?.[1] === '') events.push(await next());
  leaving.abort();
  return { work, ids: events.map((event) => event?.[0] ?? '') };
}

function resume(url: string, headers: Record<string, string>, id: string): Promise<Response> {
  return fetch(url, { headers: { accept: 'text/event-stream', ...headers, 'last-event-id': id } });
}

const dataOf = (event: Event | null) => (event ? (JSON.parse(event[1]).params?.data ?? event[1]) : null);

describe('a client that lost the stream of its call', () => {
  verifies('mcp:resume', 'resumes it at any process: missed events, following ones, then the end', async () => {
    const { channel, one, two, begun } = await processes();
    const headers = await initialize(one);
    for (const url of [one, two]) {
      const { work, ids } = await leaves(one, headers, begun);
      const [primed = '', first = ''] = ids;
      work.log('second');
      const response = await resume(url, headers, first);
      expect(response.status).toBe(200);
      const next = eventsOf(response);
      expect(dataOf(await next())).toBe('second');
      work.log('third');
      expect(dataOf(await next())).toBe('third');
      expect(channel.running).toBe(1);
      work.finish();
      expect((await next())?.[1]).toBe(answer);
      expect(await next()).toBeNull();
      const again = eventsOf(await resume(url, headers, primed));
      const all = [await again(), await again(), await again(), await again(), await again()].map(dataOf);
      expect(all).toEqual(['first', 'second', 'third', answer, null]);
    }
  });

  verifies(
    'mcp:resume',
    'receives the first id in an event without data and the delay, from 2025-11-25 on',
    async () => {
      const { one, begun } = await processes();
      for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
        const headers = await initialize(one, {}, version);
        const posted = post(one, call, headers);
        const work = await begun();
        work.log('first');
        work.finish();
        const text = await (await posted).text();
        expect([version, /^id: \S+\.0\nretry: 1000\ndata: \n\nid: /.test(text)]).toEqual([
          version,
          version === '2025-11-25',
        ]);
        expect([version, text.match(/^id: /gm)?.length ?? 0]).toEqual([
          version,
          { '2025-11-25': 3, '2025-06-18': 2 }[version] ?? 0,
        ]);
      }
    },
  );

  verifies('mcp:resume', 'finds it only in its session, and only what is stored', async () => {
    const { one, two, begun, stop } = await processes();
    const headers = await initialize(one);
    const { work, ids } = await leaves(one, headers, begun);
    const id = ids[1] ?? '';
    const others = [await initialize(one), await initialize(one, {}, '2025-11-25', 'Bearer two')];
    for (const url of [one, two]) {
      for (const other of others) expect((await resume(url, other, id)).status).toBe(404);
      for (const wrong of ['x', `x${id}`, `${id}9`, id.replace(/\.\d+$/, '.'), '']) {
        expect([wrong, (await resume(url, headers, wrong)).status]).toEqual([wrong, 404]);
      }
    }
    for (let i = 0; i < 257; i += 1) work.log(i);
    for (const url of [one, two]) expect((await resume(url, headers, id)).status).toBe(404);
    stop();
    expect((await resume(two, headers, id.replace(/\.\d+$/, '.257'))).status).toBe(404);
  });

  verifies('mcp:resume', 'has its call cancelled on request, or if it cannot resume it', async () => {
    const { channel, one, begun, stop } = await processes();
    const headers = await initialize(one);
    const left = await leaves(one, headers, begun);
    await ask(one, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, headers);
    await until(() => channel.running === 0, 'the call is cancelled');
    expect((await resume(one, headers, left.ids[1] ?? '')).status).toBe(200);
    await leaves(one, await initialize(one, {}, '2025-03-26'), begun);
    await until(() => channel.running === 0, 'the call of an older client is cancelled');
    await leaves(one, headers, begun);
    expect(channel.running).toBe(1);
    stop();
    await until(() => channel.running === 0, 'the call ends with the process');
  });

  verifies('mcp:resume', 'is an SDK client with its resumption token, in a process of its own', async () => {
    const { one, two, begun } = await processes();
    const options = { requestInit: { headers: { authorization: KEY } } };
    const first = new StreamableHTTPClientTransport(new URL(one), options);
    const client = new Client({ name: 'spec', version: '1' });
    await client.connect(first);
    let token = '';
    const request = { method: 'tools/call', params: { name: 'x' } };
    const lost = client.request(request, CallToolResultSchema, { onresumptiontoken: (id) => (token = id) });
    lost.catch(() => undefined);
    const work = await begun();
    work.log('first');
    await until(() => token.endsWith('.1'), 'it has an event');
    await client.close();
    work.log('second');
    const second = new StreamableHTTPClientTransport(new URL(two), { ...options, sessionId: first.sessionId });
    second.setProtocolVersion('2025-11-25');
    const messages: unknown[] = [];
    second.onmessage = (message) => void messages.push(message);
    await second.start();
    await second.send({ jsonrpc: '2.0', id: 1, ...request }, { resumptionToken: token });
    work.finish();
    await until(() => messages.length === 2, 'it has the answer');
    expect(messages).toEqual([
      expect.objectContaining({ params: { level: 'error', data: 'second' } }),
      { jsonrpc: '2.0', id: 1, result: done },
    ]);
    await second.close();
  });
});
