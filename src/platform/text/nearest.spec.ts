import { describe, expect, it } from '@jest/globals';
import { didYouMean, nearestName } from './nearest.js';

describe('the nearest name', () => {
  it('is the one that a misspelling means', () => {
    const names = ['echo', 'search', 'my-first', 'get_forecast'];
    expect(nearestName('ecko', names)).toBe('echo');
    expect(nearestName('my-frist', names)).toBe('my-first');
    expect(nearestName('getForecast', names)).toBe('get_forecast');
    expect(nearestName('ECHO', names)).toBe('echo');
    expect(didYouMean('serach', names)).toBe(' Did you mean "search"?');
  });

  it('is none where nothing is near, and where the name is right', () => {
    for (const name of ['nowhere', '', 'x'.repeat(1_000), 'zz']) expect(nearestName(name, ['echo', 'abc'])).toBeNull();
    expect(nearestName('echo', ['echo'])).toBeNull();
    expect(didYouMean('nowhere', ['echo'])).toBe('');
  });

  it('costs little however many and however long the names are', () => {
    const startedAt = performance.now();
    nearestName(
      'x'.repeat(64),
      Array.from({ length: 100_000 }, (_, i) => `${'y'.repeat(58)}${i}`),
    );
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
