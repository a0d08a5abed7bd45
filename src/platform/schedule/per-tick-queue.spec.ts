import { describe, expect, it } from '@jest/globals';
import { PerTickQueue } from './per-tick-queue.js';

describe('Tasks that are spread over turns of the event loop', () => {
  it('start at once up to the bound and then in order, with other work in between', async () => {
    const turns = new PerTickQueue(2);
    const done: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) turns.run(() => done.push(name));
    expect(done).toEqual(['a', 'b']);
    for (const name of ['first', 'second']) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      done.push(name);
    }
    expect(done).toEqual(['a', 'b', 'c', 'd', 'first', 'e', 'second']);
    await new Promise<void>((resolve) => setImmediate(resolve));
    turns.run(() => done.push('later'));
    expect(done.at(-1)).toBe('later');
  });
});
