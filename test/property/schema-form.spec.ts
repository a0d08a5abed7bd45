import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomRuns } from '../support/random-runs.js';
import { schemaCheck } from '../../src/platform/json-schema/schema-check.js';
import { isObject } from '../../src/platform/text/json.js';
import { satisfyingValue } from '../../src/modules/connections/mock/simulator/schema-value.js';
import {
  defaultsOf,
  entriesOf,
  formOf,
  inputAt,
  valueIn,
  type Faults,
  type Field,
} from '../../src/extensions/tool-forms/schema-form.js';

/** Input schemas of published servers, by server and tool. */
const published = Object.entries(
  JSON.parse(readFileSync('test/vendor/input-schemas/schemas.json', 'utf8')) as Record<string, unknown>,
);

/** The value that a form sends for one that is filled in. */
function sent(root: Field, value: unknown): unknown {
  const entries = entriesOf(root, value);
  expect(entries).not.toBeNull();
  const faults: Faults = new Map();
  // As browsers send line ends.
  const crossed = (entries ?? []).map(([name, text]): [string, string] => [name, text.replaceAll('\n', '\r\n')]);
  const read = valueIn(root, new URLSearchParams(new URLSearchParams(crossed).toString()), faults);
  expect([...faults]).toEqual([]);
  return read;
}

/** The paths of the members that a schema names, below `properties` only. */
function pathsIn(schema: unknown): string[][] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  return Object.entries(schema.properties).flatMap(([name, part]) => [
    [name],
    ...pathsIn(part).map((path) => [name, ...path]),
  ]);
}

/** The field of an input. */
function fieldAt(field: Field, name: string): Field | undefined {
  if (field.name === name) return field;
  return [...field.members.values()].map((member) => fieldAt(member, name)).find((found) => found !== undefined);
}

describe('the form of the schema of a published server', () => {
  it('is one of at least 60', () => {
    expect(published.length).toBeGreaterThanOrEqual(60);
  });

  it('draws nine of ten members, and sends their values without JSON', () => {
    const controls = published.flatMap(([, schema]) =>
      [...formOf(schema).members.values()].map(({ control }) => control),
    );
    expect(controls.filter((control) => control !== 'json').length / controls.length).toBeGreaterThan(0.9);
    const whole = published.filter(([, schema]) => {
      const value = satisfyingValue(schema, schemaCheck(schema), undefined);
      return (entriesOf(formOf(schema), value) ?? []).some(([name]) => name === '#');
    });
    expect(whole.map(([name]) => name)).toEqual([]);
  });

  it.each(published)('%s has every member, and sends what is filled in', (_name, schema) => {
    const root = formOf(schema);
    for (const path of pathsIn(schema)) {
      const name = inputAt(root, path);
      const isOwn = name === `#/${path.join('/')}`;
      expect([path, isOwn || fieldAt(root, name)?.control === 'json']).toEqual([path, true]);
    }
    const check = schemaCheck(schema);
    for (const wanted of [undefined, {}, { path: 'kept', a: 5, owner: 'x\ny' }]) {
      const value = satisfyingValue(schema, check, wanted);
      const read = sent(root, value);
      expect(read).toEqual(value);
      expect(check?.(read)).toBeNull();
    }
  });
});

describe('the form of a schema without an end', () => {
  const none = { type: 'null' };
  const again = { $ref: '#/$defs/x' };
  const nested = (text: [string, string]) => JSON.parse(text[0].repeat(20_000) + text[1].repeat(20_000)) as unknown;

  it.each<[string, unknown]>([
    ['is optional again and again', { anyOf: [again, none] }],
    ['is one of itself', { oneOf: [none, again] }],
    ['is a list of itself', { type: 'array', items: again }],
    ['is an object of itself', { type: 'object', properties: { a: again, b: again } }],
    ['is an optional object of optional ones', { anyOf: [{ properties: { a: again, b: again } }, none] }],
    ['has a default of 20,000 levels', { type: 'string', default: nested(['[', ']']) }],
    ['has a type of 20,000 levels', { type: nested(['[', ']']) }],
  ])('takes a value when it %s', (_name, x) => {
    for (const schema of [
      { $defs: { x }, ...again },
      { $defs: { x }, type: 'object', properties: { a: again } },
    ]) {
      const root = formOf(schema);
      expect(() => defaultsOf(root)).not.toThrow();
      expect(valueIn(root, new URLSearchParams({ '#': '{"a":1}' }), new Map())).toEqual({ a: 1 });
    }
  });
});

const text = fc.string({ unit: 'grapheme', maxLength: 20 });

