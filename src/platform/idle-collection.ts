import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { repeat } from './schedule/repeat.js';

const INTERVAL_MS = 10_000;

/** Share of an interval in which the event loop works. A collection of 100 ms is 0.01. */
const BUSY = 0.2;
const IDLE = 0.05;

/** Collections after work. The second one frees the young generation, which V8 shrinks when little was allocated. */
const COLLECTIONS = 2;

/**
 * Collects in the first two idle intervals after the start, and after each busy interval. V8 collects when memory is
 * allocated, so without this an idle process would hold tens of MB of garbage. A collection takes about 1 ms for each
 * MB of live memory.
 */
export function collectWhenIdle(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let due = COLLECTIONS;
  let before = performance.eventLoopUtilization();
  repeat(INTERVAL_MS, () => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization >= BUSY) due = COLLECTIONS;
    if (due === 0 || utilization >= IDLE) return;
    due -= 1;
    collect();
  });
}
