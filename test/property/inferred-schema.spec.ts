import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { z } from 'zod';
import { z as z3 } from 'zod/v3';
import { fieldsOf } from '../../src/modules/tool-schemas/tool-schema.mapper.js';
import { toJsonSchema } from '../../src/modules/tool-schemas/schema-inference.js';
import { parseShape, toShapeText } from '../../src/modules/tool-schemas/tool-shape.repository.js';
import {
  DEPTH_MAX,
  FIELDS_MAX,
  mergeShapes,
  NODES_MAX,
  placesBelow,
  shapeOf,
  type Shape,
} from '../../src/modules/tool-schemas/shape.js';
import { toZodText } from '../../src/modules/tool-schemas/tool-schema.mapper.js';
import { longIt } from '../support/jest/globals.mjs';
import { verifies } from '../support/verifies.js';
import { pasted } from '../support/documentation/zod-expression.js';
import { randomRuns } from '../support/random-runs.js';

/** Names that break what takes them for their own: literals, prototypes, comments, script elements. */
const evilNames = fc.constantFrom(
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '"',
  "'",
  '\\',
  '`${process.exit()}`',
  '"}); process.exit(1); ({"',
  '*/ process.exit(1) /*',
  '</script><script>',
  '\u2028\u2029',
  '\u202e\u200b',
  '\ud800',
  '\0',
  '\n',
  '',
  'ключ',
  '名前',
  '😀',
  'a.b[0]',
  '$ref',
  '@type',
);
const usualNames = fc.constantFrom(
  'id',
  'name',
  'status',
  'items',
  'kind',
  'created_at',
  'url',
  'email',
  'tags',
  'unit',
);
const dataNames = fc.oneof(fc.uuid(), fc.nat().map(String), fc.emailAddress(), fc.webUrl(), fc.string());
const names = fc.oneof({ weight: 5, arbitrary: usualNames }, evilNames, dataNames);

const texts = fc.oneof(
  fc.constantFrom('open', 'closed', 'in_progress', 'toString', 'constructor', '', '42', 'null'),
  fc.string({ unit: 'binary' }),
  fc.uuid(),
  fc.emailAddress(),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc
    .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
    .map((date) => date.toISOString().slice(0, 10)),
  fc.constantFrom('2026-02-30', '2024-02-29', '2026-01-01T10:00:00+02:00', '2026-01-01T10:00:00', 'http://', 'a@b'),
);
const numbers = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true }),
  fc.constantFrom(1e300, -0, 2 ** 53),
);

const { output } = fc.letrec<{ output: unknown }>((tie) => ({
  output: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    texts,
    numbers,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('output'), { maxLength: 6 }),
    fc
      .array(fc.tuple(names, tie('output')), { maxLength: 8 })
      .map((members) => JSON.parse(`{${members.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`)),
  ),
}));
/** A value after the transport as JSON: its own member `__proto__` stays, and an infinite number is null. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? 'null') as unknown;
/** Some outputs, many times: closed lists and formats need many samples. */
const day = fc
  .tuple(fc.array(output, { minLength: 1, maxLength: 6 }), fc.constantFrom(1, 2, 12))
  .map(([all, times]) => Array.from({ length: times }, () => all.map(asJson)).flat());

function together(values: unknown[]): Shape {
  return values.map(shapeOf).reduce((sum, shape) => mergeShapes(sum, shape));
}

function ajvAccepts(schema: object): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  formats.default(ajv);
  return ajv.compile(schema);
}

