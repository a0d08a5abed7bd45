/**
 * Everything that a test draws follows from one number: `TEST_SEED`, or a constant where it is not set. The verdict of a run
 * is then due to the change and not to the draw. `npm run lab search` sets other seeds.
 */
import { createHash } from 'node:crypto';
import process from 'node:process';

export const testSeed = Number(process.env.TEST_SEED ?? 20);
if (!Number.isSafeInteger(testSeed) || testSeed < 0) throw new Error('TEST_SEED must be a whole number from 0.');

/** Returns a function that draws numbers from 0 up to 1 (mulberry32). The same name and seed draw the same numbers. */
export function randomFrom(name, seed = testSeed) {
  let state = createHash('sha256').update(`${seed}/${name}`).digest().readInt32BE();
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

let random = randomFrom('');

/** Called before each test file: its draws do not depend on the files that ran before it in the same worker. */
export function startFile(path) {
  random = randomFrom(path);
}

/** Draws a number from 0 up to 1, of the running test file. */
export function drawNumber() {
  return random();
}
