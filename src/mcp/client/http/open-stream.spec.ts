import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { listen, shut } from '../../../../test/support/upstream/upstream-net.js';
import { AddressPolicy, parseEgressAllow } from '../../../platform/egress/address-policy.js';
import { Egress } from '../../../platform/egress/egress.js';
import { MessageBudget, useMessageLimits } from '../message-budget.js';
import { openStream } from './http-exchange.js';

const usual = { messages: 10_000, chars: 64 * 1024 * 1024 };

let egress: Egress;
let server: Server;
let url: URL;
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
  server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    answer(response);
  });
  url = new URL(`http://127.0.0.1:${await listen(server)}`);
});
afterAll(() => Promise.all([shut(server), egress.close()]));
afterEach(() => useMessageLimits(usual));

/** Opens a stream. @returns how it ended, and how many messages came */
function streamed(isAnswer: (n: number) => boolean): Promise<{ error: Error | null; count: number }> {
  let count = 0;
  return new Promise((resolve, reject) => {
    const onMessage = () => isAnswer((count += 1));
    const onEnd = (error: Error | null) => resolve({ error, count });
    openStream(egress, { url, method: 'GET', headers: {}, timeoutMs: 10_000, onMessage, onEnd }).catch(reject);
  });
}

describe('a long-lived stream of an MCP server', () => {
  it('is closed when it floods', async () => {
    useMessageLimits({ ...usual, messages: 20 });
    answer = (response) => response.end('data: {"method":"x"}\n\n'.repeat(100));
    const { error, count } = await streamed(() => false);
    expect(error?.message).toMatch(/ sent more than 20 messages without a reply\./);
    expect(count).toBe(20);
  });

  it('may contain any number of answers', async () => {
    useMessageLimits({ ...usual, messages: 20 });
    answer = (response) => response.end('data: {"method":"x"}\n\n'.repeat(100));
    expect(await streamed((n) => n % 15 === 0)).toEqual({ error: null, count: 100 });
  });

  it('is closed when its JSON exceeds the nesting limit', async () => {
    answer = (response) => response.end(`data: ${'['.repeat(300)}\n\n`);
    const { error, count } = await streamed(() => false);
    expect(error?.message).toMatch(/ sent more than 100 nested levels\./);
    expect(count).toBe(0);
  });
});

describe('the budget of messages', () => {
  afterEach(() => void jest.useRealTimers());

  it('is never renewed for one response, and renewed each minute for a stream', () => {
    jest.useFakeTimers({ now: 0 });
    useMessageLimits({ messages: 2, chars: 10 });
    const [answered, lasting] = [new MessageBudget(), new MessageBudget(true)];
    jest.setSystemTime(100_000);
    for (const budget of [answered, lasting]) expect([budget.spend(1), budget.spend(1)]).toEqual([null, null]);
    jest.setSystemTime(161_000);
    expect(answered.spend(1)).toBe('more than 2 messages without a reply');
    expect(lasting.spend(1)).toBeNull();
    expect(lasting.spend(10)).toBe('messages of more than 10 characters without a reply');
  });
});
