import { isObject, type ApiDocument, type Schema } from '../support/documentation/api-document.js';
import type { Random } from './random.js';

/** How far a generated value departs from what is documented. */
export const KINDS = ['valid', 'nearly valid', 'wrong types', 'odd Unicode', 'huge'] as const;
export type Kind = (typeof KINDS)[number];

/** A schema with the keywords that {@link Schema} leaves out. */
interface Limits extends Schema {
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  allOf?: Schema[];
}

/** Texts that parsers, databases, file systems and terminals take for something else. */
export const ODD_TEXTS = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'x\udfffy',
  '\ufeffbom',
  '\u202egnp.exe',
  '\u200b',
  'e\u0301',
  'İIıi',
  'ß',
  '\u{1f469}\u200d\u{1f467}',
  '\u{10ffff}',
  '\ufffe',
  '\u0085\u2028\u2029',
  "'; DROP TABLE servers; --",
  '%',
  '_',
  '\\',
  '%00',
  '%2e%2e%2f',
  '../../etc/passwd',
  '..',
  '.',
  '/',
  '//',
  '?',
  '#',
  '${7*7}',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '"',
  '\r\nset-cookie: a=b',
  '\t',
  '\u001b[31m',
  '-1',
  '1e999',
  'NaN',
  'null',
  'true',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '9007199254740993',
  '0x10',
  '２',
  '2026-02-30',
  '2026-13-45T99:99:99Z',
  '+275760-09-13T00:00:00.001Z',
  '-271821-04-20T00:00:00Z',
  '0001-01-01',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '(a+)+$',
  '[',
  '*',
  'a:*',
  'a & !b | (',
] as const;

/** Values of every type of JSON and of every edge of it. */
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  -0,
  2 ** 31,
  2 ** 53,
  1e308,
  5e-324,
  '',
  [],
  {},
  [[]],
  [null],
  { a: null },
  { '': '' },
  { length: 3 },
  { $ref: '#' },
  { toString: 1 },
  { then: 1 },
  JSON.parse('{"__proto__": {"a": 1}}'),
  JSON.parse('{"constructor": {"prototype": {"a": 1}}}'),
];

/** Sizes of what is huge, each around a limit of the service. */
const HUGE_LENGTHS = [256, 1_001, 2_049, 16_385, 65_537, 300_000, 1_048_500, 1_048_577];

/** A text that is no ordinary one. */
export function oddText(random: Random): string {
  const some: string[] = Array.from({ length: random.int(1, 3) }, () => random.pick(ODD_TEXTS));
  if (random.chance(0.3)) some.push(String.fromCodePoint(random.int(0, 0x10ffff)));
  return some.join('');
}

/** A value of any type, seldom deep. */
export function anyValue(random: Random, depth = 3): unknown {
  if (depth === 0 || random.chance(0.6)) return random.chance(0.3) ? oddText(random) : random.pick(ODD_VALUES);
  const members = Array.from({ length: random.int(0, 4) }, () => anyValue(random, depth - 1));
  return random.chance(0.5) ? members : Object.fromEntries(members.map((member) => [oddText(random), member]));
}

/** A value near or beyond a limit of JSON that the service reads: length, depth, members, elements. */
export function hugeValue(random: Random): unknown {
  switch (random.int(0, 4)) {
    case 0: {
      const depth = random.pick([99, 100, 101, 1_000]);
      let nested: unknown = 1;
      for (let i = 0; i < depth; i++) nested = random.chance(0.5) ? [nested] : { a: nested };
      return nested;
    }
    case 1:
      return Object.fromEntries(Array.from({ length: random.pick([1_000, 50_001]) }, (_, i) => [`k${i}`, i]));
    case 2:
      return Array.from({ length: random.pick([1_001, 100_000]) }, () => 0);
    case 3:
      return 10 ** random.int(16, 300);
    default:
      return random.pick(['x', 'é', '\u{1f469}', '"', '\\', ' ']).repeat(random.pick(HUGE_LENGTHS));
  }
}

/** Values for members that the service dials, by the start of their names: never an address beyond loopback. */
export type Places = (random: Random, name: string) => string | undefined;

/** Makes values from the schemas of the API document. */
export class Values {
  constructor(
    private readonly document: ApiDocument,
    private readonly places: Places,
  ) {}

  /** A value for a schema. @param name of the member or parameter, which decides of URLs */
  make(random: Random, schema: Schema, kind: Kind, name = ''): unknown {
    const value = this.valid(random, schema, name);
    if (kind === 'valid') return value;
    const place = this.places(random, name);
    if (kind === 'nearly valid')
      return isObject(value) ? this.nearly(random, value) : nearlyScalar(random, value, place);
    const other = () =>
      kind === 'wrong types' ? anyValue(random) : kind === 'huge' ? hugeValue(random) : oddText(random);
    return isObject(value) && random.chance(0.9) ? replaceMember(random, value, other) : other();
  }

