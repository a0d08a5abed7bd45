import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { HostedCall } from './hosted-call.js';
import { ProgramCalls } from './program-calls.js';

const LONG_MS = 60_000;
const SHORT_MS = 1_000;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A program with a call in flight that is waited for, and whether the wait is over. */
function draining(withinMs: number) {
  const calls = new ProgramCalls(1);
  const call = { request: { isStream: false } } as HostedCall;
  calls.admit(call);
  const over = jest.fn();
  void calls.drained(withinMs).then(over);
  return { calls, call, over };
}

describe('the wait for the calls of a program that is replaced', () => {
  it('is shortened by hurry to exactly the given time', async () => {
    const { calls, over } = draining(LONG_MS);
    await jest.advanceTimersByTimeAsync(SHORT_MS);
    calls.hurry(SHORT_MS);
    await jest.advanceTimersByTimeAsync(SHORT_MS - 1);
    expect(over).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('is never extended', async () => {
    const { calls, over } = draining(SHORT_MS);
    calls.hurry(LONG_MS);
    await jest.advanceTimersByTimeAsync(SHORT_MS);
    expect(over).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(LONG_MS);
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('ends with the last call, with and without hurry', async () => {
    const { calls, call, over } = draining(LONG_MS);
    calls.hurry(SHORT_MS);
    calls.left(call, true);
    await jest.advanceTimersByTimeAsync(0);
    expect(over).toHaveBeenCalledTimes(1);
  });

  it('is not started by hurry', async () => {
    const calls = new ProgramCalls(1);
    calls.hurry(SHORT_MS);
    await jest.advanceTimersByTimeAsync(SHORT_MS);
    await expect(calls.drained(LONG_MS)).resolves.toBeUndefined();
  });
});
