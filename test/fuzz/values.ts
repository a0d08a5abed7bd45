/**
 * Values from whole to nonsense, as arbitraries of fast-check: valid ones come from the schemas of the API document, the
 * others depart from them by a member, a type, odd text or size.
 */
import fc, { type Arbitrary } from 'fast-check';
import { isObject, type ApiDocument, type Schema } from '../support/documentation/api-document.js';
import { cut, weighted } from './draw.js';

/** How far a generated value departs from what is documented. */
export type Kind = 'valid' | 'nearly valid' | 'wrong types' | 'odd Unicode' | 'huge';

/** A schema with the keywords that {@link Schema} leaves out. */
interface Limits extends Schema {
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
  allOf?: Schema[];
}

/** Texts that parsers, databases, file systems and terminals take for something else; one each between two `¦`. */
const ODD_TEXTS = [
  '¦ ¦\u0000¦a\u0000b¦\ud800¦x\udfffy¦\ufeffbom¦\u202egnp.exe¦\u200b¦e\u0301¦İIıi¦ß¦\u{1f469}\u200d\u{1f467}¦\u{10ffff}',
  "\ufffe¦\u0085\u2028\u2029¦'; DROP TABLE servers; --¦%¦_¦\\¦%00¦%2e%2e%2f¦../../etc/passwd¦..¦.¦/¦//¦?¦#¦${7*7}",
  '{{7*7}}¦<script>alert(1)</script>¦"¦\r\nset-cookie: a=b¦\t¦\u001b[31m¦-1¦1e999¦NaN¦null¦true¦__proto__¦constructor',
  'toString¦hasOwnProperty¦9007199254740993¦0x10¦２¦2026-02-30¦2026-13-45T99:99:99Z¦+275760-09-13T00:00:00.001Z',
  '-271821-04-20T00:00:00Z¦0001-01-01¦00000000-0000-0000-0000-000000000000¦ffffffff-ffff-ffff-ffff-ffffffffffff',
  '(a+)+$¦[¦*¦a:*¦a & !b | (',
].flatMap((line) => line.split('¦'));

/** A text that is no ordinary one. */
export const oddText: Arbitrary<string> = fc
  .array(weighted([6, fc.constantFrom(...ODD_TEXTS)], [1, fc.string({ unit: 'binary', maxLength: 2 })]), {
    minLength: 1,
    maxLength: 3,
  })
  .map((texts) => texts.join(''));

/** Values of every type of JSON and of every edge of it, as JSON. */
const ODD_VALUES = [
  ...['null', 'true', 'false', '0', '-1', '1.5', '-0', '2147483648', '9007199254740992', '1e308', '5e-324', '""', '[]'],
  ...['{}', '[[]]', '[null]', '{"a":null}', '{"":""}', '{"length":3}', '{"$ref":"#"}', '{"toString":1}', '{"then":1}'],
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}'],
].map((text) => JSON.parse(text) as unknown);

/** A value of any type, seldom deep. */
export const anyValue: Arbitrary<unknown> = weighted(
  [3, fc.constantFrom(...ODD_VALUES)],
  [1, oddText],
  [2, fc.anything({ key: oddText, values: [oddText, fc.constantFrom(...ODD_VALUES)], maxDepth: 3, maxKeys: 4 })],
);

/** Sizes of what is huge, each around a limit of the service. */
const HUGE_LENGTHS = [256, 1_001, 2_049, 16_385, 65_537, 300_000, 1_048_500, 1_048_577];

/** A value near or beyond a limit of JSON that the service reads: length, depth, members, elements. */
export const hugeValue: Arbitrary<unknown> = fc.oneof(
  fc
    .constantFrom(99, 100, 101, 1_000)
    .chain((depth) =>
      fc
        .integer()
        .map((bits) =>
          Array.from({ length: depth }, (_, i) => (bits >> (i % 31)) & 1).reduce<unknown>(
            (nested, isList) => (isList ? [nested] : { a: nested }),
            1,
          ),
        ),
    ),
  fc.constantFrom(1_000, 50_001).map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]))),
  fc.constantFrom(1_001, 100_000).map((length) => Array.from({ length }, () => 0)),
  fc.integer({ min: 16, max: 300 }).map((power) => 10 ** power),
  fc
    .tuple(fc.constantFrom('x', 'é', '\u{1f469}', '"', '\\', ' '), fc.constantFrom(...HUGE_LENGTHS))
    .map(([text, times]) => text.repeat(times)),
);

/** A text that is cut, or has odd text in it. */
export const brokenText = (text: string): Arbitrary<string> =>
  fc.oneof(
    cut(text),
    fc.tuple(cut(text), oddText, fc.nat(1)).map(([start, odd, gone]) => start + odd + text.slice(start.length + gone)),
  );

/** A value of which one part, at any depth, is another, or which has a member more. */
export function replaced(value: unknown, other: Arbitrary<unknown>): Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return other;
  const put = (name: string, part: unknown): unknown =>
    Array.isArray(value) ? value.with(Number(name), part) : { ...value, [name]: part };
  const part = fc
    .constantFrom(...Object.entries(value))
    .chain(([name, old]) => weighted([7, replaced(old, other)], [3, other]).map((next) => put(name, next)));
  const more = fc.tuple(oddText, other).map(([name, next]) => ({ ...value, [name]: next }));
  return weighted<unknown>([8, part], [Array.isArray(value) ? 0 : 1, more], [1, other]);
}

