/**
 * Stands for `@jest/globals` in tests. The bindings are live: modules stay loaded from one test file to the next in a
 * worker, and each file has its own `it`, `expect` and hooks.
 */
/** `it` of a test that only `npm run test:long` runs, although others of its file belong to `npm test`. */
export let longIt;
/** `it` of a test that runs in the project `alone`, of which one file runs at a time: it promises a wall-clock time, or kills. */
export let aloneIt;
export let afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test;

/** Called by runner.mjs before each test file. */
export function setGlobals(globals) {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, longIt, aloneIt, test } = globals);
}
