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

  it('looks for lists under other keys once they are others, and for what was read under the same', () => {
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
});
