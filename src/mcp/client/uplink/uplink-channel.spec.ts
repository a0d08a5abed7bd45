import { expect, it } from '@jest/globals';
import { until } from '../../../../test/support/until.js';
import { Cancellation } from '../../protocol/cancellation.js';
import { CallerLeftError } from '../../protocol/mcp-errors.js';
import { UplinkChannel } from './uplink-channel.js';

const results: Record<string, object> = { initialize: { protocolVersion: '2025-11-25' }, 'tools/list': { tools: [] } };

it('a log level reaches the local server for the others who wait for it, although its first caller has left', async () => {
  const nothing = () => undefined;
  let answerLevel: (() => void) | undefined;
  const send = (text: string) => {
    const { id, method } = JSON.parse(text) as { id?: number; method: string };
    const answer = () => channel.receive(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
    if (method === 'logging/setLevel') answerLevel = answer;
    else if (id !== undefined) queueMicrotask(answer);
  };
  const port = { ready: Promise.resolve(), bufferedBytes: 0, send, refuse: nothing, close: nothing };
  const channel = new UplinkChannel(port);
  const cancellation = new Cancellation();
  const [first, second] = ['first', 'second'].map((key) =>
    channel.request({
      method: 'tools/list',
      timeoutMs: 10_000,
      profile: { key, capabilities: {}, level: 'debug' },
      cancellation: key === 'first' ? cancellation : undefined,
    }),
  );
  const left = expect(first).rejects.toThrow(CallerLeftError);
  await until(() => answerLevel, 'the local server is told a level');
  cancellation.cancel();
  answerLevel?.();
  await left;
  expect((await second)?.text).toContain('"tools":[]');
});
