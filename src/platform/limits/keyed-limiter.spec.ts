import { describe, expect, it } from '@jest/globals';
import { KeyedLimiter, NoSlotError } from './keyed-limiter.js';

/** Work that ends when told, with a count of what runs. */
function gauge() {
  const ends: (() => void)[] = [];
  const now = new Map<string, number>();
  const work = (kind: string) => async () => {
    now.set(kind, (now.get(kind) ?? 0) + 1);
    await new Promise<void>((resolve) => ends.push(resolve));
    now.set(kind, (now.get(kind) ?? 0) - 1);
  };
  return { work, ends, now };
}

const turn = () => new Promise(setImmediate);

describe('KeyedLimiter', () => {
  it('one kind has at most half of the slots, and waiting work starts in order', async () => {
    const slots = KeyedLimiter.fair(4, 10_000);
    const { work, ends, now } = gauge();
    const all = ['a', 'a', 'a', 'b', 'b', 'b', 'c'].map((kind) => slots.run(kind, work(kind)));
    await turn();
    expect([...now]).toEqual([
      ['a', 2],
      ['b', 2],
    ]);
    while (ends.length > 0) {
      ends.shift()?.();
      await turn();
      expect([...now.values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(4);
    }
    await Promise.all(all);
    expect([...now.values()]).toEqual([0, 0, 0]);
  });

  it('rejects work that cannot start in time, and keeps its slot free', async () => {
    const slots = KeyedLimiter.fair(1, 20);
    const { work, ends } = gauge();
    const first = slots.run('a', work('a'));
    await expect(slots.run('a', work('a'))).rejects.toMatchObject({
      constructor: NoSlotError,
      kind: 'unavailable',
      retryAfterSeconds: 5,
    });
    ends.shift()?.();
    await first;
    const last = slots.run('a', work('a'));
    await turn();
    ends.shift()?.();
    await last;
  });

  it('frees the slot of work that throws', async () => {
    const slots = KeyedLimiter.fair(1, 1_000);
    await expect(slots.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(slots.run('a', async () => 'yes')).resolves.toBe('yes');
  });

  it('gives the slot of slow work to the next, and still waits for its end', async () => {
    const slots = KeyedLimiter.fair(2, 10_000);
    const { work, ends, now } = gauge();
    const slow = ['a', 'b'].map((kind) => slots.run(kind, work(kind), 5));
    await slots.run('c', () => Promise.resolve());
    expect([...now.values()]).toEqual([1, 1]);
    for (const end of ends) end();
    await Promise.all(slow);
    expect(slots.size).toBe(0);
  });
});
