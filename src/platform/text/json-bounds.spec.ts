import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { boundExceeded, JsonScanner, parseBounded } from './json-bounds.js';

/** Counts of a value, as the scanner must find them in its text. */
function countsOf(value: unknown): { depth: number; members: number; elements: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, members: 0, elements: 0 };
  const inner = Object.values(value).map(countsOf);
  const sum = (key: 'members' | 'elements') => inner.reduce((total, one) => total + one[key], 0);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    members: sum('members') + (Array.isArray(value) ? 0 : inner.length),
    elements: sum('elements') + (Array.isArray(value) ? inner.length : 0),
  };
}

/** The outcome of a string that arrives in pieces of this many bytes. */
function scanned(text: string, pieceBytes: number, bounds?: ReturnType<typeof countsOf>): string | null {
  const scanner = new JsonScanner(bounds);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const exceeded = scanner.push(bytes.subarray(at, at + pieceBytes));
    if (exceeded !== null) return exceeded;
  }
  return null;
}

const words = fc.oneof(fc.string(), fc.constantFrom('{[,:"', '\\"'.repeat(40), '\\'.repeat(33), 'ä'.repeat(50)));
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    words,
    fc.integer(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(words, tie('value'), { maxKeys: 4 }),
  ),
}));

describe('JsonScanner', () => {
  it('counts depth, members and elements of any JSON exactly, however it is split into chunks', () => {
    fc.assert(
      fc.property(json, fc.integer({ min: 1, max: 90 }), fc.constantFrom(undefined, 2), (value, pieceBytes, indent) => {
        const text = JSON.stringify(value, null, indent);
        const counts = countsOf(value);
        expect(scanned(text, pieceBytes, counts)).toBeNull();
        for (const key of ['depth', 'members', 'elements'] as const) {
          if (counts[key] === 0) continue;
          expect(scanned(text, pieceBytes, { ...counts, [key]: counts[key] - 1 })).toMatch(/^more than/);
        }
      }),
    );
  });

  it('stops at the bound, before the rest has arrived', () => {
    const scanner = new JsonScanner();
    expect(scanner.push(Buffer.from('['.repeat(100)))).toBeNull();
    expect(scanner.push(Buffer.from('['))).toBe('more than 100 nested levels');
    expect(scanned('{'.repeat(101), 7)).toBe('more than 100 nested levels');
    const members = Array.from({ length: 50_001 }, (_, n) => `"${n}":0`).join(',');
    expect(boundExceeded(`{${members}`)).toBe('more than 50000 members of objects');
    expect(boundExceeded(`[${'0,'.repeat(500_000)}`)).toBe('more than 500000 elements of arrays');
  });

  it('counts after a byte order mark, and nothing in text that is neither object nor array', () => {
    expect(boundExceeded(`\uFEFF${'['.repeat(300)}`)).toBe('more than 100 nested levels');
    expect(boundExceeded(`<html>${'['.repeat(300)}`)).toBeNull();
    expect(boundExceeded(JSON.stringify('['.repeat(300)))).toBeNull();
  });

  it('reads long strings of backslashes and quotes in linear time', () => {
    const startedAt = performance.now();
    for (const word of ['\\', '"', '\\"']) {
      expect(boundExceeded(JSON.stringify([word.repeat(4_000_000)]))).toBeNull();
    }
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe('parseBounded', () => {
  it('parses within the bounds and refuses beyond them', () => {
    expect(parseBounded('{"a":[1]}')).toEqual({ a: [1] });
    expect(() => parseBounded('['.repeat(101) + ']'.repeat(101))).toThrow('it has more than 100 nested levels');
    expect(() => parseBounded('{')).toThrow(SyntaxError);
  });
});
