import { expect, it } from '@jest/globals';
import { reopenMs } from './reopen-wait.js';

const table: [ends: number, retryMs: number | null, retryAfterSeconds: number | undefined, ms: number][] = [
  [0, null, undefined, 1_000],
  [1, null, undefined, 2_000],
  [5, null, undefined, 32_000],
  [9, null, undefined, 300_000],
  [5_000, null, undefined, 300_000],
  [0, 20_000, undefined, 20_000],
  [0, 0, 0, 1_000],
  [6, 20_000, 10, 64_000],
  [0, 20_000, 30, 30_000],
  [0, 10_000_000, 1, 300_000],
  [0, null, 86_400, 300_000],
];

it('a stream is opened again after a wait that grows, is what the server asks for, and at most 5 minutes', () => {
  for (const [ends, retryMs, retryAfterSeconds, ms] of table) {
    expect([ends, retryMs, retryAfterSeconds, reopenMs(ends, retryMs, retryAfterSeconds)]).toEqual([
      ends,
      retryMs,
      retryAfterSeconds,
      ms,
    ]);
  }
});
