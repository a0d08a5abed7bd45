import { fullFormats } from 'ajv-formats/dist/formats.js';
import { matchesPattern } from '../../../../platform/json-schema/patterns.js';
import type { SchemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';
import { mergedSchema, variantsOf } from './merged-schema.js';
import { textOfPattern } from './pattern-text.js';
import { plainName } from './simulator.js';

/** Below this depth only required members are made, and lists are as short as allowed. */
const GENEROUS_DEPTH = 5;
const DEPTH_MAX = 24;

/** Values in one answer; a schema that needs more is unsatisfiable here. */
const VALUES_MAX = 20_000;
const TEXT_CHARS_MAX = 100_000;

/** A schema that no value satisfies, or that needs a value larger than an answer may be. */
export class UnsatisfiableError extends Error {}

/**
 * A value for a JSON Schema: the first example, the default, the first word of an enumeration, or a minimal value. Each
 * keyword is considered once, so the value may break the schema: check it.
 *
 * @param known values such as a call's arguments: used under equal names where the schema allows them
 * @param attempt selects other alternatives of the schema, for another try
 */
export function valueFor(schema: unknown, known?: unknown, attempt = 0): unknown {
  return new ValueMaker(schema).value(schema, [], known, attempt);
}

/** Tries with other alternatives when a value does not satisfy its schema: keywords may contradict each other. */
const ATTEMPTS_MAX = 12;

/**
 * A value that passes the check: with the known values, and without them when they cannot satisfy the schema.
 *
 * @throws UnsatisfiableError when none is found
 */
export function satisfyingValue(schema: unknown, check: SchemaCheck | null, wanted: unknown): unknown {
  for (const known of wanted === undefined ? [undefined] : [wanted, undefined]) {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      try {
        const value = valueFor(schema, known, attempt);
        if (check === null || check(value) === null) return value;
      } catch (error) {
        if (!(error instanceof UnsatisfiableError)) throw error;
      }
    }
  }
  throw new UnsatisfiableError();
}

class ValueMaker {
  private made = 0;

  constructor(private readonly root: unknown) {}

  /**
   * @param turn 0 for the value to prefer; each other number selects another alternative
   * @throws UnsatisfiableError
   */
  value(declared: unknown, path: string[], known: unknown, turn: number): unknown {
    this.made += 1;
    if (declared === false || path.length > DEPTH_MAX || this.made > VALUES_MAX) throw new UnsatisfiableError();
    const schema = this.variant(mergedSchema(declared, this.root), path, known, turn);
    if ('const' in schema) return schema.const;
    if (Array.isArray(schema.enum)) {
      const choices = schema.enum as unknown[];
      if (choices.length === 0) throw new UnsatisfiableError();
      // The choice that the known value spells, else the example, else the first one.
      const preferred = known !== undefined || turn > 0 ? known : exampleOf(schema);
      const same = choices.find((choice) => preferred !== undefined && plainText(choice) === plainText(preferred));
      return same === undefined ? choices[turn % choices.length] : same;
    }
    const type = typeOf(schema, known);
    if (type === 'object') return this.object(schema, path, known, turn);
    if (type === 'array') return this.array(schema, path, known, turn);
    if (known !== undefined && fits(schema, type, known)) return known;
    return scalarFor(schema, type, path, turn);
  }

  /** The alternative that accepts the known value, else the first one; on later turns each alternative. */
  private variant(schema: JsonObject, path: string[], known: unknown, turn: number): JsonObject {
    const variants = variantsOf(schema, this.root);
    if (variants.length === 0) return schema;
    if (turn > 0) return variants[(turn - 1) % variants.length];
    const fitting = variants.findIndex((variant) => known !== undefined && suits(variant, known));
    if (fitting >= 0) return variants[fitting];
    const isWanted = ({ type }: JsonObject) =>
      path.length > GENEROUS_DEPTH ? type !== 'object' && type !== 'array' : type !== 'null';
    return variants.find(isWanted) ?? variants[0];
  }

