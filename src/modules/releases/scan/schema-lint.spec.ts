import { describe, expect, it } from '@jest/globals';
import { schemaIssues } from './schema-lint.js';

const texts = (schema: unknown) => schemaIssues(schema).map(({ text }) => text);
const rules = (schema: unknown) => schemaIssues(schema).map(({ rule }) => rule);
const string = { type: 'string' };

describe('the schema of a tool', () => {
  it('may use every keyword of its dialect', () => {
    for (const schema of [
      {},
      { type: 'object' },
      { type: 'object', properties: { q: { ...string, format: 'no-such-format', 'x-ui': { a: 1 } } }, required: ['q'] },
      { type: 'object', properties: { a: { anyOf: [string, { type: 'null' }], default: null }, b: true, c: false } },
      { $schema: 'http://json-schema.org/draft-07/schema#', items: [string, string], definitions: { a: string } },
      {
        $schema: 'https://json-schema.org/draft/2019-09/schema',
        $recursiveAnchor: true,
        items: [{ $recursiveRef: '#' }],
      },
      { $schema: 'https://json-schema.org/draft/2020-12/schema', prefixItems: [string], unevaluatedProperties: false },
      { $schema: 'http://json-schema.org/draft-06/schema#', const: 1 },
      // Written for draft-07 without saying so, as older servers do.
      { type: 'object', properties: { pair: { type: 'array', items: [string, string] } } },
      // Members that look like references and are values or names.
      { properties: { $ref: string, $id: string, pattern: string }, default: { $ref: 'https://evil.test' } },
      { enum: [{ $ref: 'file:///etc/passwd' }], const: { $id: 'http://x' }, examples: [{ pattern: '(' }] },
      { properties: { p: { ...string, pattern: '^[\\w\\-]+$' } }, patternProperties: { '^x-\\_': {} } },
    ]) {
      expect([schema, schemaIssues(schema)]).toEqual([schema, []]);
    }
  });

  it('may refer to itself, also in a cycle', () => {
    for (const schema of [
      { $ref: '#' },
      { $defs: { node: { properties: { next: { $ref: '#/$defs/node' } } } }, $ref: '#/$defs/node' },
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
      { $defs: { a: { $anchor: 'here' } }, $ref: '#here' },
      { definitions: { a: { $id: '#here' } }, $ref: '#here', $schema: 'http://json-schema.org/draft-07/schema#' },
      { $defs: { a: { $dynamicAnchor: 'node' } }, $dynamicRef: '#node' },
      { $defs: { 'a/b~c d': string }, $ref: '#/$defs/a~1b~0c%20d' },
      { properties: { a: { oneOf: [string, true] }, b: { $ref: '#/properties/a/oneOf/1' } } },
      { components: { schemas: { A: string } }, $ref: '#/components/schemas/A' },
      { $defs: { a: { $id: 'item', $defs: { x: string }, $ref: '#/$defs/x' } }, $ref: 'item' },
    ]) {
      expect([schema, schemaIssues(schema)]).toEqual([schema, []]);
    }
  });

  it('must be valid', () => {
    expect(texts('no')).toEqual(['is not an object']);
    expect(texts(['type'])).toEqual(['is not an object']);
    expect(texts({ type: 'strnig' })).toEqual([
      'is not valid JSON Schema (2020-12): "type" must be equal to one of the allowed values',
    ]);
    expect(texts({ properties: { q: { required: true } } })).toEqual([
      'is not valid JSON Schema (2020-12): "properties.q.required" must be array',
    ]);
    for (const schema of [
      { properties: [] },
      { required: ['a', 'a'] },
      { minLength: -1 },
      { additionalProperties: 'no' },
      { $schema: 'http://json-schema.org/draft-07/schema#', properties: { a: 1 } },
      { $schema: 'https://json-schema.org/draft/2019-09/schema#', exclusiveMinimum: true },
    ]) {
      expect([schema, rules(schema)]).toEqual([schema, ['invalid-schema']]);
    }
    for (const $schema of ['http://json-schema.org/draft-04/schema#', 'https://evil.test/meta', 7, null]) {
      expect(texts({ $schema })[0]).toMatch(/^declares a dialect clients do not know, /);
    }
  });

  it('must not refer to an external schema, with any keyword', () => {
    for (const [name, text] of [
      ['$ref', 'https://evil.test/schema.json'],
      ['$ref', '//evil.test/s#/a'],
      ['$ref', 'file:///etc/passwd'],
      ['$ref', 'other.json'],
      ['$ref', '/schema'],
      ['$ref', ' #/a'],
      ['$dynamicRef', 'https://evil.test/#node'],
      ['$recursiveRef', 'https://evil.test/'],
    ]) {
      const schema = { properties: { a: { anyOf: [{ [name]: text }] } } };
      expect([text, schemaIssues(schema)]).toEqual([
        text,
        [
          {
            rule: 'remote-reference',
            text: expect.stringContaining(`at "properties.a.anyOf.0.${name}", which clients must not fetch`),
          },
        ],
      ]);
    }
    for (const $id of ['https://evil.test/base/', '//evil.test', '/a', '\\\\evil', 'urn:x:y', 'HTTP://a']) {
      expect(rules({ $defs: { a: { $id } } })).toEqual([]);
      expect(rules({ $defs: { a: { $id } }, items: { $ref: '#/$defs/a' } })).toEqual(['remote-reference']);
    }
  });

  it('may have any value below a word that is no keyword', () => {
    const values = [{ $ref: 'https://evil.test' }, { pattern: '[' }, { $id: 'urn:x:y', $dynamicRef: 'a.json' }];
    for (const value of values) {
      for (const hint of [value, [value], { properties: { a: value } }]) {
        expect([hint, rules({ 'x-hint': hint, properties: { a: { 'x-more': hint, example: hint } } })]).toEqual([
          hint,
          [],
        ]);
      }
    }
  });

  it('may not contain external references in referenced values', () => {
    const remote = { $ref: 'https://evil.test' };
    for (const schema of [
      { 'x-more': { deep: [{ anyOf: [remote] }] }, $ref: '#/x-more/deep/0' },
      { default: remote, $ref: '#/default' },
      { properties: { a: { enum: [remote] }, b: { $ref: '#/properties/a/enum/0' } } },
      {
        $defs: { a: { default: { x: { $ref: '#/$defs/b' } } }, b: { const: remote } },
        allOf: [{ $ref: '#/$defs/a/default/x' }, { $ref: '#/$defs/b/const' }],
      },
      { not: remote, if: remote, items: remote },
    ]) {
      expect([schema, rules(schema)[0]]).toEqual([schema, 'remote-reference']);
    }
  });

  it('must not refer to a missing schema', () => {
    for (const $ref of [
      '#/$defs/missing',
      '#missing',
      '#/properties/toString',
      '#/%E0%A4%A',
      '#/required/0',
      '#/type',
    ]) {
      expect(texts({ type: 'object', required: ['a'], properties: { a: { $ref } } })).toEqual([
        `refers to "${$ref}" at "properties.a.$ref", and nothing is there`,
      ]);
    }
  });

  it('must have valid regular expressions as patterns, which are never run', () => {
    expect(texts({ properties: { a: { ...string, pattern: '(?P<x>' } } })).toEqual([
      'has a pattern that is not a regular expression of JavaScript, "(?P<x>" at "properties.a.pattern"',
    ]);
    expect(rules({ patternProperties: { '[': {} } })).toEqual(['invalid-schema']);
    const from = performance.now();
    expect(
      schemaIssues({ ...string, pattern: '^(a+)+$', default: `${'a'.repeat(40)}b`, $id: '#' + 'a'.repeat(50) }),
    ).toEqual([]);
    expect(performance.now() - from).toBeLessThan(10_000);
  });

  it('must not exceed the size that a model can read', () => {
    expect(schemaIssues({ description: 'é'.repeat(150 * 1024) })).toEqual([
      { rule: 'schema-too-large', text: expect.stringContaining('has 301 KB') },
    ]);
    expect(schemaIssues({ description: 'x'.repeat(250 * 1024) })).toEqual([]);
  });

  it('is checked in bounded time for any content', () => {
    const many = (count: number, one: (at: number) => [string, unknown]) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => one(at)));
    const nested = (depth: number): object => (depth === 0 ? {} : { allOf: [nested(depth - 1)], anyOf: [{}] });
    for (const schema of [
      { required: Array.from({ length: 20_000 }, (_, at) => `name${at}`) },
      { enum: Array.from({ length: 10_000 }, (_, at) => ({ at })) },
      { $defs: many(8_000, (at) => [`d${at}`, { $ref: `#/$defs/d${at + 1 === 8_000 ? 0 : at + 1}` }]) },
      { $defs: many(2_000, (at) => [`d${at}`, { anyOf: [{ $ref: `#/$defs/d${(at + 1) % 2_000}` }, { $ref: '#' }] }]) },
      { properties: many(5_000, (at) => [`p${at}`, { type: 'string', pattern: `^${at}(a|b)*$` }]) },
      { $ref: `#${'/a'.repeat(120_000)}` },
      nested(45),
    ]) {
      const from = performance.now();
      schemaIssues(schema);
      expect(performance.now() - from).toBeLessThan(20_000);
    }
  });
});
