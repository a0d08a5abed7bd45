import { describe, expect, it } from '@jest/globals';
import { EVENTS_BYTES_MAX, EVENTS_MAX, EventBuffer } from './event-buffer.js';

const numbers = (buffer: EventBuffer, after: number) => buffer.after(after)?.map(({ number }) => number) ?? null;

describe('the events that a stream buffers', () => {
  it('are returned from the one after the last that a client has', () => {
    const buffer = new EventBuffer();
    expect(numbers(buffer, 0)).toEqual([]);
    for (const text of ['a', 'b', 'c']) buffer.add(text);
    expect(buffer.after(1)).toEqual([
      { number: 2, text: 'b' },
      { number: 3, text: 'c' },
    ]);
    expect([numbers(buffer, 0), numbers(buffer, 3)]).toEqual([[1, 2, 3], []]);
    expect([4, -1, NaN].map((number) => buffer.after(number))).toEqual([null, null, null]);
  });

  it('are the last 256', () => {
    const buffer = new EventBuffer();
    for (let i = 0; i <= EVENTS_MAX; i += 1) buffer.add('x');
    expect([buffer.after(0), buffer.after(1)?.length, buffer.bytes]).toEqual([null, EVENTS_MAX, EVENTS_MAX]);
    expect(EVENTS_MAX).toBe(256);
  });

  it('are at most 1 MB', () => {
    const buffer = new EventBuffer();
    const half = 'é'.repeat(EVENTS_BYTES_MAX / 4);
    buffer.add(half);
    buffer.add(half);
    expect(buffer.after(0)?.length).toBe(2);
    buffer.add('x');
    expect([buffer.after(0), buffer.after(1)?.length, buffer.bytes]).toEqual([null, 2, EVENTS_BYTES_MAX / 2 + 1]);
    buffer.add('x'.repeat(EVENTS_BYTES_MAX + 1));
    expect([buffer.after(3), numbers(buffer, 4), buffer.bytes]).toEqual([null, [], 0]);
  });
});
