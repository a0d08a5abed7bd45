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

/** Has `end` called when the test file is over, last added first. @returns takes that back */
export function endAfterFile(end) {
  ofFile.add(end);
  return () => ofFile.delete(end);
}

/** Called by runner.mjs after each test file. */
export async function endFile() {
  const ends = [...ofFile, ...ofTest.splice(0)].reverse();
  ofFile.clear();
  const failures = [];
  for (const end of ends)
    await Promise.resolve()
      .then(end)
      .catch((error) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
