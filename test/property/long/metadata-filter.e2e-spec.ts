import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect } from '@jest/globals';
import fc from 'fast-check';
import { testAccount, testApp } from '../../support/app.js';
import { seedConnections } from '../../support/database/connection-rows.js';
import { createNamespace } from '../../support/factories.js';
import { verifies } from '../../support/verifies.js';
import { randomRuns } from '../../support/random-runs.js';

const app = testApp();
const owner = testAccount(app);
let namespace: string;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
});

type Metadata = Record<string, unknown>;

/** A value as JSON carries it: `-0` is 0, `undefined` is nothing. */
function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The rule in plain words: a text is itself, any other value is its JSON. */
function matches(metadata: Metadata, key: string, text: string): boolean {
  if (!Object.hasOwn(metadata, key)) return false;
  const value = metadata[key];
  if (typeof value === 'string') return value === text;
  try {
    return isDeepStrictEqual(asJson(value), asJson(JSON.parse(text)));
  } catch {
    return false;
  }
}

/** Text that jsonb can hold. */
const texts = fc
  .string({ unit: 'grapheme', maxLength: 6 })
  .filter((text) => text.isWellFormed() && !text.includes('\0'));

/** Texts that look like other values. */
const disguised = fc.constantFrom(
  ...['1', '1.0', '-0', '0', 'true', 'false', 'null', '{}', '[]', '""', '"a"', '{"a":1}', '[1]', '[1,1]', '1e2', '100'],
  ...[
    ' 1',
    '1 ',
    'NaN',
    'undefined',
    '{',
    '\\',
    '"',
    "'",
    '%',
    '_',
    '\\u0000',
    '$1',
    ':p0',
    '?',
    '::jsonb',
    'İ',
    'ß',
    '🚀',
  ],
);

/** Few keys, so that filters meet values; some that objects have by themselves, some that SQL or a URL might misread. */
const keys = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b') },
  fc.constantFrom(
    '',
    ' ',
    'a.b',
    'a&b=c',
    'ü',
    '0',
    '-1',
    '__proto__',
    'constructor',
    'toString',
    '"',
    '$.a',
    '%',
    ':k0',
  ),
  texts,
);

/** Few values, so that filters find some. */
const scalars = fc.oneof(
  fc.constantFrom(null, true, false, 0, -0, 1, 100, 1.5, -1e21, 5e-324, 9007199254740991),
  disguised,
  texts,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
    { weight: 3, arbitrary: scalars },
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 3 }),
  ),
}));

const metadatas: fc.Arbitrary<Metadata> = fc
  .array(fc.tuple(keys, values), { maxLength: 4 })
  .map((entries) => asJson(Object.fromEntries(entries)) as Metadata);

/** The text a client sends for a value: a text as it is, others as JSON, now and then with blanks. */
function written(value: unknown, pretty: boolean): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, pretty ? 1 : 0);
}

/** Filters on what some row holds, on a near miss of it, and on anything. */
function filtersOn(rows: Metadata[]): fc.Arbitrary<[string, string][]> {
  const members = rows.flatMap((row) => Object.entries(row));
  const inside = members.flatMap(([key, value]) =>
    typeof value === 'object' && value !== null
      ? Object.values(value).map((part) => [key, part] as [string, unknown])
      : [],
  );
  const wrapped = members.flatMap(([key, value]): [string, unknown][] => [
    [key, [value]],
    [key, { a: value }],
    [key, typeof value === 'string' ? JSON.stringify(value) : written(value, false)],
  ]);
  const from = (some: [string, unknown][]) => (some.length > 0 ? fc.constantFrom(...some) : fc.tuple(keys, values));
  const filter = fc.oneof(
    { weight: 6, arbitrary: from(members) },
    { weight: 3, arbitrary: from([...inside, ...wrapped]) },
    fc.tuple(keys, values),
  );
  return fc
    .array(fc.tuple(filter, fc.boolean()), { minLength: 1, maxLength: 2 })
    .map((some) => some.map(([[key, value], pretty]): [string, string] => [key, written(value, pretty)]))
    .filter((some) => new Set(some.map(([key]) => key)).size === some.length && some.every(([key]) => key !== ''));
}

verifies(
  ['connection:list:filter-metadata', 'connection:list:filter-metadata-and', 'connection:list:filter-metadata-json'],
  'any metadata filters find exactly the rows the rule names, whatever keys and values look like',
  async () => {
    const numRuns = randomRuns(150);
    let hits = 0;
    const cases = fc
      .array(metadatas, { minLength: 1, maxLength: 12 })
      .chain((rows) => fc.tuple(fc.constant(rows), fc.array(filtersOn(rows), { minLength: 4, maxLength: 4 })));
    await fc.assert(
      fc.asyncProperty(cases, async ([rows, queries]) => {
        await app.database.query('DELETE FROM connections');
        const ids = await seedConnections(
          app,
          namespace,
          rows.map((metadata) => ({ metadata })),
        );
        for (const filters of queries) {
          const query = new URLSearchParams(filters.map(([key, text]): [string, string] => [`metadata.${key}`, text]));
          const { status, body } = await app.as(owner).get(`/connect/${namespace}?${query.toString()}`);
          expect(status).toBe(200);
          const connections = (body as { connections: { connectionId: string; metadata: Metadata }[] }).connections;
          const isMatch = rows.map((row) => filters.every(([key, text]) => matches(row, key, text)));
          expect(connections.map(({ connectionId }) => connectionId)).toEqual(
            ids.filter((_id, i) => isMatch[i]).toReversed(),
          );
          for (const { connectionId, metadata } of connections)
            expect(metadata).toEqual(rows[ids.indexOf(connectionId)]);
          hits += connections.length;
        }
      }),
      { numRuns },
    );
    // A filter that never finds anything would agree with a rule that names nothing.
    expect(hits).toBeGreaterThan((numRuns * 2) / 3);
  },
);
