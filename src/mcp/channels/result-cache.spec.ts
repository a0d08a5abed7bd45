import { describe, expect, it } from '@jest/globals';
import { ResultStore } from './result-cache.js';

describe('ResultCache', () => {
  it('knows what was asked for by a short key alone', () => {
    const cache = new ResultStore().forChannel();
    const params = (uri: string) => JSON.stringify({ uri });
    expect(cache.keyOf('resources/read', params('a://b'), '')).toContain('a://b');
    expect(cache.keyOf('resources/read', params('x'.repeat(10_000)), '')).toBeNull();
    expect(cache.keyOf('tools/list', undefined, `"${'x'.repeat(10_000)}"`)).toBeNull();
    expect(cache.keyOf('tools/call', '{}', '')).toBeNull();
  });
});
