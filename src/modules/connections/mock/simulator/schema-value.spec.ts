import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { schemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { satisfyingValue, UnsatisfiableError, valueFor } from './schema-value.js';
import { randomRuns } from '../../../../../test/support/random-runs.js';

/** Schemas as tools have them, each one satisfiable. */
const { schema: schemas } = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom({ type: 'boolean' }, { type: 'null' }, { type: ['string', 'null'] }, {}, { const: { a: 1 } }),
    fc.record({ enum: fc.uniqueArray(fc.oneof(fc.string(), fc.integer(), fc.boolean()), { minLength: 1 }) }),
    fc
      .tuple(fc.integer({ min: -1_000, max: 1_000 }), fc.integer({ min: 0, max: 500 }), fc.boolean())
      .map(([minimum, more, whole]) => ({ type: whole ? 'integer' : 'number', minimum, maximum: minimum + more })),
    fc
      .tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 }))
      .map(([minLength, more]) => ({ type: 'string', minLength, maxLength: minLength + more })),
    fc
      .constantFrom('date-time', 'date', 'time', 'email', 'uri', 'uuid', 'hostname', 'ipv4', 'ipv6', 'duration')
      .map((format) => ({ type: 'string', format })),
    fc
      .constantFrom('^[A-Z]{3}-\\d+$', '^(open|closed)$', '^[^@\\s]+@x\\.org$', '^v?\\d{1,2}(?:\\.\\d)*$')
      .map((pattern) => ({ type: 'string', pattern })),
    fc.constantFrom(
      { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.005 },
      { type: 'integer', multipleOf: 7 },
      { type: 'number', minimum: 0, maximum: 0 },
      { type: 'number', minimum: -0.3, maximum: -0.3 },
      { type: 'integer', exclusiveMinimum: 0.5, maximum: 1 },
      { type: 'integer', minimum: 3, exclusiveMaximum: 3.5 },
    ),
  ),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom('id', 'name', 'items', 'created_at', 'total'), tie('schema')),
        fc.boolean(),
        fc.boolean(),
      )
      .map(([properties, isClosed, allRequired]) => ({
        type: 'object',
        properties,
        required: allRequired ? Object.keys(properties) : [],
        ...(isClosed ? { additionalProperties: false } : {}),
      })),
    fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]) => ({ type: 'array', items, minItems })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    tie('schema').map((part) => ({ allOf: [part], description: 'wrapped' })),
  ),
}));

describe('a generated value for a schema', () => {
  it('matches the schema and is the same each time', () => {
    fc.assert(
      fc.property(schemas, fc.option(fc.jsonValue()), (schema, known) => {
        const check = schemaCheck(schema);
        const value = valueFor(schema, known ?? undefined);
        expect(check?.(value)).toBeNull();
        expect(valueFor(schema, known ?? undefined)).toEqual(value);
      }),
      { numRuns: randomRuns(500) },
    );
  });

  it('is a fraction between bounds that contain no whole number, also where the wanted number is whole', () => {
    const schema = { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.005 };
    expect(valueFor(schema, 0)).toBe(0.0025);
  });

  it('follows references, recursive ones too', () => {
    const schema = {
      type: 'object',
      required: ['root'],
      properties: { root: { $ref: '#/$defs/node' } },
      $defs: {
        node: {
          type: 'object',
          required: ['value', 'children'],
          properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
          additionalProperties: false,
        },
      },
    };
    expect(schemaCheck(schema)?.(valueFor(schema))).toBeNull();
  });

  it.each([
    ['a required member of itself', { type: 'object', required: ['me'], properties: { me: { $ref: '#' } } }],
    ['false', false],
    ['a billion items', { type: 'array', minItems: 1e9 }],
    ['a billion letters', { type: 'string', minLength: 1e9 }],
    ['a billion members', { type: 'object', minProperties: 1e9 }],
    ['no choice', { enum: [] }],
    ['an empty range', { type: 'integer', minimum: 3, maximum: 2 }],
    ['alternatives of itself', { type: 'object', required: ['x'], properties: { x: { anyOf: [{ $ref: '#' }] } } }],
  ])('is refused with UnsatisfiableError for %s', (_name, schema) => {
    expect(() => valueFor(schema)).toThrow(UnsatisfiableError);
  });

  it('uses known values that match, by names in any spelling, and generates the rest', () => {
    const schema = {
      type: 'object',
      required: ['issue_number', 'title', 'state'],
      properties: {
        issue_number: { type: 'integer' },
        title: { type: 'string', maxLength: 10 },
        state: { enum: ['OPEN', 'CLOSED'] },
        email: { type: 'string', format: 'email' },
      },
      additionalProperties: false,
    };
    const known = { issueNumber: 7, title: 'longer than ten letters', state: 'closed', email: 'no email', more: true };
    const value = valueFor(schema, known) as Record<string, unknown>;
    expect(value).toMatchObject({ issue_number: 7, state: 'CLOSED' });
    expect(value).not.toHaveProperty('more');
    expect(schemaCheck(schema)?.(value)).toBeNull();
  });

  it.each([
    ['the first example', { type: 'string', examples: ['b', 'a'], default: 'c' }, 'b'],
    ['else the default', { type: 'string', default: 'c' }, 'c'],
    ['the first word of an enumeration', { enum: ['b', 'a'] }, 'b'],
    ['the example among its words', { enum: ['b', 'a'], default: 'a' }, 'a'],
    ['the name of the member', { type: 'object', properties: { title: { type: 'string' } } }, { title: 'title' }],
    ['the shortest text of a pattern', { type: 'string', pattern: '^[A-Z]{2,}-(?:\\d+|x)\\.y?$' }, 'AA-0.'],
    ['a longer text of a pattern', { type: 'string', pattern: '^a+$', minLength: 4 }, 'aaaa'],
    ['the number nearest to 0', { type: 'integer', minimum: 3 }, 3],
    [
      'different items',
      { type: 'array', minItems: 3, uniqueItems: true, items: { type: 'string', maxLength: 1 } },
      ['t', '1', '2'],
    ],
  ])('is %s', (_name, schema, value) => {
    expect(satisfyingValue(schema, schemaCheck(schema), undefined)).toEqual(value);
  });
});
