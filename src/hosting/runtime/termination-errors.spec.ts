import { describe, expect, it } from '@jest/globals';
import { resting, whenGone } from './termination-errors.js';

const limits = { cpuMs: 1, wallMs: 1, memoryMb: 128, responseBytes: 1, logBytes: 1, concurrency: 1 };

describe('the error for callers of a program that ended', () => {
  it('contains the last output from the fifth crash in a row on, in one line of limited length', () => {
    expect(resting(4, 900, 'boom').message).toBe('The program crashed 4 times in a row and is started again in 1 s.');
    const { message, retryAfterSeconds } = resting(5, 8_000, `${'x'.repeat(2_000)}\nError:\n  boom`);
    expect(message).toMatch(
      /^The program crashed 5 times in a row and is started again in 8 s\. It said: …x+ Error: boom$/,
    );
    expect(message.length).toBeLessThan(600);
    expect(retryAfterSeconds).toBe(8);
  });

  it('distinguishes lack of memory, a requested stop and a crash', () => {
    expect(whenGone({ reason: 'memory', detail: '' }, limits)).toMatchObject({ outcome: 'exceededMemory' });
    expect(whenGone({ reason: 'stopped', detail: '' }, limits)).toMatchObject({
      outcome: 'exception',
      mayHaveRun: true,
    });
    expect(whenGone({ reason: 'crashed', detail: 'boom' }, limits).message).toContain('It said: boom');
  });
});
