import { describe, expect, it } from '@jest/globals';
import { isWithinDepth } from './json.js';

describe('the depth of a value', () => {
  it('is the number of values around the innermost one', () => {
    expect(isWithinDepth('x', 0)).toBe(true);
    expect(isWithinDepth({}, 0)).toBe(true);
    expect(isWithinDepth({ a: [null, { b: 1 }] }, 3)).toBe(true);
    expect(isWithinDepth({ a: [null, { b: 1 }] }, 2)).toBe(false);
  });

  it('is found for values too deep for recursion, and for wide ones', () => {
    const deep: unknown = JSON.parse('['.repeat(1_000_000) + ']'.repeat(1_000_000));
    expect(() => JSON.stringify(deep)).toThrow(RangeError);
    expect(isWithinDepth(deep, 256)).toBe(false);
    expect(isWithinDepth(new Array(1_000_000).fill([]), 2)).toBe(true);
  });
});
