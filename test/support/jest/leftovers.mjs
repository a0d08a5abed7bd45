/**
 * Things that end by themselves after a test or a test file. A module of `test/support` cannot call `afterEach` when it is
 * loaded: it is loaded once per worker, and the hook would belong to the first file alone.
 */
const ofTest = [];
const ofFile = new Set();

/** Has `end` called after the test that runs, last added first; before the first test, after that one. */
export function endAfterTest(end) {
  ofTest.push(end);
}

/** Called by runner.mjs after each test. */
export async function endTest() {
  for (const end of ofTest.splice(0).reverse()) await end();
}

/**
 * Has `end` called when the test file is over: for what a test that failed did not end, which the next file of the
 * worker must not share the machine with. @returns takes that back
 */
export function endAfterFile(end) {
  ofFile.add(end);
  return () => ofFile.delete(end);
}

/** Called by runner.mjs after each test file. */
export async function endFile() {
  const ends = [...ofTest.splice(0), ...ofFile];
  ofFile.clear();
  await Promise.allSettled(ends.map((end) => end()));
}