  private object(schema: JsonObject, path: string[], known: unknown, turn: number): JsonObject {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : [];
    const source = isObject(known) ? known : {};
    const byPlainName = new Map(Object.keys(source).map((name) => [plainName(name), name]));
    const value: JsonObject = {};
    const isGenerous = path.length < GENEROUS_DEPTH;
    for (const name of new Set([...Object.keys(properties), ...required])) {
      const from = Object.hasOwn(source, name) ? name : byPlainName.get(plainName(name));
      if (!required.includes(name) && from === undefined && !isGenerous) continue;
      const member = Object.hasOwn(properties, name) ? properties[name] : schemaOfOther(schema, name);
      if (member === false && !required.includes(name)) continue;
      const make = () => this.value(member, [...path, name], from && source[from], turn);
      this.set(value, name, make, required.includes(name));
    }
    this.addOthers(schema, value, source, path, turn);
    return value;
  }

  /** An optional member that cannot be made is left out. */
  private set(value: JsonObject, name: string, make: () => unknown, isRequired: boolean): void {
    try {
      Object.defineProperty(value, name, { value: make(), enumerable: true, configurable: true, writable: true });
    } catch (error) {
      if (isRequired || !(error instanceof UnsatisfiableError)) throw error;
    }
  }

  /** Adds known members where the schema names none, and members up to `minProperties`. */
  private addOthers(schema: JsonObject, value: JsonObject, source: JsonObject, path: string[], turn: number): void {
    const isOpen = schema.additionalProperties !== false && schema.unevaluatedProperties !== false;
    const hasNoNames = isOpen && !isObject(schema.properties);
    for (const name of hasNoNames ? Object.keys(source) : []) {
      if (Object.hasOwn(value, name)) continue;
      const make = () => this.value(schemaOfOther(schema, name), [...path, name], source[name], turn);
      this.set(value, name, make, false);
    }
    // True for an empty dictionary: one entry shows its form.
    const min = Math.max(
      countOf(schema.minProperties) ?? 0,
      isObject(schema.additionalProperties) && !isObject(schema.properties) && Object.keys(value).length === 0 ? 1 : 0,
    );
    if (min > VALUES_MAX) throw new UnsatisfiableError();
    for (let at = 1; Object.keys(value).length < min && isOpen; at += 1) {
      const name = this.otherName(schema, path, at + turn);
      if (at > min + 20) throw new UnsatisfiableError();
      this.set(value, name, () => this.value(schemaOfOther(schema, name), [...path, name], undefined, turn), true);
    }
  }

  private otherName(schema: JsonObject, path: string[], at: number): string {
    const pattern = isObject(schema.patternProperties) ? Object.keys(schema.patternProperties)[0] : undefined;
    const names = isObject(schema.propertyNames) ? schema.propertyNames : pattern === undefined ? {} : { pattern };
    if (Object.keys(names).length === 0) return `key${at}`;
    return String(this.value({ ...names, type: 'string' }, [...path, 'key'], undefined, at - 1));
  }

  private array(schema: JsonObject, path: string[], known: unknown, turn: number): unknown[] {
    const prefix = [schema.prefixItems, schema.items].find((items): items is unknown[] => Array.isArray(items)) ?? [];
    const rest = Array.isArray(schema.items) ? (schema.additionalItems ?? true) : (schema.items ?? true);
    const isGenerous = path.length < GENEROUS_DEPTH;
    const wanted = Array.isArray(known) ? known.length : isGenerous ? Math.max(prefix.length, 1) : 0;
    // The length of a list nearest to `wanted` that the schema allows.
    const contains = isObject(schema.contains) ? prefix.length + (countOf(schema.minContains) ?? 1) : 0;
    const min = Math.max(countOf(schema.minItems) ?? 0, contains);
    const max = rest === false ? prefix.length : (countOf(schema.maxItems) ?? Infinity);
    if (min > VALUES_MAX || min > max) throw new UnsatisfiableError();
    const count = Math.min(Math.max(wanted, min), max);
    const list: unknown[] = [];
    const seen = new Set<string>();
    for (let at = 0; list.length < count; at += 1) {
      if (at > count + 50) throw new UnsatisfiableError();
      const member =
        prefix[list.length] ?? (isObject(schema.contains) && list.length === prefix.length ? schema.contains : rest);
      const itemTurn = schema.uniqueItems === true ? turn + at : turn;
      const one = this.value(member, [...path, String(at)], Array.isArray(known) ? known[at] : undefined, itemTurn);
      const text = schema.uniqueItems === true ? JSON.stringify(one) : '';
      if (schema.uniqueItems === true && seen.has(text)) {
        if (at > count + 20 && list.length >= (countOf(schema.minItems) ?? 0)) break;
        continue;
      }
      seen.add(text);
      list.push(one);
    }
    return list;
  }
}

