import { describe, expect, it } from '@jest/globals';
import { schemaCheck } from './schema-check.js';

/** Limits that no load of the machine reaches. */
const patient = { compileMs: 20_000, validateMs: 20_000 };

/** Each definition refers to the next one twice: 31 of them validate a value two thousand million times. */
function doubling(): object {
  const $defs: Record<string, object> = { d30: { type: 'integer' } };
  for (let i = 0; i < 30; i += 1) {
    const $ref = `#/$defs/d${i + 1}`;
    $defs[`d${i}`] = { anyOf: [{ $ref }, { $ref, minLength: 1 }] };
  }
  return { type: 'object', $defs, properties: { a: { $ref: '#/$defs/d0' } } };
}

describe('the check of a schema', () => {
  it('names each problem with its path', () => {
    const schema = { type: 'object', required: ['a'], properties: { a: { items: { enum: [1, 2] } } } };
    const check = schemaCheck(schema, patient);
    expect(check?.({})).toBe("must have required property 'a'");
    expect(check?.({ a: [3] })).toBe('a.0 must be equal to one of the allowed values (1, 2)');
    expect(check?.({ a: [2] })).toBeNull();
  });

  it.each([
    ['no schema', 7],
    ['one that refers to elsewhere', { $ref: 'https://example.com/schema' }],
    ['an invalid one', { type: 'strange' }],
    ['one larger than 256 KB', { type: 'object', description: 'x'.repeat(300_000) }],
  ])('is null for %s', (_name, schema) => {
    expect(schemaCheck(schema, patient)).toBeNull();
  });

  it('compares unique items also when they have members that objects inherit', () => {
    const check = schemaCheck({ type: 'array', uniqueItems: true }, patient);
    expect(check?.([{ valueOf: 1 }, { valueOf: 2 }])).toBeNull();
    expect(check?.([{ valueOf: 1 }, { valueOf: 1 }])).toBe('must NOT have duplicate items');
  });
});

describe('a schema whose check takes too long', () => {
  it('is aborted, and allows the value', () => {
    expect(schemaCheck(doubling(), { ...patient, validateMs: 50 })?.({ a: 'x' })).toBeNull();
  });

  it('is not run again', () => {
    const check = schemaCheck({ ...doubling(), title: 'slow' }, { ...patient, validateMs: 50 });
    expect(check?.({ a: 'x' })).toBeNull();
    const from = performance.now();
    for (let i = 0; i < 1_000; i += 1) check?.({ a: 'x' });
    // Run again, it would take 50 ms each time.
    expect(performance.now() - from).toBeLessThan(20_000);
  });

  it('does not affect other schemas when its compilation was aborted', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 6_000 }, (_none, i) => [`p${i}`, { type: 'string', minLength: 2 }]),
    );
    expect(schemaCheck({ type: 'object', properties }, { ...patient, compileMs: 1 })).toBeNull();
    expect(schemaCheck({ type: 'string' }, patient)?.(1)).toBe('must be string');
  });
});