/** Schemas of parts with values that they allow. */
const { part } = fc.letrec<{ part: { schema: object; value: unknown }; scalar: { schema: object; value: unknown } }>(
  (tie) => ({
    scalar: fc.oneof(
      text.map((value) => ({ schema: { type: 'string' }, value })),
      fc.integer().map((value) => ({ schema: { type: 'integer' }, value })),
      fc
        .double({ noNaN: true, noDefaultInfinity: true })
        .map((value) => ({ schema: { type: 'number' }, value: value + 0 })),
      fc.boolean().map((value) => ({ schema: { type: 'boolean' }, value })),
      fc
        .uniqueArray(fc.oneof(text, fc.integer(), fc.boolean()), { minLength: 1, maxLength: 5 })
        .map((values) => ({ schema: { enum: values }, value: values[0] })),
      text.map((value) => ({ schema: { oneOf: [{ const: value, title: 'shown' }, { const: `${value}!` }] }, value })),
      text.map((value) => ({ schema: { type: ['string', 'null'] }, value: value === '' ? null : value })),
      fc.constant({ schema: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, value: null }),
      fc
        .oneof(text, fc.integer())
        .map((value) => ({ schema: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, value })),
      text.map((value) => ({ schema: { if: { type: 'string' }, then: { minLength: 0 } }, value })),
    ),
    part: fc.oneof(
      { maxDepth: 5 },
      tie('scalar'),
      fc
        .tuple(tie('scalar'), fc.nat(3))
        .map(([{ schema, value }, count]) => ({
          schema: { type: 'array', items: schema },
          value: Array.from({ length: count }, () => value),
        })),
      fc.array(fc.tuple(text, tie('part'), fc.boolean()), { maxLength: 4 }).map((members) => {
        const schemas = Object.fromEntries(members.map(([name, { schema }]) => [name, schema]));
        const required = Object.keys(schemas).filter((name) => members.find(([other, , is]) => other === name && is));
        return {
          schema: { type: 'object', properties: schemas, required, description: 'of the test' },
          value: Object.fromEntries(members.map(([name, { value }]) => [name, value])),
        };
      }),
    ),
  }),
);

describe('the form of any schema', () => {
  it('sends what is filled in', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(text, part), { maxLength: 5 }), (members) => {
        const properties = Object.fromEntries(members.map(([name, { schema }]) => [name, schema]));
        const value = Object.fromEntries(members.map(([name, made]) => [name, made.value]));
        expect(sent(formOf({ type: 'object', properties }), value)).toEqual(value);
      }),
      { numRuns: randomRuns(2_000) },
    );
  });

  it.each([
    'not',
    'allOf',
    'if',
    'patternProperties',
    'propertyNames',
    'minProperties',
    'dependentRequired',
    'unevaluatedProperties',
    'prefixItems',
    'contains',
    '$dynamicRef',
    'aKeywordOfTomorrow',
  ])('is JSON for a part with %s', (keyword) => {
    const root = formOf({
      type: 'object',
      properties: { part: { type: 'string', [keyword]: {} }, plain: { type: 'string' } },
    });
    expect([...root.members.values()].map(({ control }) => control)).toEqual(['json', 'text']);
  });

  it('is JSON below the third object, and ends at a reference to itself', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' }, name: { type: 'string' } } };
    const root = formOf({ type: 'object', properties: { node: { $ref: '#/$defs/node' } }, $defs: { node } });
    expect(fieldAt(root, '#/node/next/next')?.control).toBe('object');
    expect(fieldAt(root, '#/node/next/next/next')?.control).toBe('json');
  });

  it('fills in defaults, but none that would make an optional object present', () => {
    const inner = { type: 'object', properties: { unit: { type: 'string', default: 'C' } } };
    const properties = {
      days: { type: 'integer', default: 3 },
      given: inner,
      free: inner,
      list: { type: 'array', items: { type: 'string' }, default: ['a', 'b'] },
    };
    const root = formOf({ type: 'object', properties, required: ['given'] });
    expect(defaultsOf(root)).toEqual([
      ['#/days', '3'],
      ['#/given/unit', 'C'],
      ['#/list', 'a\nb'],
    ]);
  });

  it('shows the problem next to the input', () => {
    const properties = { count: { type: 'integer' }, name: { type: 'string' }, unit: { enum: ['C'] }, any: {} };
    const root = formOf({ type: 'object', properties, required: ['name'] });
    const faults: Faults = new Map();
    valueIn(root, new URLSearchParams({ '#/count': '1.5', '#/unit': '"K"', '#/any': '{' }), faults);
    expect(Object.fromEntries(faults)).toEqual({
      '#/count': 'Enter a whole number.',
      '#/name': 'Enter a value.',
      '#/unit': 'Choose one of the values.',
      '#/any': expect.stringContaining('This is not JSON'),
    });
  });
});
