import { describe, expect, it, jest } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import type { LiveProgram } from './live-program.js';
import { idleLongest } from './live-programs.js';
import { Watchdog } from './watchdog.js';

const CPU_MS = 1_000;

describe('CPU time that a program uses outside of requests', () => {
  verifies('runtime:limit:cpu', 'stops the program above the limit of a request, blaming no request', async () => {
    jest.useFakeTimers();
    const watchdog = new Watchdog({ relieveMemory: () => undefined });
    try {
      const meter = { besideMs: CPU_MS, settle: () => 1 };
      const kill = jest.fn();
      watchdog.watch({
        calls: { meter, count: 0, idleSince: 0, findOverLimit: () => null },
        figures: null,
        instance: { ping: () => Promise.resolve() },
        isAtWork: true,
        kill,
        limits: { cpuMs: CPU_MS, memoryMb: 64 },
      } as unknown as LiveProgram);
      await jest.advanceTimersByTimeAsync(1_000);
      expect(kill).not.toHaveBeenCalled();
      meter.besideMs += 1;
      await jest.advanceTimersByTimeAsync(250);
      expect(kill.mock.calls).toEqual([['cpu', null]]);
    } finally {
      watchdog.close();
      jest.useRealTimers();
    }
  });
});

describe('The program that ends for others', () => {
  it('is the longest idle one, one with streams only if all idle ones have some, and never one at work', () => {
    const program = (idleSince: number, isIdle: boolean, hasStreams: boolean) => ({ idleSince, isIdle, hasStreams });
    const working = program(1, false, false);
    const streaming = program(2, true, true);
    const [older, newer] = [program(3, true, false), program(4, true, false)];
    expect(idleLongest([newer, streaming, older, working])).toBe(older);
    expect(idleLongest([program(5, true, true), streaming, working])).toBe(streaming);
    expect(idleLongest([working])).toBeUndefined();
  });
});
