import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SilenceTimer } from './silence-timer.js';

const MINUTE = 60_000;

describe('the timeout of silence', () => {
  let expired = 0;
  beforeEach(() => {
    expired = 0;
    jest.useFakeTimers();
  });
  afterEach(() => void jest.useRealTimers());

  const start = (timeoutMs: number, startedAt?: number) =>
    new SilenceTimer(timeoutMs, () => void (expired += 1), startedAt);

  it('ends after an hour in all, however many messages there are', async () => {
    const timer = start(5 * MINUTE);
    for (let minute = 0; minute < 59; minute += 1) {
      await jest.advanceTimersByTimeAsync(MINUTE);
      timer.restart();
    }
    expect([expired, timer.isOver]).toEqual([0, false]);
    await jest.advanceTimersByTimeAsync(MINUTE);
    expect([expired, timer.isOver]).toEqual([1, true]);
  });

  it('counts the hour from the start of the call, also after its stream was resumed', async () => {
    start(5 * MINUTE, Date.now() - 58 * MINUTE);
    await jest.advanceTimersByTimeAsync(2 * MINUTE);
    expect(expired).toBe(1);
  });
});
