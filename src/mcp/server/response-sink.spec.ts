import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ResponseSink } from './response-sink.js';

const MB = 1024 * 1024;

/** A response that nobody reads. */
function unread(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

describe('an event stream that its client does not read', () => {
  it('is closed above 1 MB where it stays open, and above 16 MB where it carries the response of a call', () => {
    for (const [isOpen, bytesMax] of [
      [true, MB],
      [false, 16 * MB],
    ] as const) {
      const response = unread();
      const sink = new ResponseSink(response);
      if (isOpen) sink.open();
      sink.event('x'.repeat(bytesMax - MB / 2));
      expect([bytesMax, response.destroyed]).toEqual([bytesMax, false]);
      sink.event('x'.repeat(MB / 2));
      expect([bytesMax, response.destroyed]).toEqual([bytesMax, true]);
    }
  });
});

describe('a request that is not answered soon', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** A sink, and the content types and texts that its client received so far. */
  function watched() {
    const response = unread();
    const types: (string | undefined)[] = [];
    const written: string[] = [];
    response.writeHead = ((_status: number, headers: Record<string, string>) => {
      types.push(headers['content-type']);
      return response;
    }) as ServerResponse['writeHead'];
    response.flushHeaders = () => undefined;
    response.write = ((text: string) => written.push(text)) as unknown as ServerResponse['write'];
    response.end = ((text?: string) => written.push(text ?? '')) as unknown as ServerResponse['end'];
    return { types, written, sink: new ResponseSink(response) };
  }

  it('gets the headers of a stream after 5 s and a comment every 10 s, then its response', async () => {
    const { types, written, sink } = watched();
    sink.openWhenLate();
    await jest.advanceTimersByTimeAsync(4_999);
    expect(types).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(types).toEqual(['text/event-stream; charset=utf-8']);
    await jest.advanceTimersByTimeAsync(30_000);
    expect(written).toEqual(Array.from({ length: 3 }, () => ': keep-alive\n\n'));
    sink.reply(200, '{}');
    expect(written.at(-1)).toBe('event: message\ndata: {}\n\n');
  });

  it('gets JSON when the response comes before that', async () => {
    const { types, written, sink } = watched();
    sink.openWhenLate();
    await jest.advanceTimersByTimeAsync(4_999);
    sink.reply(200, '{}');
    await jest.advanceTimersByTimeAsync(60_000);
    expect([types, written]).toEqual([['application/json; charset=utf-8'], ['{}']]);
  });
});
