import { describe, expect, it, jest } from '@jest/globals';
import type { FactoryProvider } from '@nestjs/common';
import { Schedule, scheduled } from './schedule.js';

describe('periodic work', () => {
  it('never overlaps: a tick during a run is skipped, and a run asked for waits for its turn', async () => {
    jest.useFakeTimers();
    try {
      const schedule = new Schedule();
      const ends: (() => void)[] = [];
      const work = schedule.every('test', 1_000, () => new Promise<void>((resolve) => ends.push(resolve)));
      await jest.advanceTimersByTimeAsync(3_500);
      expect(ends).toHaveLength(1);
      const asked = work.run();
      expect(ends).toHaveLength(1);
      ends[0]?.();
      await jest.advanceTimersByTimeAsync(0);
      expect(ends).toHaveLength(2);
      ends[1]?.();
      await asked;
      await jest.advanceTimersByTimeAsync(1_000);
      expect(ends).toHaveLength(3);
    } finally {
      jest.useRealTimers();
    }
  });

  it('continues after a failure', async () => {
    jest.useFakeTimers();
    try {
      const schedule = new Schedule();
      let runs = 0;
      schedule.every('test', 1_000, () => {
        runs += 1;
        return Promise.reject(new Error('refused'));
      });
      await jest.advanceTimersByTimeAsync(2_500);
      expect(runs).toBe(2);
    } finally {
      jest.useRealTimers();
    }
  });

  it('ends with the application: the current run is awaited, and none starts', async () => {
    const schedule = new Schedule();
    let runs = 0;
    let end = () => undefined as void;
    const work = schedule.every('test', 1, () => {
      runs += 1;
      return new Promise<void>((resolve) => (end = resolve));
    });
    void work.run();
    let isStopped = false;
    const stopped = schedule.beforeApplicationShutdown().then(() => (isStopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).toBe(false);
    end();
    await stopped;
    await work.run();
    expect(runs).toBe(1);
  });

  it('begins at the start of its service, and repeats in the interval of its provider', async () => {
    jest.useFakeTimers();
    try {
      class Sweeper {
        runs = 0;
      }
      const sweeper = new Sweeper();
      const provider = scheduled('sweep', 1_000, Sweeper, async (service) => (service.runs += 1));
      const { inject, useFactory } = provider as FactoryProvider;
      expect(inject).toEqual([Schedule, Sweeper]);
      await useFactory(new Schedule(), sweeper);
      expect(sweeper.runs).toBe(1);
      await jest.advanceTimersByTimeAsync(2_500);
      expect(sweeper.runs).toBe(3);
    } finally {
      jest.useRealTimers();
    }
  });
});
