import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { verifies } from '../../../../test/support/verifies.js';
import { listen, shut } from '../../../../test/support/upstream/upstream-net.js';
import { AddressPolicy, parseEgressAllow } from '../../../platform/egress/address-policy.js';
import { Egress } from '../../../platform/egress/egress.js';
import { exchange } from './http-exchange.js';

const CALLS = 6;

/** Work with a response that blocks the event loop. */
const BUSY_MS = 40;

let egress: Egress;
let server: Server;
let url: URL;
let responses: ServerResponse[];

/** Answers when all calls have come, so that the responses arrive together. */
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
  server = createServer((_request, response) => {
    if (responses.push(response) === CALLS) responses.forEach(answer);
  });
  url = new URL(`http://127.0.0.1:${await listen(server)}`);
});
afterAll(() => Promise.all([shut(server), egress.close()]));

/** The fewest turns of the event loop between two responses, while each is handled in {@link BUSY_MS}. */
async function turnsBetween(onText: (text: string | null) => void): Promise<number> {
  responses = [];
  const turns: number[] = [];
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  const send = async () => {
    let messages = 0;
    const onEvent = () => (messages += 1) === 2;
    const { text } = await exchange(egress, {
      url,
      account: 'a',
      method: 'POST',
      headers: {},
      timeoutMs: 60_000,
      onEvent,
    });
    turns.push(turn);
    const end = performance.now() + BUSY_MS;
    while (performance.now() < end);
    onText(text);
  };
  const calls = Array.from({ length: CALLS }, send);
  count();
  await Promise.all(calls);
  isOver = true;
  return Math.min(...turns.slice(1).map((at, i) => at - (turns[i] ?? 0)));
}

describe('large answers of one account', () => {
  const large = 'x'.repeat(512 * 1024);

  verifies('limits:large-answers', 'are handled one at a time with pauses, as JSON and as events', async () => {
    const texts: (string | null)[] = [];
    for (const [type, body] of [
      ['application/json', `"${large}"`],
      ['text/event-stream', `data: first\n\ndata: "${large}"\n\n`],
    ] as const) {
      answer = (response) => response.writeHead(200, { 'content-type': type }).end(body);
      expect(await turnsBetween((text) => texts.push(text))).toBeGreaterThan(1);
    }
    expect(texts).toEqual(Array.from({ length: 2 * CALLS }, () => `"${large}"`));
  });

  verifies('limits:large-answers', 'keep the order of the messages of a stream', async () => {
    responses = [];
    answer = (response) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`data: "${large}"\n\ndata: b\n\ndata: c\n\n`);
    const read = async () => {
      const seen: string[] = [];
      const onEvent = (data: string) => seen.push(data.slice(0, 2)) === 3;
      const { text } = await exchange(egress, { url, method: 'POST', headers: {}, timeoutMs: 60_000, onEvent });
      expect([...seen, text]).toEqual(['"x', 'b', 'c', 'c']);
    };
    await Promise.all(Array.from({ length: CALLS }, read));
  });
});
