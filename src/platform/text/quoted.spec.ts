import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { codePointName, quote } from './quoted.js';

describe('text from outside that is quoted', () => {
  it('keeps plain text of any script', () => {
    for (const text of ['', 'search', 'Straße 7', '検索', 'نمونه', 'ﬁ', '😀']) expect(quote(text)).toBe(`"${text}"`);
  });

  it('has escaped quotes, backslashes and line breaks', () => {
    expect(quote('a"b\\c\nd\r\te')).toBe('"a\\"b\\\\c\\nd\\r\\te"');
  });

  it('has invisible characters as their codes', () => {
    expect(quote('a\u202Eb\u200Bc\u{E0041}d\uFE0Fe\u00A0f\uD800g\u3164h\u001B[2K')).toBe(
      '"a\\u{202E}b\\u{200B}c\\u{E0041}d\\u{FE0F}e\\u{A0}f\\u{D800}g\\u{3164}h\\u{1B}[2K"',
    );
  });

  it('is cut between characters', () => {
    expect(quote('x'.repeat(61))).toBe(`"${'x'.repeat(60)}…"`);
    expect(quote('x'.repeat(60))).toBe(`"${'x'.repeat(60)}"`);
    expect(quote('😀'.repeat(60))).toBe(`"${'😀'.repeat(60)}"`);
    expect(quote('😀'.repeat(1_000_000), 3)).toBe('"😀😀😀…"');
  });

  it('has few combining marks in a row, which would cover other lines', () => {
    expect(quote(`a${'\u0301'.repeat(50)}b`, 100)).toBe('"a\u0301\u0301b"');
  });

  it('is short and visible for every text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const safe = quote(text, 20);
        expect(safe).not.toMatch(/\p{C}|\p{Default_Ignorable_Code_Point}/u);
        expect(safe.length).toBeLessThanOrEqual(20 * '\\u{10FFFF}'.length + 3);
      }),
    );
  });

  it('names code points as Unicode does', () => {
    expect([codePointName('\u00AD'), codePointName('\u{E0041}')]).toEqual(['U+00AD', 'U+E0041']);
  });
});
