/**
 * Runs a parser that creates an error for each invalid line: without stack traces, an error costs 1 µs instead of
 * 10.
 */
export function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
