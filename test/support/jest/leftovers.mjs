/**
 * What a test file started and did not end, since a test failed before it could: services, child processes. The next
 * file of the worker must not share the machine with them.
 */
const leftovers = new Set();

/** Has `end` called when the test file is over. @returns takes that back */
export function endAfterFile(end) {
  leftovers.add(end);
  return () => leftovers.delete(end);
}

/** Called by runner.mjs after each test file. */
export async function endLeftovers() {
  const ends = [...leftovers];
  leftovers.clear();
  await Promise.allSettled(ends.map((end) => end()));
}
