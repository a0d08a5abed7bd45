// Runs alone: it measures the memory of the process.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { startBundle, uidOf } from '../support/hosting/bundle-server.js';
import { processesOf } from '../support/database/processes-of.js';
import { until } from '../support/until.js';

/** Sessions one after another in each of these lanes. */
const LANES = 8;
const SESSIONS = 1_000;

it('1,000 sessions of clients that vanish leave no process and no memory behind', async () => {
  const bundle = await startBundle({ idleMs: 2_000, placesMax: 200, hasWalls: true });
  const uids: number[] = [];
  let left = SESSIONS;
  let heapAfterWarmUp = 0;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      // A session may be given up, too, while the machine is held up for longer than its idle time.
      const client = await until(
        async () => {
          const one = await bundle.connect();
          uids.push(await uidOf(one));
          return one;
        },
        'there is a place',
        30_000,
      );
      if (uids.length === 200) heapAfterWarmUp = heap();
      client?.callTool({ name: 'hold' }, undefined, { signal: AbortSignal.timeout(20) }).catch(() => undefined);
      if (left % 3 > 0) await client?.close();
    }
  };
  try {
    await Promise.all(Array.from({ length: LANES }, lane));
    await bundle.vanish();
    await until(() => bundle.server.size === 0, 'the last one was given up', 30_000);
    expect(uids.length).toBeGreaterThanOrEqual(SESSIONS);
    expect(new Set(uids).size).toBe(1);
    expect(processesOf(uids[0])).toEqual([]);
    expect(bundle.places()).toBe(0);
    expect(heap()).toBeLessThan(heapAfterWarmUp + 64 * 1024 * 1024);
  } finally {
    await bundle.close();
  }
}, 600_000);

function heap(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
