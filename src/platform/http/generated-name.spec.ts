import { describe, expect, it } from '@jest/globals';
import { generateName } from './generated-name.js';
import { isNamespaceName } from './resource-names.js';

describe('generateName', () => {
  it('makes valid namespace names of an animal and a suffix without vowels', () => {
    const names = Array.from({ length: 2_000 }, () => generateName(4));
    expect(names.filter((name) => !/^[a-z]{3,}-[2-9bcdfghjkmnpqrstvwxz]{4}$/.test(name))).toEqual([]);
    expect(names.filter((name) => !isNamespaceName(name))).toEqual([]);
    // 26^4 tails times more than 60 animals: hardly two alike.
    expect(new Set(names).size).toBeGreaterThan(1_990);
  });
});
