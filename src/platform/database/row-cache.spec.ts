import { beforeEach, describe, expect, it } from '@jest/globals';
import { databaseAvailability } from './database-availability.js';
import { RowCache } from './row-cache.js';

/** A cache whose reads end when the test says so. */
function cacheWithReads() {
  const reads: { key: string; end: (row: { n: number } | null) => void; fail: (error: Error) => void }[] = [];
  const load = (key: string) =>
    new Promise<{ n: number } | null>((end, fail) => {
      reads.push({ key, end, fail });
    });
  return { reads, cache: new RowCache<{ n: number }>(load, { max: 10, ttlMs: 60_000 }) };
}

// The one of the process may remember an outage of another test.
beforeEach(() => {
  databaseAvailability.allowStale(0);
  databaseAvailability.markAvailable();
});

describe('RowCache', () => {
  it('reads a row once for concurrent and later callers', async () => {
    const { cache, reads } = cacheWithReads();
    const asked = [cache.get('a'), cache.get('a')];
    reads[0]?.end({ n: 1 });
    expect(await Promise.all(asked)).toEqual([{ n: 1 }, { n: 1 }]);
    expect(await cache.get('a')).toEqual({ n: 1 });
    expect(reads).toHaveLength(1);
  });

  it('caches neither a missing row nor a failed read', async () => {
    const { cache, reads } = cacheWithReads();
    const missing = cache.get('a');
    reads[0]?.end(null);
    expect(await missing).toBeNull();
    const failing = cache.get('a');
    reads[1]?.fail(new Error('away'));
    await expect(failing).rejects.toThrow('away');
    const found = cache.get('a');
    reads[2]?.end({ n: 3 });
    expect(await found).toEqual({ n: 3 });
  });

  it.each([
    ['drop', (cache: RowCache<{ n: number }>) => cache.drop('a')],
    ['dropWhere', (cache: RowCache<{ n: number }>) => cache.dropWhere(() => false)],
  ])('%s: a row that is being read answers those who asked before, and is not kept', async (_, drop) => {
    const { cache, reads } = cacheWithReads();
    const before = cache.get('a');
    drop(cache);
    const after = cache.get('a');
    reads[1]?.end({ n: 2 });
    expect(await after).toEqual({ n: 2 });
    reads[0]?.end({ n: 1 });
    expect(await before).toEqual({ n: 1 });
    expect(await cache.get('a')).toEqual({ n: 2 });
    expect(reads).toHaveLength(2);
  });

  it('dropWhere removes the rows that match and no others', async () => {
    const { cache, reads } = cacheWithReads();
    for (const [i, key] of ['a', 'b'].entries()) {
      const asked = cache.get(key);
      reads[i]?.end({ n: i });
      await asked;
    }
    cache.dropWhere(({ n }) => n === 1);
    expect(await cache.get('a')).toEqual({ n: 0 });
    void cache.get('b');
    expect(reads.map(({ key }) => key)).toEqual(['a', 'b', 'b']);
  });

  it.each([
    ['a cached row', true],
    ['a row that is being read', false],
  ])('expire: %s is read again, and used while the database is unavailable if it is current', async (_, isRead) => {
    for (const [n, error] of [
      [1, null],
      [2, 'ECONNREFUSED'],
    ] as const) {
      const { cache, reads } = cacheWithReads();
      databaseAvailability.allowStale(60_000);
      databaseAvailability.markAvailable();
      const first = cache.get('a');
      if (!isRead) cache.expire('a', (row) => row.n === n);
      reads[0]?.end({ n: 1 });
      await first;
      if (isRead) cache.expire('a', (row) => row.n === n);
      const again = cache.get('a');
      expect(reads).toHaveLength(2);
      reads[1]?.fail(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
      if (error) await expect(again).rejects.toThrow('refused');
      else expect(await again).toEqual({ n: 1 });
      databaseAvailability.markAvailable();
    }
  });
});
