import { describe, expect, it } from '@jest/globals';
import { schemaCheck } from './schema-check.js';

/** Each definition asks the next one twice: 31 of them ask two thousand million times. */
function doubling(): object {
  const $defs: Record<string, object> = { d30: { type: 'integer' } };
  for (let i = 0; i < 30; i += 1) {
    const $ref = `#/$defs/d${i + 1}`;
    $defs[`d${i}`] = { anyOf: [{ $ref }, { $ref, minLength: 1 }] };
  }
  return { type: 'object', $defs, properties: { a: { $ref: '#/$defs/d0' }, b: { type: 'string' } } };
}

describe('a schema that would take for ever', () => {
  it('is given up, and allows what it was asked about', () => {
    const check = schemaCheck(doubling());
    expect(check?.({ a: 'x' })).toBeNull();
    expect(check?.({ b: 1 })).toBe('b must be string');
  });

  it('is given up when many texts are compared with a pattern', () => {
    const check = schemaCheck({ type: 'array', items: { type: 'string', pattern: '^(a+)+$' } });
    expect(check?.(Array.from({ length: 5_000 }, () => `${'a'.repeat(40)}!`))).toBeNull();
    expect(check?.(['b'])).toContain('must match pattern');
  });

  it('is compiled once for all references to it', () => {
    const names = Array.from({ length: 300 }, (_none, i) => `p${i}`);
    const large = Object.fromEntries(names.map((name) => [name, { type: 'string', minLength: 2 }]));
    const $defs = { large: { type: 'object', properties: large } };
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: '#/$defs/large' }]));
    expect(schemaCheck({ type: 'object', $defs, properties })?.({ p0: { p0: 'x' } })).toContain('fewer than 2');
  });

  it('leaves the others alone when it was given up while it was compiled', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 6_000 }, (_none, i) => [`p${i}`, { type: 'string', minLength: 2 }]),
    );
    schemaCheck({ type: 'object', properties });
    expect(schemaCheck({ type: 'string' })?.(1)).toBe('must be string');
  });
});
