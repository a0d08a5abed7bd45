/** How many milliseconds are left of `timeoutMs` from now, whenever it is asked; at least 1. */
export function deadlineIn(timeoutMs: number): () => number {
  const until = performance.now() + timeoutMs;
  return () => Math.max(1, until - performance.now());
}