/** A value that differs by as little as a client's bug would change: a member left out, added, renamed, null, another. */
export function nearly(value: unknown): Arbitrary<unknown> {
  if (isObject(value)) {
    return fc.constantFrom(...Object.keys(value), ...(Object.keys(value).length > 0 ? [] : ['x'])).chain((name) => {
      const { [name]: member, ...rest } = value;
      const renamed = { ...rest, [name.toUpperCase()]: member };
      const changed = [rest, { ...value, [`${name}s`]: 1 }, renamed, { ...value, [name]: null }, [value]];
      const nearer = nearly(member).map((next) => ({ ...value, [name]: next }));
      return weighted<unknown>([5, fc.constantFrom<unknown>(...changed)], [1, nearer]);
    });
  }
  if (typeof value === 'number') return fc.constantFrom<unknown>(value - 1, value + 0.5, String(value), -value, 1e21);
  if (typeof value === 'boolean') return fc.constantFrom<unknown>(String(value), value ? 1 : 0, null);
  if (typeof value !== 'string') return fc.constant(value === null ? 'null' : { 0: value });
  const padded = [`${value}\n`, ` ${value}`, `${value} `, `${value}\u0000`, `${value}.`, `${value}#x`];
  return fc.constantFrom<unknown>(...padded, value.toUpperCase(), value.slice(1), [value]);
}

/** A text of words as long as its limit allows, or a half or a tenth of that. @param maxLength in characters; 300 if unlimited */
function long(maxLength = 300): Arbitrary<string> {
  return fc
    .constantFrom(1, 2, 10)
    .map((part) => 'Große Texte mit Wörtern. '.repeat(1 + maxLength / part / 25).slice(0, Math.ceil(maxLength / part)));
}

/** Values for members that the service dials, by their names: never an address beyond loopback. */
export type Urls = (name: string) => Arbitrary<string> | undefined;

/** Makes values from the schemas of the API document. */
export class Values {
  constructor(
    private readonly document: ApiDocument,
    private readonly urls: Urls,
  ) {}

  /** A value for a schema. @param name of the member or parameter, which decides of URLs */
  of(schema: Schema, kind: Kind, name = ''): Arbitrary<unknown> {
    const valid = this.valid(schema, name);
    if (kind === 'valid') return valid;
    if (kind === 'nearly valid') return valid.chain(nearly);
    const other = { 'wrong types': anyValue, 'odd Unicode': oddText, huge: hugeValue }[kind];
    return valid.chain((value) => replaced(value, other));
  }

  private valid(schema: Limits, name: string): Arbitrary<unknown> {
    if (schema.$ref !== undefined) return this.valid(this.document.resolve(schema.$ref).schema, name);
    if (schema.nullable === true) {
      return weighted([4, this.valid({ ...schema, nullable: false }, name)], [1, fc.constant(null)]);
    }
    if (schema.allOf) return this.valid(schema.allOf[0] ?? {}, name);
    if (schema.oneOf) return fc.oneof(...schema.oneOf.map((choice) => this.valid(choice, name)));
    const url = this.urls(name);
    if (url !== undefined && schema.type !== 'object' && schema.type !== 'array') return url;
    if (schema.enum) return fc.constantFrom(...schema.enum);
    const { minimum = 0, maximum = 10, maxItems = 3, maxLength = 40 } = schema;
    switch (schema.type) {
      case 'boolean':
        return fc.boolean();
      case 'integer':
      case 'number':
        return fc.constantFrom(minimum, Math.min(maximum, minimum + 3));
      case 'array':
        return fc.array(this.valid(schema.items ?? {}, name), { maxLength: Math.min(maxItems, 3) });
      case 'string': {
        if (schema.format === 'uuid') return fc.uuid({ version: 7 });
        // A pattern here allows what a name allows, or all printable characters.
        if (schema.pattern?.startsWith('^[A-Za-z_]')) return fc.constantFrom('KEY_1'.slice(0, maxLength));
        const texts = ['weather', 'a', 'Größe', 'x y', '2026-01-01T00:00:00Z', 'WEATHER_KEY', 'tool,name'];
        const short = fc.constantFrom(...texts.map((word) => word.slice(0, maxLength)));
        const text = weighted([4, short], [1, long(schema.maxLength)]);
        return typeof schema.example === 'string' ? weighted([6, fc.constant(schema.example)], [4, text]) : text;
      }
      default:
        return this.object(schema, name);
    }
  }

  private object(schema: Limits, name: string): Arbitrary<unknown> {
    if (schema.properties === undefined) {
      const { additionalProperties: rest, example } = schema;
      const member = isObject(rest) ? this.valid(rest, name) : fc.constantFrom('v', 1, true, { a: [1] });
      const free = fc.dictionary(fc.constantFrom('k0', 'k1', 'k2'), member, { maxKeys: 3, noNullPrototype: true });
      return isObject(example) ? weighted<unknown>([1, fc.constant(example)], [1, free]) : free;
    }
    const members = Object.entries(schema.properties).map(([key, part]) => [key, this.valid(part, key)] as const);
    return fc.record(Object.fromEntries(members), { requiredKeys: schema.required ?? [], noNullPrototype: true });
  }
}

/** Percent-encoded; what is not text (a lone surrogate) as the replacement character. */
export function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
