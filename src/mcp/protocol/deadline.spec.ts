import { afterEach, expect, it, jest } from '@jest/globals';
import { deadlineFromFirstUse } from './deadline.js';

afterEach(() => void jest.useRealTimers());

it('the time of a client to answer begins when it is asked, however long the call has run before', async () => {
  jest.useFakeTimers();
  const left = deadlineFromFirstUse(10_000);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(left()).toBe(10_000);
  await jest.advanceTimersByTimeAsync(4_000);
  expect(left()).toBe(6_000);
});
