/** A tenth finds what a change breaks; the rest is for `npm run test:long`, which sets RANDOM_RUNS=all. */
const SHARE = 0.1;
const RUNS_MIN = 50;

/** True in `npm run test:long`. */
export const isThorough = process.env.RANDOM_RUNS === 'all';

/** How many random cases a property is tried with, of the number that `npm run test:long` tries. */
export function randomRuns(all: number): number {
  return isThorough ? all : Math.min(all, Math.max(RUNS_MIN, all * SHARE));
}
