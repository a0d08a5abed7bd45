import { describe, expect } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { canonicalSchema } from '../../src/modules/releases/contract/contract.js';
import { schemaChanges, type Direction } from '../../src/modules/releases/contract/schema-diff.js';
import { verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

type Schema = Record<string, unknown>;

const names = ['a', 'b', 'c'];
const types = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'];
const scalars = fc.constantFrom<unknown>('x', 'xyz', '', 0, 1, 2, 1.5, true, null);

const schemaOver = (part: fc.Arbitrary<Schema>): fc.Arbitrary<Schema> =>
  fc
    .record(
      {
        type: fc.oneof(fc.constantFrom(...types), fc.subarray(types, { minLength: 1 })),
        enum: fc.uniqueArray(scalars, { minLength: 1, maxLength: 4 }),
        minimum: fc.nat(2),
        maximum: fc.nat(2),
        minLength: fc.nat(3),
        maxLength: fc.nat(3),
        pattern: fc.constantFrom('^x', 'y'),
        properties: fc.dictionary(fc.constantFrom(...names), part, { maxKeys: 3, noNullPrototype: true }),
        required: fc.subarray(names),
        items: part,
        additionalProperties: fc.constantFrom<unknown>(true, {}),
        anyOf: fc.constantFrom([{ type: 'string' }, { type: 'null' }], [{ type: 'integer' }, { minLength: 1 }]),
        title: fc.constantFrom('A', 'B'),
        examples: fc.constant([1]),
      },
      { requiredKeys: [] },
    )
    // Few keywords at once, so that values are taken and changes are small.
    .chain((all) => fc.shuffledSubarray(Object.entries(all)))
    .map((entries): Schema => Object.fromEntries(entries.slice(0, 4)));
const schema = schemaOver(schemaOver(schemaOver(fc.constant({}))));

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalars,
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const values = fc.array(value, { minLength: 20, maxLength: 40 });

const ajv = new Ajv2020({ strict: false, addUsedSchema: false });
const accepts = (subject: Schema) => ajv.compile(subject);

/** True if the schema declares every member of the value. */
function isSpokenOf(value: unknown, by: unknown): boolean {
  const rules = (by ?? {}) as { properties?: Schema; items?: unknown };
  if (Array.isArray(value)) return value.every((element) => isSpokenOf(element, rules.items));
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(
    ([name, member]) => rules.properties?.[name] !== undefined && isSpokenOf(member, rules.properties[name]),
  );
}

function isHarmless(before: Schema, after: Schema, direction: Direction): boolean {
  const changes = schemaChanges(canonicalSchema(before), canonicalSchema(after), direction, 'schema');
  return changes.every(({ level, kind }) => level === 'compatible' || kind === 'description_changed');
}

/** Two schemas of which the second is often close to the first. */
const pairs = fc
  .tuple(schema, schema, fc.nat(2))
  .map(([one, other, closeness]): [Schema, Schema] =>
    closeness === 0
      ? [one, other]
      : [one, { ...one, ...Object.fromEntries(Object.entries(other).slice(0, closeness)) }],
  );

describe('the classification of schema changes', () => {
  verifies('contract:inputs', 'calls a change of inputs compatible only if all earlier arguments stay valid', () => {
    fc.assert(
      fc.property(pairs, values, ([before, after], sent) => {
        if (!isHarmless(before, after, 'input')) return;
        const [old, now] = [accepts(before), accepts(after)];
        expect(sent.filter((input) => isSpokenOf(input, before) && old(input) && !now(input))).toEqual([]);
      }),
      { numRuns: randomRuns(300) },
    );
  });

  verifies('contract:inputs', 'calls a change of outputs compatible only if new results fit the earlier schema', () => {
    fc.assert(
      fc.property(pairs, values, ([before, after], answered) => {
        if (!isHarmless(before, after, 'output')) return;
        const [old, now] = [accepts(before), accepts(after)];
        expect(answered.filter((output) => isSpokenOf(output, before) && now(output) && !old(output))).toEqual([]);
      }),
      { numRuns: randomRuns(300) },
    );
  });

  verifies('contract:list', 'keeps the meaning of a schema in its canonical form', () => {
    fc.assert(
      fc.property(schema, values, (original, all) => {
        const [plain, canonical] = [accepts(original), accepts(canonicalSchema(original) as Schema)];
        expect(all.filter((each) => plain(each) !== canonical(each))).toEqual([]);
        expect(canonicalSchema(canonicalSchema(original))).toEqual(canonicalSchema(original));
      }),
      { numRuns: randomRuns(200) },
    );
  });
});