function scalarFor(schema: JsonObject, type: string, path: string[], turn: number): unknown {
  const example = exampleOf(schema);
  if (turn === 0 && example !== undefined && example !== null && fits(schema, type, example)) return example;
  if (type === 'null') return null;
  if (type === 'boolean') return turn % 2 === 1;
  if (type === 'number' || type === 'integer') return numberFor(schema, type, turn);
  return textFor(schema, path.findLast((name) => !/^\d+$/.test(name)) ?? 'text', turn);
}

/** The first example, else the default. */
function exampleOf({ examples, default: usual }: JsonObject): unknown {
  return Array.isArray(examples) && examples.length > 0 ? examples[0] : usual;
}

/** The schema of a member that `properties` does not name. */
function schemaOfOther(schema: JsonObject, name: string): unknown {
  for (const [pattern, member] of Object.entries(isObject(schema.patternProperties) ? schema.patternProperties : {})) {
    if (pattern === `^${name}$` || pattern === '.*' || pattern === '^.*$' || pattern === '') return member;
  }
  const first = isObject(schema.patternProperties) ? Object.values(schema.patternProperties)[0] : undefined;
  return isObject(schema.additionalProperties) ? schema.additionalProperties : (first ?? true);
}

function plainText(value: unknown): string {
  return typeof value === 'string' ? plainName(value) : JSON.stringify(value);
}

/** The type to make: that of the known value if allowed, else the first one that is not null. */
function typeOf(schema: JsonObject, known: unknown): string {
  const types = Array.isArray(schema.type) ? (schema.type as string[]) : [schema.type as string | undefined];
  const own = known === undefined ? undefined : jsonType(known);
  if (own !== undefined && types.includes(own)) return own;
  if (own === 'integer' && types.includes('number')) return 'number';
  const [type] = types.filter((one) => one !== 'null');
  if (type !== undefined) return type;
  if (types.includes('null')) return 'null';
  return impliedType(schema) ?? own ?? 'string';
}

const keywordsOf: Record<string, readonly string[]> = {
  object: ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties'],
  array: ['items', 'prefixItems', 'minItems', 'contains', 'uniqueItems'],
  number: ['minimum', 'maximum', 'multipleOf', 'exclusiveMinimum', 'exclusiveMaximum'],
  string: ['pattern', 'format', 'minLength', 'maxLength'],
};

/** The type whose keywords a schema without `type` uses. */
function impliedType(schema: JsonObject): string | undefined {
  return Object.keys(keywordsOf).find((type) => keywordsOf[type].some((keyword) => keyword in schema));
}

/** `integer` for whole numbers. */
function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** True when a value has the type and the required members of an alternative. */
function suits(schema: JsonObject, value: unknown): boolean {
  const own = jsonType(value);
  const types = Array.isArray(schema.type) ? (schema.type as unknown[]) : [schema.type ?? impliedType(schema)];
  if (!types.includes(own) && !(own === 'integer' && types.includes('number'))) return false;
  return !isObject(value) || !Array.isArray(schema.required) || schema.required.every((name) => String(name) in value);
}

