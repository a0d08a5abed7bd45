import fc from 'fast-check';

/** A tenth finds what a change breaks; the rest is for `npm run test:long`, which sets RANDOM_RUNS=all. */
const SHARE = 0.1;
const RUNS_MIN = 50;

/** True in `npm run test:long`. */
export const isThorough = process.env.RANDOM_RUNS === 'all';

// `npm test` tries the same cases each time: what it refuses is due to the change. `npm run test:long` looks for new ones.
if (!isThorough) fc.configureGlobal({ seed: 20 });

/** Number of random cases of a property. @param all the number in `npm run test:long` */
export function randomRuns(all: number): number {
  return isThorough ? all : Math.min(all, Math.max(RUNS_MIN, all * SHARE));
}
