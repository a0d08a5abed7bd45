import { describe, expect, it } from '@jest/globals';
import { didYouMean, nearestName } from './nearest.js';

describe('the nearest name', () => {
  it('is the one with the fewest differing characters', () => {
    const names = ['echo', 'search', 'my-first', 'get_forecast'];
    expect(nearestName('ecko', names)).toBe('echo');
    expect(nearestName('my-frist', names)).toBe('my-first');
    expect(nearestName('getForecast', names)).toBe('get_forecast');
    expect(nearestName('ECHO', names)).toBe('echo');
    expect(didYouMean('serach', names)).toBe(' Did you mean "search"?');
  });

  it('is null if none is near, and for an exact match', () => {
    for (const name of ['nowhere', '', 'x'.repeat(1_000), 'zz']) expect(nearestName(name, ['echo', 'abc'])).toBeNull();
    expect(nearestName('echo', ['echo'])).toBeNull();
    expect(didYouMean('nowhere', ['echo'])).toBe('');
  });

  it('reads no more than 1,000 names', () => {
    let read = 0;
    function* names() {
      for (; read < 100_000; read += 1) yield `${'y'.repeat(58)}${read}`;
    }
    expect(nearestName('x'.repeat(64), names())).toBeNull();
    expect(read).toBe(1_000);
  });

  it('ignores names over 64 characters', () => {
    expect(nearestName('x'.repeat(65), ['x'.repeat(64)])).toBeNull();
    expect(nearestName('x'.repeat(64), ['x'.repeat(65)])).toBeNull();
    expect(nearestName('x'.repeat(63), ['x'.repeat(64)])).toBe('x'.repeat(64));
  });
});
