import { describe, expect, it, jest } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { ResultStore } from './result-cache.js';

const HOUR_MS = 60 * 60_000;

describe('ResultCache', () => {
  it('stores a request under a short key', () => {
    const cache = new ResultStore().forChannel();
    const params = (uri: string) => JSON.stringify({ uri });
    expect(cache.keyOf('resources/read', params('a://b'), '')).toContain('a://b');
    expect(cache.keyOf('resources/read', params('x'.repeat(10_000)), '')).toBeNull();
    expect(cache.keyOf('tools/list', undefined, `"${'x'.repeat(10_000)}"`)).toBeNull();
    expect(cache.keyOf('tools/call', '{}', '')).toBeNull();
  });

  it('separates results by the capabilities of callers and by channel', () => {
    const store = new ResultStore();
    const [one, other] = [store.forChannel(), store.forChannel()];
    const keys = [one.keyOf('tools/list', '{}', '{}'), one.keyOf('tools/list', '{}', '{"roots":{}}')];
    expect(new Set([...keys, other.keyOf('tools/list', '{}', '{}')]).size).toBe(3);
    expect(one.keyOf('tools/list', '{}', '{}')).toBe(keys[0]);
  });

  it('changes the keys of lists after a list change, and keeps those of reads', () => {
    const cache = new ResultStore().forChannel();
    const keys = () =>
      ['tools/list', 'resources/templates/list', 'resources/read'].map((one) => cache.keyOf(one, '{}', ''));
    const [tools, templates, read] = keys();
    cache.forgetLists();
    expect(keys()).toEqual([
      expect.not.stringMatching(`^${tools}$`),
      expect.not.stringMatching(`^${templates}$`),
      read,
    ]);
  });

  it('drops a result when its server says so, and after an hour at the latest', async () => {
    const cache = new ResultStore().forChannel();
    const startedAt = performance.now();
    const now = jest.spyOn(performance, 'now').mockReturnValue(startedAt);
    try {
      for (const [key, ttlMs] of Object.entries({ minute: 60_000, week: 7 * 24 * HOUR_MS })) {
        const text = JSON.stringify({ ttlMs });
        cache.keep(key, { text, id: null, result: [0, text.length], error: null, era: 'modern' });
      }
      now.mockReturnValue(startedAt + 60_001);
      await until(() => cache.get('minute') === undefined, 'the shorter one is forgotten');
      expect(cache.get('week')).toBeDefined();
      now.mockReturnValue(startedAt + HOUR_MS + 1);
      await until(() => cache.get('week') === undefined, 'the longer one is forgotten', 2_000);
    } finally {
      now.mockRestore();
    }
  });
});