/** True when a scalar satisfies the schema. */
function fits(schema: JsonObject, type: string, value: unknown): boolean {
  const own = jsonType(value);
  if (own !== type && !(own === 'integer' && type === 'number')) return false;
  if (typeof value === 'string') {
    const length = [...value].length;
    const isWithin = length >= (countOf(schema.minLength) ?? 0) && length <= (countOf(schema.maxLength) ?? Infinity);
    return isWithin && hasForm(schema, value);
  }
  if (typeof value !== 'number') return true;
  const { min, max } = range(schema, 0);
  const isMultiple = typeof schema.multipleOf !== 'number' || Number.isSafeInteger(value / schema.multipleOf);
  return value >= min && value <= max && isMultiple && !isExcluded(schema, value);
}

function isExcluded({ exclusiveMinimum, exclusiveMaximum, minimum, maximum }: JsonObject, value: number): boolean {
  const low = exclusiveMinimum === true ? minimum : exclusiveMinimum;
  const high = exclusiveMaximum === true ? maximum : exclusiveMaximum;
  return value === low || value === high;
}

/** True when a text has the pattern and the format of the schema. Unknown formats are ignored. */
function hasForm({ pattern, format }: JsonObject, text: string): boolean {
  if (typeof pattern === 'string' && !matchesPattern(pattern, text)) return false;
  const known = typeof format === 'string' ? fullFormats[format as keyof typeof fullFormats] : undefined;
  if (known instanceof RegExp) return known.test(text);
  const check = typeof known === 'object' && 'validate' in known ? known.validate : known;
  return typeof check === 'function' ? (check as (text: string) => boolean)(text) : true;
}

function countOf(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? Math.floor(value) : null;
}

/** Bounds, both included; `step` moves an excluded bound inside. Draft-04 wrote exclusive bounds as booleans. */
function range(schema: JsonObject, step: number): { min: number; max: number } {
  const of = (value: unknown) => (typeof value === 'number' ? value : null);
  const low = of(schema.exclusiveMinimum) ?? (schema.exclusiveMinimum === true ? of(schema.minimum) : null);
  const high = of(schema.exclusiveMaximum) ?? (schema.exclusiveMaximum === true ? of(schema.maximum) : null);
  return {
    min: Math.max(of(schema.minimum) ?? -Infinity, low === null ? -Infinity : low + step),
    max: Math.min(of(schema.maximum) ?? Infinity, high === null ? Infinity : high - step),
  };
}

/** The allowed number nearest to 0; on later turns the next ones. */
function numberFor(schema: JsonObject, type: string, turn: number): number {
  const multiple = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : null;
  const step = multiple ?? (type === 'integer' ? 1 : 0.01);
  const { min, max } = range(schema, Math.min(step, 1));
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  if (last < first) return narrow(schema, type, multiple);
  const nearest = Math.min(Math.max(0, first), last);
  const number = (nearest + turn <= last ? nearest + turn : Math.max(first, nearest - turn)) * step;
  if (type === 'integer' && !Number.isInteger(number)) return Math.round(number);
  return Number(number.toPrecision(15));
}

/** A range narrower than a hundredth. */
function narrow(schema: JsonObject, type: string, multiple: number | null): number {
  const { min, max } = range(schema, 0);
  if (type === 'integer' || multiple !== null || min > max) throw new UnsatisfiableError();
  return (min + max) / 2;
}

/** Texts by JSON Schema format; `n` makes them differ. Hosts and addresses are reserved ones (RFC 2606, RFC 5737). */
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

/** A text of the pattern, else of the format, else the name of its place; within the allowed lengths. */
function textFor(schema: JsonObject, name: string, turn: number): string {
  const min = countOf(schema.minLength) ?? 0;
  const max = countOf(schema.maxLength) ?? Infinity;
  if (min > TEXT_CHARS_MAX || min > max) throw new UnsatisfiableError();
  const byPattern = typeof schema.pattern === 'string' ? textOfPattern(schema.pattern, turn) : null;
  if (byPattern !== null) return byPattern;
  const { format } = schema;
  if (typeof format === 'string' && Object.hasOwn(byFormat, format)) {
    return byFormat[format](turn).slice(0, max).padEnd(min, 'x');
  }
  const suffix = turn === 0 ? '' : String(turn).slice(0, max);
  return `${name.slice(0, max - suffix.length)}${suffix}`.padStart(min, 'x');
}
