import { describe, expect, it } from '@jest/globals';
import { type ExchangeAnswer, type ExchangeRequest, resumed } from './http-exchange.js';

const request: ExchangeRequest = {
  url: new URL('https://upstream.test/mcp'),
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-key': 'value' },
  body: '{}',
  timeoutMs: 10_000,
};

/** The answer of a stream that ended without its message, behind this event. */
function broken(lastEventId: string, leftMs: number): ExchangeAnswer {
  const resume = { lastEventId, retryMs: 100, leftMs, startedAt: Date.now() };
  return { status: 200, headers: {}, contentType: 'text/event-stream', text: null, resume };
}

/** Answers with these one after the other, and records what was sent. */
function sender(...answers: ExchangeAnswer[]) {
  const sent: ExchangeRequest[] = [];
  const send = (one: ExchangeRequest) => {
    sent.push(one);
    return Promise.resolve(answers[sent.length - 1] ?? broken('last', 0));
  };
  return { sent, send };
}

describe('a stream that broke', () => {
  const whole: ExchangeAnswer = { ...broken('3', 0), text: '{"id":1}', resume: undefined };

  it('is resumed after its last event, within the rest of the time limit', async () => {
    const { send, sent } = sender(broken('2', 0), whole);
    expect(await resumed(send, request, broken('1', 2_000))).toBe(whole);
    expect(sent.map(({ method, headers }) => [method, headers['last-event-id'], headers['x-key']])).toEqual([
      ['GET', '1', 'value'],
      ['GET', '2', 'value'],
    ]);
    const [first = 0, second = 0] = sent.map(({ timeoutMs }) => timeoutMs);
    expect(first).toBeLessThanOrEqual(1_910);
    expect(second).toBeLessThan(first);
  });

  it('has the whole time limit again where every event restarts it', async () => {
    const { send, sent } = sender(whole);
    await resumed(send, { ...request, extendWithEvents: true }, broken('1', 2_000));
    expect(sent.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000]);
  });

  it('is given up after three tries without a new event', async () => {
    const first = broken('1', 5_000);
    const { send, sent } = sender(...Array.from({ length: 9 }, () => first));
    expect(await resumed(send, request, first)).toBe(first);
    expect(sent).toHaveLength(3);
  });
});
