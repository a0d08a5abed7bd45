import { describe, expect, jest } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import type { LiveProgram } from './live-program.js';
import { Watchdog } from './watchdog.js';

const CPU_MS = 1_000;

describe('CPU time that a program uses outside of requests', () => {
  verifies('runtime:limit:cpu', 'ends it above the limit of a request, and no request is blamed', async () => {
    jest.useFakeTimers();
    const watchdog = new Watchdog({ relieveMemory: () => undefined });
    try {
      const meter = { besideMs: CPU_MS, settle: () => 1 };
      const kill = jest.fn();
      watchdog.watch({
        calls: { meter, count: 0, idleSince: 0, over: () => null },
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
