import { describe, expect, it } from '@jest/globals';
import { isLinearPattern, linearPattern, patternsOf, refusedConstruct, withoutRefusedPatterns } from './patterns.js';
import { schemaCheck } from './schema-check.js';

describe('a pattern of a tenant', () => {
  it('takes linear time, also where JavaScript takes exponential time', () => {
    const check = schemaCheck({ type: 'array', items: { type: 'string', pattern: '^(a+)+$' } });
    const from = performance.now();
    expect(check?.(Array.from({ length: 50 }, () => `${'a'.repeat(1_000)}!`))).toContain('must match pattern');
    expect(check?.(['aaa'])).toBeNull();
    expect(performance.now() - from).toBeLessThan(20_000);
  });

  it.each([
    ['(?=a)b', 'look-around "(?="'],
    ['(?<!a)b', 'look-around "(?<!"'],
    ['(a)\\1', 'the back-reference "\\1"'],
    ['(?<n>a)\\k<n>', 'the back-reference "\\k"'],
    ['a{1001}', 'the repeat "{1001}", which is over 1000'],
    ['a{2,1001}', 'the repeat "{2,1001}", which is over 1000'],
    ['\\p{Script=Greek}', 'the property "\\p{Script=Greek}"'],
    ['[\\b]', 'the escape "[\\b]"'],
    [`(${'a'.repeat(100)}){1000}`, 'repeats of its 108 characters that are over 64000 in all'],
    ['a'.repeat(2_001), 'more than 2000 characters'],
  ])('%s is refused with the name of the construct', (pattern, construct) => {
    expect(refusedConstruct(pattern)).toBe(construct);
    expect(isLinearPattern(pattern)).toBe(false);
  });

  it.each([
    '^[A-Za-z0-9_-]{1,1000}$',
    '\\(?=',
    '[(?=]',
    '\\\\1',
    '(?:a|b)+',
    '(?<n>a)',
    '\\p{L}\\p{Greek}',
    '\\u{1F600}',
  ])('%s is used', (pattern) => {
    expect(refusedConstruct(pattern)).toBeNull();
    expect(isLinearPattern(pattern)).toBe(true);
  });

  it('is not matched against more than 64 KB, or less for a large pattern', () => {
    expect(linearPattern('^a$').test('b'.repeat(64 * 1024))).toBe(false);
    expect(linearPattern('^a$').test('b'.repeat(64 * 1024 + 1))).toBe(true);
    expect(linearPattern('^[ab]{0,1000}c$').test('b'.repeat(10_000))).toBe(true);
  });
});

describe('the patterns of a schema', () => {
  const schema = {
    properties: {
      pattern: { type: 'string', pattern: '(?=a)' },
      more: { patternProperties: { '^x': true, '(a)\\1': { type: 'number' } }, additionalProperties: false },
    },
    default: { pattern: '(?=data)' },
  };

  it('are found where `pattern` is a keyword, with the reasons of refusals', () => {
    expect(patternsOf(schema).map(({ place, pattern, refusal }) => [place, pattern, refusal])).toEqual([
      ['properties.pattern.pattern', '(?=a)', 'look-around "(?="'],
      ['properties.more.patternProperties', '^x', null],
      ['properties.more.patternProperties', '(a)\\1', 'the back-reference "\\1"'],
    ]);
  });

  it('are not checked when they are refused, while the other keywords are', () => {
    const before = structuredClone(schema);
    const check = schemaCheck(schema);
    expect(check?.({ pattern: 'b', more: { aa: 'text' } })).toBeNull();
    expect(check?.({ pattern: 1 })).toBe('pattern must be string');
    expect(schema).toEqual(before);
  });

  it('are at most 50', () => {
    const properties = Object.fromEntries(Array.from({ length: 51 }, (_none, i) => [`p${i}`, { pattern: `^${i}$` }]));
    const refused = patternsOf({ properties }).filter(({ refusal }) => refusal !== null);
    expect(refused.map(({ place }) => place)).toEqual(['properties.p50.pattern']);
    expect(withoutRefusedPatterns({ properties }).properties.p50).toEqual({});
  });
});
