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

  it('restarts with every message', async () => {
    const timer = start(5 * MINUTE);
    for (let messages = 0; messages < 5; messages += 1) {
      await jest.advanceTimersByTimeAsync(4 * MINUTE);
      timer.restart();
    }
    expect([expired, timer.isOver]).toEqual([0, false]);
    await jest.advanceTimersByTimeAsync(5 * MINUTE);
    expect([expired, timer.isOver]).toEqual([1, false]);
  });

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

  it('can be restarted after it expired, when the client is asked for input', async () => {
    const timer = start(MINUTE);
    await jest.advanceTimersByTimeAsync(MINUTE);
    timer.restart();
    await jest.advanceTimersByTimeAsync(MINUTE);
    timer.stop();
    await jest.advanceTimersByTimeAsync(MINUTE);
    expect(expired).toBe(2);
  });
});
