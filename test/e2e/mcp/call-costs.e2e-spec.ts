// Counts of what one warm tool call makes in the service's process: promises, timers and `close` listeners. They are the
// part of a call's CPU time that a test can hold to a bound, since they do not depend on the machine or its load.
//
// bench/counts.mjs counts: it starts the built service, an upstream, and a load of one caller, each in a process of its
// own, and takes the least of 100 calls. `node bench/counts.mjs` prints the functions that make the promises.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { cloneDatabase } from '../../support/app.js';
import { endAfterTest } from '../../support/jest/leftovers.mjs';

type Counts = Record<'promises' | 'timers' | 'closeListeners', number>;

/**
 * The counts of today, on Node 20. A change that makes fewer lowers its numbers here, in the same commit. A change that
 * makes more finds another way, or raises its numbers and says in the commit message why the call needs them.
 */
const bounds: Record<string, Counts> = {
  /** `POST /connect/{namespace}/{connectionId}/.tools/{tool}` */
  rest: { promises: 18, timers: 3, closeListeners: 4 },
  /** `POST /connect/{namespace}/{connectionId}/mcp` */
  mcp: { promises: 26, timers: 4, closeListeners: 4 },
  /** The same in a session, at an upstream that has sessions too. */
  session: { promises: 26, timers: 4, closeListeners: 4 },
  /** `POST /run/{server}`, with a record of the call. */
  run: { promises: 26, timers: 4, closeListeners: 4 },
};

it('a warm call makes no more promises, timers and close listeners than its bounds', async () => {
  const database = await cloneDatabase();
  endAfterTest(() => database.drop());
  const script = fileURLToPath(new URL('../../../bench/counts.mjs', import.meta.url));
  const env = { PATH: process.env.PATH, BENCH_DATABASE_URL: database.url };
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--json'], { env, timeout: 150_000 });
  const found = JSON.parse(stdout) as Record<string, Counts>;
  const over = Object.keys(bounds).filter((kind) => {
    const { promises, timers, closeListeners } = bounds[kind];
    const of = found[kind];
    // Negated, so that a count that is missing is over its bound.
    return !(of.promises <= promises && of.timers <= timers && of.closeListeners <= closeListeners);
  });
  expect({ over, found }).toEqual({ over: [], found });
});
