import { describe, expect, it } from '@jest/globals';
import { Backoff } from './backoff.js';

/** Back-off in seconds after each crash of a version that crashes at once. */
function rests(crashes: number): number[] {
  const backoff = new Backoff();
  let now = 0;
  return Array.from({ length: crashes }, () => {
    backoff.crashed(now);
    const restMs = backoff.restMs(now);
    now += restMs;
    expect(backoff.restMs(now)).toBe(0);
    return restMs / 1_000;
  });
}

describe('the back-off after crashes', () => {
  it('is 0 after the first, then doubles from a second to a minute', () => {
    expect(rests(10)).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it('starts again after a reply', () => {
    const backoff = new Backoff();
    for (let crash = 0; crash < 5; crash += 1) backoff.crashed(0);
    expect(backoff.restMs(0)).toBe(8_000);
    backoff.reset();
    expect(backoff.restMs(0)).toBe(0);
    backoff.crashed(0);
    expect(backoff.restMs(0)).toBe(0);
    expect(backoff).toMatchObject({ crashes: 1 });
  });

  it('is remembered for ten minutes after the last crash, and not without one', () => {
    const backoff = new Backoff();
    expect(backoff.isOver(0)).toBe(true);
    backoff.crashed(1_000);
    expect(backoff.isOver(601_000)).toBe(false);
    expect(backoff.isOver(601_001)).toBe(true);
  });
});
