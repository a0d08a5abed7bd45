import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { storableFault, toStorableJson } from './storable.js';

describe('text that Postgres cannot store', () => {
  it('becomes U+FFFD, also in member names; infinite numbers become null', () => {
    expect(toStorableJson({ 'a\0': ['b\ud800', { c: Infinity, d: [true, null, 'é'] }] })).toEqual({
      'a\ufffd': ['b\ufffd', { c: null, d: [true, null, 'é'] }],
    });
  });

  it('is removed from every value, and nothing else is', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const storable = toStorableJson(value);
        expect(storableFault(storable)).toBeNull();
        if (storableFault(value) === null) expect(storable).toEqual(value);
      }),
    );
  });
});
