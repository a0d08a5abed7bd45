/** A tenth finds what a change breaks; the rest is for `npm run test:long`, which sets RANDOM_RUNS=all. */
const SHARE = 0.1;
const RUNS_MIN = 50;

/** True in `npm run test:long`. */
export const isThorough = process.env.RANDOM_RUNS === 'all';

/** Number of random cases of a property. @param all the number in `npm run test:long` */
export function randomRuns(all: number): number {
  return isThorough ? all : Math.min(all, Math.max(RUNS_MIN, all * SHARE));
}
