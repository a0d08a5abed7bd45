export interface Repeat {
  stop(): void;
}

/** Calls `work` every `ms` milliseconds until stopped. Does not keep the process alive. `work` must not throw. */
export function repeat(ms: number, work: () => void): Repeat {
  const timer = setInterval(work, ms).unref();
  return { stop: () => clearInterval(timer) };
}