describe('an inferred schema', () => {
  verifies(
    'output-schema:field:validator-schema',
    'is an expression that Zod reads, and accepts every sample it came from',
    () => {
      fc.assert(
        fc.property(day, (values) => {
          const text = toZodText(together(values));
          const schema = pasted(text, z);
          const refused = values.filter((value) => !schema.safeParse(value).success);
          expect({ text, refused }).toEqual({ text, refused: [] });
          const older = pasted(text, z3);
          expect({ text, refused: values.filter((value) => !older.safeParse(value).success) }).toEqual({
            text,
            refused: [],
          });
        }),
        { numRuns: randomRuns(100) },
      );
    },
  );

  verifies('output-schema:fields-optional', 'has no required field', () => {
    fc.assert(
      fc.property(day, (values) => {
        const shape = together(values);
        const text = toZodText(shape);
        const optional = text.split('.optional()').length - 1;
        expect(optional).toBe(fieldsOf(shape).filter(({ path }) => /(\.[A-Za-z_]\w*|"\])$/.test(path)).length);
        expect(JSON.stringify(toJsonSchema(shape))).not.toContain('"required":');
      }),
    );
  });

  verifies(
    'output-schema:paste-safe',
    'is plain ASCII without anything that closes a script, comment or template',
    () => {
      fc.assert(
        fc.property(day, (values) => {
          const text = toZodText(together(values));
          expect(text).toMatch(/^[\x20-\x7e]*$/);
          expect(text).not.toMatch(/[<>`]|\*\/|\/\/|\$\{/);
        }),
        { numRuns: randomRuns(100) },
      );
    },
  );
});

const ascending = (a: number, b: number): number => a - b;

/** An object with these names. */
function objectOf(keys: string[]): object {
  return Object.fromEntries(keys.map((name, i) => [name, i]));
}

/** As JSON, with the members of maps in a fixed order. */
function sorted(shape: Shape): unknown {
  return JSON.parse(JSON.stringify(shape, (_, part: unknown) => (part instanceof Map ? [...part].sort() : part)));
}

describe('a shape', () => {
  it('is the same in whatever order and groups samples are put together', () => {
    fc.assert(
      fc.property(fc.array(output.map(asJson), { minLength: 3, maxLength: 12 }), fc.nat(), (values, seed) => {
        const at = 1 + (seed % (values.length - 1));
        const parts = mergeShapes(together(values.slice(at)), together(values.slice(0, at)));
        expect(sorted(parts)).toEqual(sorted(together(values)));
        expect(sorted(parseShape(toShapeText(parts)))).toEqual(sorted(parts));
      }),
      { numRuns: randomRuns(100) },
    );
  });

  longIt('is the same in whatever order and groups objects with too many fields are put together', () => {
    const pool = Array.from({ length: 2 * FIELDS_MAX }, (_, i) => `f${i}x`);
    const wide = fc
      .tuple(fc.nat(pool.length), fc.nat(pool.length))
      .map((ends) => pool.slice(...ends.toSorted(ascending)));
    const samples = fc.array(wide, { minLength: 2, maxLength: 5 }).map((all) => all.map(objectOf));
    fc.assert(
      fc.property(samples, fc.nat(), (values, seed) => {
        const at = 1 + (seed % (values.length - 1));
        const parts = mergeShapes(together(values.slice(at)), together(values.slice(0, at)));
        expect(sorted(parts)).toEqual(sorted(together(values)));
        expect(sorted(parseShape(toShapeText(parts)))).toEqual(sorted(parts));
        const names = new Set(values.flatMap((value) => Object.keys(value)));
        expect(parts.objects?.isMap).toBe(names.size > FIELDS_MAX);
        expect(parts.objects?.fields.size).toBe(names.size > FIELDS_MAX ? 0 : names.size);
        const accepts = ajvAccepts(JSON.parse(JSON.stringify(toJsonSchema(parts))) as object);
        expect(values.filter((value) => !accepts(value))).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  verifies('output-schema:no-values', 'contains no values of results except member names and enum words', () => {
    const secrets = fc.oneof(
      fc.uuid(),
      fc.emailAddress(),
      fc.stringMatching(/^sk_live_[A-Za-z0-9]{24}$/),
      fc.nat(1e9).map((n) => `Bob ${n}`),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(usualNames, secrets), { minLength: 1 }), (members) => {
        const values = members.flatMap(([name, secret]) => [
          { [name]: secret },
          { [name]: [secret] },
          ...(secret.includes(' ') ? [] : [{ map: { [secret]: 1 } }]),
        ]);
        const text = toShapeText(together(values));
        for (const [, secret] of members) expect(text).not.toContain(secret);
      }),
      {
        examples: [[[['id', 'sk_live_aAAAaaaaAaAAAaaaaAaaAAaa']]], [[['id', 'aaaaaa9a-fffa-4fff-aaaa-aa9afaaaaaaa']]]],
      },
    );
  });

  it('stays within its bounds for any result', () => {
    const size = (shape: Shape): number =>
      1 +
      placesBelow(shape)
        .map(size)
        .reduce((sum, count) => sum + count, 0);
    const depth = (shape: Shape): number => 1 + Math.max(0, ...placesBelow(shape).map(depth));
    const wide = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `f${i}x`,
        Object.fromEntries(Array.from({ length: 40 }, (__, k) => [`g${k}x`, { a: k }])),
      ]),
    );
    const deep = JSON.parse('{"a":'.repeat(5_000) + '1' + '}'.repeat(5_000)) as unknown;
    const lists = JSON.parse('['.repeat(30_000) + ']'.repeat(30_000)) as unknown;
    for (const value of [wide, deep, lists]) {
      const shape = mergeShapes(shapeOf(value), shapeOf(wide));
      expect(size(shape)).toBeLessThanOrEqual(NODES_MAX);
      expect(depth(shape)).toBeLessThanOrEqual(DEPTH_MAX + 1);
      expect(pasted(toZodText(shape), z).safeParse(wide).success).toBe(true);
    }
  });
});
