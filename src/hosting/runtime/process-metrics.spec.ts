import { describe, expect, it } from '@jest/globals';
import { CpuMeter } from './process-metrics.js';

/** A process with injected CPU figures. */
function metered() {
  const state = { ranMs: 100, now: 0 };
  const meter = new CpuMeter(
    () => ({ ranMs: state.ranMs }),
    () => state.now,
  );
  const run = (ranMs: number, elapsedMs = ranMs) => {
    state.ranMs += ranMs;
    state.now += elapsedMs;
  };
  return { meter, run };
}

describe('the CPU time of requests', () => {
  it('of a single request is what the process used meanwhile', () => {
    const { meter, run } = metered();
    run(50);
    const account = meter.begin();
    run(7);
    expect(meter.end(account)).toBe(7);
    run(50);
    expect(account.used()).toBe(7);
  });

  it('of several is split evenly while they run together, and adds up to what was used', () => {
    const { meter, run } = metered();
    const first = meter.begin();
    run(10);
    const second = meter.begin();
    run(30);
    expect(meter.end(first)).toBe(25);
    run(5);
    expect(meter.end(second)).toBe(20);
  });

  it('used outside of requests is counted, less a tenth of a core', () => {
    const { meter, run } = metered();
    meter.end(meter.begin());
    run(20, 1_000);
    meter.settle();
    expect(meter.besideMs).toBe(20);
    run(400, 400);
    meter.settle();
    expect(meter.besideMs).toBe(400);
    run(0, 3_000);
    meter.settle();
    expect(meter.besideMs).toBe(100);
  });

  it('is 0 where it cannot be read', () => {
    const meter = new CpuMeter(() => null);
    expect(meter.end(meter.begin())).toBe(0);
  });
});
