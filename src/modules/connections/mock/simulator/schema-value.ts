/**
 * Makes a value for a JSON Schema in one pass: the first example, the default, the first choice of an enumeration, or the smallest value
 * that the keywords allow. Arguments of a call are repeated under equal names if the schema allows them.
 *
 * Contradictory keywords are not resolved: {@link satisfyingValue} checks the whole value, and treats a schema as unsatisfiable if the
 * value fails.
 */
import { schemaCheck, type SchemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';
import { mergedSchema, variantsOf } from './merged-schema.js';
import { textOfPattern } from './pattern-text.js';
import { plainName } from './simulator.js';

/** Depth beyond which only required members are added, and lists are as short as allowed. */
const GENEROUS_DEPTH = 5;
const DEPTH_MAX = 24;

/** Limits the values in one result, and the characters of one string; a schema that needs more counts as unsatisfiable. */
const VALUES_MAX = 20_000;

export class UnsatisfiableError extends Error {}

/**
 * Generates a value, which can still violate the schema.
 *
 * @param hint values such as a call's arguments
 * @throws UnsatisfiableError
 */
export function valueFor(schema: unknown, hint?: unknown): unknown {
  return new ValueMaker(schema).value(schema, [], hint, 0);
}

/**
 * Returns a value that satisfies the schema, from the known values where possible.
 *
 * @throws UnsatisfiableError if no value is found
 */
export function satisfyingValue(schema: unknown, check: SchemaCheck | null, preferred: unknown): unknown {
  for (const hint of preferred === undefined ? [undefined] : [preferred, undefined]) {
    try {
      const value = valueFor(schema, hint);
      if (check === null || check(value) === null) return value;
    } catch (error) {
      if (!(error instanceof UnsatisfiableError)) throw error;
    }
  }
  throw new UnsatisfiableError();
}

class ValueMaker {
  private valueCount = 0;

  constructor(private readonly root: unknown) {}

  /**
   * @param place index of the item in its list, which makes values differ
   * @throws UnsatisfiableError
   */
  value(declared: unknown, path: string[], hint: unknown, place: number): unknown {
    this.valueCount += 1;
    if (declared === false || path.length > DEPTH_MAX || this.valueCount > VALUES_MAX) throw new UnsatisfiableError();
    const schema = this.variant(mergedSchema(declared, this.root), path, hint);
    if ('const' in schema) return schema.const;
    const { examples, default: usual } = schema;
    const example = Array.isArray(examples) && examples.length > 0 ? (examples[0] as unknown) : usual;
    if (Array.isArray(schema.enum)) {
      const choices = schema.enum as unknown[];
      if (choices.length === 0) throw new UnsatisfiableError();
      const preferred = hint ?? (place === 0 ? example : undefined);
      const same = choices.find((choice) => preferred !== undefined && plainText(choice) === plainText(preferred));
      return same === undefined ? choices[place % choices.length] : same;
    }
    const type = typeOf(schema, hint);
    if (type === 'object') return this.object(schema, path, hint, place);
    if (type === 'array') return this.array(schema, path, hint);
    const samples = [hint, place === 0 ? example : undefined];
    const allowed = samples.find((value) => value !== undefined && schemaCheck({ ...schema, type })?.(value) === null);
    if (allowed !== undefined) return allowed;
    if (type === 'null') return null;
    if (type === 'boolean') return place % 2 === 1;
    if (type === 'number' || type === 'integer') return numberFor(schema, type, place);
    return textFor(schema, path.findLast((name) => !/^\d+$/.test(name)) ?? 'text', place);
  }

  /** Returns the alternative with the type of the known value; otherwise the first that is not null or not nested deeper. */
  private variant(schema: JsonObject, path: string[], hint: unknown): JsonObject {
    const variants = variantsOf(schema, this.root);
    const suits = (variant: JsonObject) =>
      hint !== undefined &&
      typesOf(variant).includes(jsonType(hint)) &&
      (!isObject(hint) || !Array.isArray(variant.required) || variant.required.every((name) => String(name) in hint));
    const isWanted = ({ type }: JsonObject) =>
      path.length > GENEROUS_DEPTH ? type !== 'object' && type !== 'array' : type !== 'null';
    return variants.find(suits) ?? variants.find(isWanted) ?? variants[0] ?? schema;
  }

  private object(schema: JsonObject, path: string[], hint: unknown, place: number): JsonObject {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : [];
    const source = isObject(hint) ? hint : {};
    const byPlainName = new Map(Object.keys(source).map((name) => [plainName(name), name]));
    const other = isObject(schema.patternProperties) ? Object.values(schema.patternProperties)[0] : undefined;
    const ofOthers = isObject(schema.additionalProperties) ? schema.additionalProperties : (other ?? true);
    const isOpen = schema.additionalProperties !== false && schema.unevaluatedProperties !== false;
    const isDictionary = isOpen && !isObject(schema.properties);
    const value: JsonObject = {};
    for (const name of new Set([
      ...Object.keys(properties),
      ...required,
      ...(isDictionary ? Object.keys(source) : []),
    ])) {
      const from = Object.hasOwn(source, name) ? name : byPlainName.get(plainName(name));
      if (!required.includes(name) && from === undefined && path.length >= GENEROUS_DEPTH) continue;
      const member = Object.hasOwn(properties, name) ? properties[name] : ofOthers;
      try {
        set(value, name, this.value(member, [...path, name], from && source[from], place));
      } catch (error) {
        // An optional member that cannot be made is left out.
        if (required.includes(name) || !(error instanceof UnsatisfiableError)) throw error;
      }
    }
    // One entry shows the form of a dictionary.
    const isEmpty = isDictionary && isObject(schema.additionalProperties) && Object.keys(value).length === 0;
    const min = Math.max(countOf(schema.minProperties) ?? 0, isEmpty ? 1 : 0);
    if (min > VALUES_MAX || (min > Object.keys(value).length && !isOpen)) throw new UnsatisfiableError();
    for (let at = 1; Object.keys(value).length < min; at += 1) {
      set(value, `key${at}`, this.value(ofOthers, [...path, `key${at}`], undefined, at - 1));
    }
    return value;
  }

  private array(schema: JsonObject, path: string[], hint: unknown): unknown[] {
    const prefix = [schema.prefixItems, schema.items].find((items): items is unknown[] => Array.isArray(items)) ?? [];
    const rest = Array.isArray(schema.items) ? (schema.additionalItems ?? true) : (schema.items ?? true);
    const source: unknown[] = Array.isArray(hint) ? hint : [];
    const usual = path.length < GENEROUS_DEPTH ? Math.max(prefix.length, 1) : 0;
    const min = countOf(schema.minItems) ?? 0;
    const max = rest === false ? prefix.length : (countOf(schema.maxItems) ?? Infinity);
    if (min > VALUES_MAX || min > max) throw new UnsatisfiableError();
    const length = Math.min(Math.max(Array.isArray(hint) ? source.length : usual, min), max);
    return Array.from({ length }, (_none, at) => {
      const place = schema.uniqueItems === true ? at : 0;
      return this.value(prefix[at] ?? rest, [...path, String(at)], source[at], place);
    });
  }
}

function set(object: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function plainText(value: unknown): string {
  return typeof value === 'string' ? plainName(value) : JSON.stringify(value);
}

const keywordsOf: Record<string, readonly string[]> = {
  object: ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties'],
  array: ['items', 'prefixItems', 'minItems', 'contains', 'uniqueItems'],
  number: ['minimum', 'maximum', 'multipleOf', 'exclusiveMinimum', 'exclusiveMaximum'],
};

/** Returns the types of a schema; `number` includes `integer`. */
function typesOf(schema: JsonObject): string[] {
  const implied = Object.keys(keywordsOf).find((type) => keywordsOf[type].some((keyword) => keyword in schema));
  const types = Array.isArray(schema.type) ? (schema.type as string[]) : [(schema.type as string) ?? implied];
  return types.includes('number') ? [...types, 'integer'] : types;
}

/** Returns the type of the known value, or else the first type that is not null. */
function typeOf(schema: JsonObject, hint: unknown): string {
  const types = typesOf(schema).filter((type) => type !== undefined);
  // Where a number is allowed, the bounds need not contain a whole one.
  const isNumber = typeof hint === 'number' && types.includes('number');
  const ofKnown = hint === undefined ? undefined : isNumber ? 'number' : jsonType(hint);
  if (ofKnown !== undefined && (types.length === 0 || types.includes(ofKnown))) return ofKnown;
  return types.find((type) => type !== 'null') ?? types[0] ?? 'string';
}

function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function countOf(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? Math.floor(value) : null;
}

/** Returns the allowed number nearest to 0, moved by `place` steps. Draft-04 wrote exclusive bounds as booleans. */
function numberFor(schema: JsonObject, type: string, place: number): number {
  const bound = (value: unknown, fallback: number) => (typeof value === 'number' ? value : fallback);
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const low = Math.max(bound(minimum, -Infinity), bound(exclusiveMinimum, -Infinity));
  const high = Math.min(bound(maximum, Infinity), bound(exclusiveMaximum, Infinity));
  const isAbove = exclusiveMinimum === true || low === exclusiveMinimum;
  const isBelow = exclusiveMaximum === true || high === exclusiveMaximum;
  const multiple = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : null;
  const fraction = high === low ? Math.abs(low) || 1 : high - low < 1 ? (high - low) / 2 : 0.01;
  const step = multiple ?? (type === 'integer' ? 1 : fraction);
  const first = Math.ceil(low / step - 1e-9) + (isAbove && Number.isInteger(low / step) ? 1 : 0);
  const last = Math.floor(high / step + 1e-9) - (isBelow && Number.isInteger(high / step) ? 1 : 0);
  if (last < first) throw new UnsatisfiableError();
  const nearest = Math.min(Math.max(0, first), last);
  const number = (nearest + place <= last ? nearest + place : Math.max(first, nearest - place)) * step;
  return Number(number.toPrecision(15));
}

/** The number makes strings differ. Hosts and addresses are reserved ones (RFC 2606, RFC 5737). */
const byFormat: Record<string, (n: number) => string> = {
  'date-time': dateOf,
  'iso-date-time': dateOf,
  date: (n) => dateOf(n).slice(0, 10),
  time: timeOf,
  'iso-time': timeOf,
  duration: (n) => `PT${n + 1}M`,
  email: (n) => `user${n}@example.com`,
  hostname: (n) => `host${n}.example.com`,
  ipv4: (n) => `192.0.2.${n % 256}`,
  ipv6: (n) => `2001:db8::${(n % 9_999) + 1}`,
  uri: (n) => `https://example.com/${n}`,
  url: (n) => `https://example.com/${n}`,
  'uri-reference': (n) => `/${n}`,
  'uri-template': (n) => `https://example.com/${n}/{id}`,
  uuid: (n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  'json-pointer': (n) => `/${n}`,
  'relative-json-pointer': (n) => String(n),
  regex: (n) => `^${n}$`,
  byte: (n) => Buffer.from(String(n)).toString('base64'),
};

function dateOf(n: number): string {
  return new Date(Date.UTC(2026, 0, 1) + n * 86_400_000).toISOString();
}

function timeOf(n: number): string {
  return `${new Date(n * 1_000).toISOString().slice(11, 19)}Z`;
}

function textFor(schema: JsonObject, name: string, place: number): string {
  const min = countOf(schema.minLength) ?? 0;
  const max = countOf(schema.maxLength) ?? Infinity;
  if (min > VALUES_MAX || min > max) throw new UnsatisfiableError();
  if (typeof schema.pattern === 'string') {
    const shortest = textOfPattern(schema.pattern, place) ?? '';
    const text = shortest.length < min ? textOfPattern(schema.pattern, place + min - shortest.length) : shortest;
    if (text) return text;
  }
  const { format } = schema;
  if (typeof format === 'string' && Object.hasOwn(byFormat, format)) {
    return byFormat[format](place).slice(0, max).padEnd(min, 'x');
  }
  const suffix = place === 0 ? '' : String(place).slice(0, max);
  return `${name.slice(0, max - suffix.length)}${suffix}`.padStart(min, 'x');
}
