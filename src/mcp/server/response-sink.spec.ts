import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { ResponseSink } from './response-sink.js';

const MB = 1024 * 1024;

/** A response that nobody reads. */
function unread(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

describe('an event stream that its client does not read', () => {
  it('is closed with more than 1 MB where it stays open, and with more than 16 MB where a call is answered', () => {
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
