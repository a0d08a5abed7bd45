import { describe, expect } from '@jest/globals';
import { ask, KEY, post } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint, TestPubSub } from '../../support/mcp/mcp-endpoint.js';
import { ScriptedChannel } from '../../support/mcp/scripted-channel.js';
import type { Json } from '../../support/mcp/calls.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
const done = { content: [{ type: 'text', text: 'done' }] };
const answering = () => new ScriptedChannel('legacy', () => done);

/** The stream of a client of HTTP+SSE. */
interface SseStream {
  /** Path and query to which the client posts. */
  endpoint: string;
  next: () => Promise<Json>;
  leave: () => void;
}

async function openStream(url: string, headers: Record<string, string> = {}): Promise<SseStream> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: KEY, accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const event = async (): Promise<string[]> => {
    while (!text.includes('\n\n')) {
      const { value, done: isOver } = await reader.read();
      if (isOver) throw new Error('the stream ended');
      text += value;
    }
    const [first = '', ...rest] = text.split('\n\n');
    text = rest.join('\n\n');
    return first.split('\n').map((line) => line.slice(line.indexOf(': ') + 2));
  };
  const [name, endpoint = ''] = await event();
  expect(name).toBe('endpoint');
  return { endpoint, next: async () => JSON.parse((await event())[1] ?? ''), leave: () => leaving.abort() };
}

const initialize = (capabilities: object) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2024-11-05', capabilities, clientInfo: { name: 'spec', version: '1' } },
});

describe('a client of HTTP+SSE (2024-11-05)', () => {
  verifies('mcp:sse', 'has its messages answered on its stream, whichever process they are posted to', async () => {
    const relay = new TestPubSub();
    const channel = answering();
    const [one, two] = [await startMcpEndpoint(channel, relay), await startMcpEndpoint(channel, relay)];
    const { endpoint, next, leave } = await openStream(`${one.url}?separator=.`);
    expect(new URL(endpoint, one.url).pathname).toBe('/mcp');
    expect(new URL(endpoint, one.url).searchParams.get('separator')).toBe('.');
    const [here, there] = [new URL(endpoint, one.url).href, new URL(endpoint, two.url).href];
    expect((await ask(here, initialize({}))).status).toBe(202);
    expect((await next()).result.protocolVersion).toBe('2024-11-05');
    expect((await ask(there, { jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202);
    for (const url of [here, there]) {
      expect((await ask(url, call)).status).toBe(202);
      expect(await next()).toEqual({ jsonrpc: '2.0', id: 1, result: done });
    }
    await until(() => channel.listeners.size === 1, 'it is listened to');
    channel.tell('notifications/tools/list_changed');
    expect((await next()).method).toBe('notifications/tools/list_changed');
    for (const url of [here, there]) {
      expect((await ask(url, call, { authorization: 'Bearer two' })).status).toBe(404);
      expect((await ask(`${url}x`, call)).status).toBe(404);
    }
    leave();
    await until(async () => (await ask(here, call)).status === 404, 'the stream is over');
    expect((await ask(there, call)).status).toBe(404);
    await until(() => channel.listeners.size === 0 && channel.released.length > 0, 'its session is over');
  });

  verifies('mcp:sse', 'answers the requests of a server, cancels one call of two, and all by leaving', async () => {
    const channel = new ScriptedChannel('legacy', async ({ onRequest }) => {
      const answer = await onRequest?.('roots/list', undefined);
      return answer && 'result' in answer ? answer.result : new Promise<never>(() => undefined);
    });
    const { url } = await startMcpEndpoint(channel);
    const { endpoint, next, leave } = await openStream(url);
    const to = new URL(endpoint, url).href;
    await ask(to, initialize({ roots: {} }));
    await next();
    await ask(to, call);
    const { id, method } = await next();
    expect(method).toBe('roots/list');
    await ask(to, { jsonrpc: '2.0', id, result: { roots: [] } });
    expect((await next()).result).toEqual({ roots: [] });
    for (const requestId of [2, 3]) {
      expect((await post(to, { ...call, id: requestId })).status).toBe(202);
      expect((await next()).method).toBe('roots/list');
    }
    await ask(to, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    await until(() => channel.running === 1, 'one call is cancelled, and the other one is not');
    await ask(to, { jsonrpc: '2.0', id: 4, method: 'ping' });
    expect((await next()).id).toBe(4);
    leave();
    await until(() => channel.running === 0, 'the call is cancelled');
  });

  verifies(
    ['mcp:sse', 'mcp:get-delete'],
    'is not taken for one that sends its revision or no event stream',
    async () => {
      const { url } = await startMcpEndpoint(answering());
      const accept = 'text/event-stream';
      for (const headers of [{ accept, 'mcp-protocol-version': '2025-06-18' }, { accept: 'text/html' }]) {
        const { status } = await fetch(url, { headers: { authorization: KEY, ...headers } as Record<string, string> });
        expect(status).toBe(405);
      }
    },
  );
});
