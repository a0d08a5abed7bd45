import fc from 'fast-check';
import { testSeed } from './seed.mjs';

/** A tenth finds what a change breaks; `RANDOM_RUNS=all` tries all, as `npm run lab search` does with other seeds. */
const SHARE = 0.1;
const RUNS_MIN = 50;

/** True where all random cases are tried. */
export const isThorough = process.env.RANDOM_RUNS === 'all';

fc.configureGlobal({ seed: testSeed });

/** Number of random cases of a property. @param all the number where {@link isThorough} */
export function randomRuns(all: number): number {
  return isThorough ? all : Math.min(all, Math.max(RUNS_MIN, all * SHARE));
}