  private valid(random: Random, schema: Limits, name: string): unknown {
    if (schema.$ref !== undefined) return this.valid(random, this.document.resolve(schema.$ref).schema, name);
    if (schema.allOf) return this.valid(random, schema.allOf[0], name);
    if (schema.oneOf) return this.valid(random, random.pick(schema.oneOf), name);
    if (schema.nullable === true && random.chance(0.2)) return null;
    const place = this.places(random, name);
    if (place !== undefined) return place;
    if (schema.enum) return random.pick(schema.enum);
    switch (schema.type) {
      case 'boolean':
        return random.chance(0.5);
      case 'integer':
      case 'number':
        return random.pick([schema.minimum ?? 0, Math.min(schema.maximum ?? 10, (schema.minimum ?? 0) + 3)]);
      case 'array':
        return Array.from({ length: random.int(0, Math.min(schema.maxItems ?? 3, 3)) }, () =>
          this.valid(random, schema.items ?? {}, name),
        );
      case 'string':
        return validText(random, schema);
      default:
        return this.validObject(random, schema, name);
    }
  }

  private validObject(random: Random, schema: Limits, name: string): unknown {
    if (schema.properties === undefined) {
      if (isObject(schema.example) && random.chance(0.5)) return schema.example;
      const rest = schema.additionalProperties;
      const member = () => (isObject(rest) ? this.valid(random, rest, name) : random.pick(['v', 1, true, { a: [1] }]));
      return Object.fromEntries(Array.from({ length: random.int(0, 3) }, (_, i) => [`k${i}`, member()]));
    }
    const members = Object.entries(schema.properties).filter(
      ([key]) => schema.required?.includes(key) || random.chance(0.5),
    );
    return Object.fromEntries(members.map(([key, member]) => [key, this.valid(random, member, key)]));
  }

  /** Leaves out, adds, renames, nulls or changes one member by as little as a client's bug would. */
  private nearly(random: Random, value: Record<string, unknown>): unknown {
    const names = Object.keys(value);
    const copy = { ...value };
    const name = names.length > 0 ? random.pick(names) : 'x';
    switch (random.int(0, 5)) {
      case 0:
        delete copy[name];
        return copy;
      case 1:
        return { ...copy, [`${name}s`]: 1 };
      case 2:
        delete copy[name];
        return { ...copy, [name.toUpperCase()]: value[name] };
      case 3:
        return { ...copy, [name]: null };
      case 4:
        return [copy];
      default: {
        const member = copy[name];
        const next = isObject(member)
          ? this.nearly(random, member)
          : nearlyScalar(random, member, this.places(random, name));
        return { ...copy, [name]: next };
      }
    }
  }
}

function validText(random: Random, { example, format, maxLength = 40, pattern }: Limits): string {
  if (format === 'uuid') return `01890a5d-ac96-774b-bcce-b302099a80${random.int(10, 99)}`;
  if (typeof example === 'string' && random.chance(0.7)) return example;
  // A pattern here allows what a name allows, or all printable characters.
  const text = random.pick(['weather', 'a', 'Größe', 'x y', '2026-01-01T00:00:00Z', 'WEATHER_KEY', 'tool,name']);
  return (pattern?.startsWith('^[A-Za-z_]') ? 'KEY_1' : text).slice(0, maxLength);
}

function nearlyScalar(random: Random, value: unknown, place: string | undefined): unknown {
  if (place !== undefined) return random.pick([`${place} `, place.toUpperCase(), place.slice(1), `${place}#x`]);
  if (typeof value === 'number') return random.pick([value - 1, value + 0.5, String(value), -value, 1e21]);
  if (typeof value === 'boolean') return random.pick([String(value), value ? 1 : 0, null]);
  if (typeof value === 'string')
    return random.pick([`${value}\n`, ` ${value}`, value.toUpperCase(), [value], `${value}\u0000`, `${value}.`]);
  return value === null ? 'null' : { 0: value };
}

function replaceMember(random: Random, value: Record<string, unknown>, other: () => unknown): unknown {
  const names = Object.keys(value);
  if (names.length === 0 || random.chance(0.15)) return { ...value, [oddText(random)]: other() };
  const name = random.pick(names);
  const member = value[name];
  return { ...value, [name]: isObject(member) && random.chance(0.7) ? replaceMember(random, member, other) : other() };
}
