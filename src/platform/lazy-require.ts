import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Loads a package of rare work when first used, such as reading YAML: a process that never does this work saves its memory. */
export function lazyRequire<T>(name: string): () => T {
  return () => require(name) as T;
}
