import { describe, expect, it } from '@jest/globals';
import { NoSlotError } from '../../platform/limits/fair-semaphore.js';
import { StartSemaphore } from './start-semaphore.js';

/** Starts that end on demand. */
function gates() {
  const ends: (() => void)[] = [];
  const start = () => new Promise<void>((resolve) => ends.push(resolve));
  return { ends, start };
}

const turn = () => new Promise(setImmediate);

describe('StartSemaphore', () => {
  it('limits concurrent starts; the next begins when one has ended', async () => {
    const starts = new StartSemaphore(10_000, 2);
    const { ends, start } = gates();
    const all = ['a', 'b', 'c'].map((owner) => starts.run(owner, start));
    await turn();
    expect(ends).toHaveLength(2);
    ends[0]?.();
    await all[0];
    await turn();
    expect(ends).toHaveLength(3);
    for (const end of ends) end();
    await Promise.all(all);
  });

  it('gives the slot of a slow start to the next, and still waits for its end', async () => {
    const starts = new StartSemaphore(10_000, 2, 5);
    const { ends, start } = gates();
    const endless = ['a', 'b'].map((owner) => starts.run(owner, start));
    await starts.run('c', () => Promise.resolve());
    for (const end of ends) end();
    await Promise.all(endless);
  });

  it('reports why a start failed, and that a wait was too long', async () => {
    const starts = new StartSemaphore(5, 2);
    await expect(starts.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const { ends, start } = gates();
    const all = ['a', 'b'].map((owner) => starts.run(owner, start));
    await expect(starts.run('c', start)).rejects.toBeInstanceOf(NoSlotError);
    for (const end of ends) end();
    await Promise.all(all);
  });
});
