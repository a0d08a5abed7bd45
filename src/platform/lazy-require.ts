import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * A package for rare work, such as reading YAML. It is loaded at the first call of the returned function: a process
 * that never does this work saves its memory.
 */
export function lazyRequire<T>(name: string): () => T {
  return () => require(name) as T;
}
