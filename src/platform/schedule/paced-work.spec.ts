import { describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { verifies } from '../../../test/support/verifies.js';
import { PacedWork, PerTickQueue } from './paced-work.js';

const BUSY_MS = 40;

function block(): void {
  const end = performance.now() + BUSY_MS;
  while (performance.now() < end);
}

describe('Work that blocks the event loop', () => {
  verifies(
    'limits:large-answers',
    'runs immediately, and after other work of its key with an equally long pause',
    async () => {
      const paced = new PacedWork();
      const done: string[] = [];
      const times: number[] = [];
      const work = (name: string) => () => {
        times.push(performance.now());
        block();
        done.push(name);
      };
      for (const name of ['a1', 'a2', 'a3']) paced.run('a', work(name));
      paced.run('b', work('b1'));
      expect(done).toEqual(['a1', 'b1']);
      await until(() => done.length === 4, 'all work is done');
      expect(done).toEqual(['a1', 'b1', 'a2', 'a3']);
      const [, , second = 0, third = 0] = times;
      expect(third - second).toBeGreaterThanOrEqual(2 * BUSY_MS - 2);
    },
  );
});

describe('Tasks that are spread over turns of the event loop', () => {
  it('start immediately up to the limit and then in order, with other work in between', async () => {
    const turns = new PerTickQueue(2);
    const done: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) turns.run(() => done.push(name));
    expect(done).toEqual(['a', 'b']);
    for (const name of ['first', 'second']) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      done.push(name);
    }
    expect(done).toEqual(['a', 'b', 'c', 'd', 'first', 'e', 'f', 'second']);
    await new Promise<void>((resolve) => setImmediate(resolve));
    turns.run(() => done.push('later'));
    expect(done.at(-1)).toBe('later');
  });
});
