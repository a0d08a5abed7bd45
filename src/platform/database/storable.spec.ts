import { describe, expect, it } from '@jest/globals';
import { toStorableJson, toStorableText } from './storable.js';

describe('toStorableJson', () => {
  it('replaces NUL characters and lone surrogates, in keys and values alike', () => {
    expect(toStorableJson({ 'a\0': ['\ud800x', '\udc00', '😀'] })).toEqual({ 'a\ufffd': ['\ufffdx', '\ufffd', '😀'] });
  });

  it('leaves alone what only looks like an escape', () => {
    const value = { path: 'C:\\u0000\\ud800', quote: '"\\', control: '\u0001' };
    expect(toStorableJson(value)).toEqual(value);
  });

  it('returns a clean value as it is', () => {
    const value = { a: 1 };
    expect(toStorableJson(value)).toBe(value);
  });
});

it('toStorableText replaces NUL characters and lone surrogates', () => {
  expect(toStorableText('a\0b\ud800')).toBe('a\ufffdb\ufffd');
});
