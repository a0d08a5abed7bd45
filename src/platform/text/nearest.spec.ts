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

  it('reads no more than 1,000 names', () => {
    let read = 0;
    function* names() {
      for (; read < 100_000; read += 1) yield `${'y'.repeat(58)}${read}`;
    }
    expect(nearestName('x'.repeat(64), names())).toBeNull();
    expect(read).toBe(1_000);
  });

  it('is not looked for among names over 64 characters', () => {
    expect(nearestName('x'.repeat(65), ['x'.repeat(64)])).toBeNull();
    expect(nearestName('x'.repeat(64), ['x'.repeat(65)])).toBeNull();
    expect(nearestName('x'.repeat(63), ['x'.repeat(64)])).toBe('x'.repeat(64));
  });
});
