import { LRUCache } from 'lru-cache';

/** Limit of entries of a cache in one process, of up to some hundred bytes each. Further ones are read again. */
const ENTRIES_MAX = 50_000;

/**
 * A cache of at most `max` values, which drops the least recently used one. Its memory grows with its values: the
 * option `max` of lru-cache allocates all entries in advance (100,000 take 4.4 MB and 20 ms).
 */
export function growingLru<Value extends object | number | string | boolean>(
  max = ENTRIES_MAX,
  options: { ttl?: number } = {},
): LRUCache<string, Value> {
  return new LRUCache({ ...options, maxSize: max, sizeCalculation: () => 1 });
}
