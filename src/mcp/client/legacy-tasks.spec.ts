import { expect, it } from '@jest/globals';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { parseMessage, replyTo } from '../protocol/messages.js';
import { LegacyTasks } from './legacy-tasks.js';

function replyOf(result: object): McpReply {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
  return replyTo(1, text, parseMessage(text) ?? {}, 'legacy') as McpReply;
}

it('names that no tool of MCP has are not remembered, so that a server cannot fill the memory with them', async () => {
  const tools = ['short', 'long'.repeat(1_000)].map((name) => ({ name, execution: { taskSupport: 'required' } }));
  const sent: McpCall[] = [];
  const send = (call: McpCall) => {
    sent.push(call);
    return Promise.resolve(replyOf(call.method === 'tools/list' ? { tools } : { content: [] }));
  };
  const tasks = new LegacyTasks();
  await tasks.send({ method: 'tools/list', timeoutMs: 1_000 }, 1_000, send);
  for (const { name } of tools) {
    const call = { method: 'tools/call', params: JSON.stringify({ name }), timeoutMs: 1_000 };
    await tasks.send(call, 1_000, send);
  }
  const asTask = sent.filter(({ method }) => method === 'tools/call').map(({ params }) => params?.includes('"task"'));
  expect(asTask).toEqual([true, false]);
});

it('a call that waits for messages lasts as long as its task, and one over REST as long as REST', async () => {
  const sent: [method: string, timeoutMs: number][] = [];
  const send = (call: McpCall, timeoutMs: number) => {
    sent.push([call.method, timeoutMs]);
    if (call.method === 'tools/list') {
      return Promise.resolve(replyOf({ tools: [{ name: 'long', execution: { taskSupport: 'required' } }] }));
    }
    return Promise.resolve(replyOf({ task: { taskId: '1', ttl: 900_000 } }));
  };
  const tasks = new LegacyTasks();
  const call = { method: 'tools/call', params: '{"name":"long"}', timeoutMs: 1_000 };
  await tasks.send({ ...call, onNotification: () => undefined }, 1_000, send);
  await tasks.send(call, 1_000, send);
  const [mcp = 0, rest = 0] = sent.filter(([method]) => method === 'tasks/result').map(([, timeoutMs]) => timeoutMs);
  expect(mcp).toBe(900_000);
  expect(rest).toBeLessThanOrEqual(1_000);
});
