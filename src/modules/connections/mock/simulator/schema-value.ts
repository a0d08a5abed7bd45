import { fullFormats } from 'ajv-formats/dist/formats.js';
import { matchesPattern } from '../../../../platform/json-schema/patterns.js';
import type { SchemaCheck } from '../../../../platform/json-schema/schema-check.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';
import { mergedSchema, variantsOf } from './merged-schema.js';
import { textOfPattern } from './pattern-text.js';
import { plainName, textOfFormat, textOfName, words, SeededRandom } from './sample-text.js';

/** Below this depth only required members are made, and lists are as short as allowed. */
const GENEROUS_DEPTH = 5;
const DEPTH_MAX = 24;

/** Values in one answer; a schema that needs more is unsatisfiable here. */
const VALUES_MAX = 20_000;
const TEXT_CHARS_MAX = 100_000;

/** A schema that no value satisfies, or that needs a value larger than an answer may be. */
export class UnsatisfiableError extends Error {}

/** Inputs of a value. */
export interface ValueWish {
  /** The same seed and place give the same value. */
  seed: string;
  /** Known values, such as a call's arguments: used under equal names where the schema allows them. */
  known?: unknown;
  /** Selects other alternatives of the schema, for another try. */
  attempt?: number;
}

/** A value for a JSON Schema. Each keyword is considered once, so the value may break the schema: check it. */
export function valueFor(schema: unknown, wish: ValueWish): unknown {
  return new ValueMaker(schema, wish).value(schema, [], wish.known);
}

/** Tries with other alternatives when a value does not satisfy its schema: keywords may contradict each other. */
const ATTEMPTS_MAX = 12;

/**
 * A value that passes the check: with the known values, and without them when they cannot satisfy the schema.
 *
 * @throws UnsatisfiableError when none is found
 */
export function satisfyingValue(schema: unknown, check: SchemaCheck | null, wish: ValueWish): unknown {
  for (const known of wish.known === undefined ? [undefined] : [wish.known, undefined]) {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      try {
        const value = valueFor(schema, { ...wish, known, attempt });
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
  private readonly attempt: number;

  constructor(
    private readonly root: unknown,
    private readonly wish: ValueWish,
  ) {
    this.attempt = wish.attempt ?? 0;
  }

  /** @throws UnsatisfiableError */
  value(declared: unknown, path: string[], known: unknown): unknown {
    this.made += 1;
    if (declared === false || path.length > DEPTH_MAX || this.made > VALUES_MAX) throw new UnsatisfiableError();
    const random = new SeededRandom(`${this.wish.seed}\0${this.attempt}\0${path.join('\0')}`);
    const schema = this.variant(mergedSchema(declared, this.root), path, known, random);
    if ('const' in schema) return schema.const;
    if (Array.isArray(schema.enum)) return pickEnum(schema.enum, known, random);
    const type = typeOf(schema, known, path.at(-1), random);
    if (type === 'object') return this.object(schema, path, known);
    if (type === 'array') return this.array(schema, path, known, random);
    if (known !== undefined && fits(schema, type, known)) return known;
    return this.scalar(schema, type, path, random);
  }

  /** The alternative that accepts the known value; on later attempts each alternative in turn. */
  private variant(schema: JsonObject, path: string[], known: unknown, random: SeededRandom): JsonObject {
    const variants = variantsOf(schema, this.root);
    if (variants.length === 0) return schema;
    if (this.attempt > 0) return variants[(this.attempt - 1) % variants.length];
    const fitting = variants.findIndex((variant) => known !== undefined && suits(variant, known));
    if (fitting >= 0) return variants[fitting];
    const generous = variants.filter(({ type }) => type !== 'null');
    return path.length > GENEROUS_DEPTH
      ? (variants.find(({ type }) => type !== 'object' && type !== 'array') ?? variants[0])
      : random.pick(generous.length > 0 ? generous : variants);
  }

  private object(schema: JsonObject, path: string[], known: unknown): JsonObject {
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
      this.set(value, name, () => this.value(member, [...path, name], from && source[from]), required.includes(name));
    }
    this.addOthers(schema, value, source, path);
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
  private addOthers(schema: JsonObject, value: JsonObject, source: JsonObject, path: string[]): void {
    const isOpen = schema.additionalProperties !== false && schema.unevaluatedProperties !== false;
    const hasNoNames = isOpen && !isObject(schema.properties);
    for (const name of hasNoNames ? Object.keys(source) : []) {
      if (Object.hasOwn(value, name)) continue;
      this.set(value, name, () => this.value(schemaOfOther(schema, name), [...path, name], source[name]), false);
    }
    const min = Math.max(countOf(schema.minProperties) ?? 0, this.wantsExample(schema, value) ? 1 : 0);
    if (min > VALUES_MAX) throw new UnsatisfiableError();
    for (let at = 1; Object.keys(value).length < min && isOpen; at += 1) {
      const name = this.otherName(schema, path, at);
      if (at > min + 20) throw new UnsatisfiableError();
      this.set(value, name, () => this.value(schemaOfOther(schema, name), [...path, name], undefined), true);
    }
  }

  /** True for an empty dictionary: one entry shows its form. */
  private wantsExample(schema: JsonObject, value: JsonObject): boolean {
    return isObject(schema.additionalProperties) && !isObject(schema.properties) && Object.keys(value).length === 0;
  }

  private otherName(schema: JsonObject, path: string[], at: number): string {
    const pattern = isObject(schema.patternProperties) ? Object.keys(schema.patternProperties)[0] : undefined;
    const names = isObject(schema.propertyNames) ? schema.propertyNames : pattern === undefined ? {} : { pattern };
    if (Object.keys(names).length === 0) return `key${at}`;
    return String(this.value({ ...names, type: 'string' }, [...path, `name ${at}`], undefined));
  }

  private array(schema: JsonObject, path: string[], known: unknown, random: SeededRandom): unknown[] {
    const prefix = [schema.prefixItems, schema.items].find((items): items is unknown[] => Array.isArray(items)) ?? [];
    const rest = Array.isArray(schema.items) ? (schema.additionalItems ?? true) : (schema.items ?? true);
    const isGenerous = path.length < GENEROUS_DEPTH;
    const wanted = Array.isArray(known) ? known.length : isGenerous ? Math.max(prefix.length, random.between(1, 3)) : 0;
    const count = countFor(schema, wanted, prefix.length, rest);
    const list: unknown[] = [];
    const seen = new Set<string>();
    for (let at = 0; list.length < count; at += 1) {
      if (at > count + 50) throw new UnsatisfiableError();
      const member =
        prefix[list.length] ?? (isObject(schema.contains) && list.length === prefix.length ? schema.contains : rest);
      const one = this.value(member, [...path, String(at)], Array.isArray(known) ? known[at] : undefined);
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

  private scalar(schema: JsonObject, type: string, path: string[], random: SeededRandom): unknown {
    const examples = Array.isArray(schema.examples) ? (schema.examples as unknown[]) : [];
    const example = examples.length > 0 ? random.pick(examples) : schema.default;
    if (example !== undefined && example !== null && this.attempt === 0 && fits(schema, type, example)) {
      return example;
    }
    if (type === 'null') return null;
    if (type === 'boolean') return random.next() < 0.5;
    if (type === 'number' || type === 'integer') return numberFor(schema, type, path.at(-1) ?? '', random);
    return textFor(schema, path.findLast((name) => !/^\d+$/.test(name)) ?? '', random);
  }
}

/** The length of a list nearest to `wanted` that the schema allows. */
function countFor(schema: JsonObject, wanted: number, prefix: number, rest: unknown): number {
  const contains = isObject(schema.contains) ? prefix + (countOf(schema.minContains) ?? 1) : 0;
  const min = Math.max(countOf(schema.minItems) ?? 0, contains);
  const max = rest === false ? prefix : (countOf(schema.maxItems) ?? Infinity);
  if (min > VALUES_MAX || min > max) throw new UnsatisfiableError();
  return Math.min(Math.max(wanted, min), max);
}

/** The schema of a member that `properties` does not name. */
function schemaOfOther(schema: JsonObject, name: string): unknown {
  for (const [pattern, member] of Object.entries(isObject(schema.patternProperties) ? schema.patternProperties : {})) {
    if (pattern === `^${name}$` || pattern === '.*' || pattern === '^.*$' || pattern === '') return member;
  }
  const first = isObject(schema.patternProperties) ? Object.values(schema.patternProperties)[0] : undefined;
  return isObject(schema.additionalProperties) ? schema.additionalProperties : (first ?? true);
}

function pickEnum(choices: unknown[], known: unknown, random: SeededRandom): unknown {
  if (choices.length === 0) throw new UnsatisfiableError();
  const isSame = (choice: unknown) =>
    choice === known || (known !== undefined && plainText(choice) === plainText(known));
  const same = choices.find(isSame);
  return same === undefined ? random.pick(choices) : same;
}

function plainText(value: unknown): string {
  return typeof value === 'string' ? plainName(value) : JSON.stringify(value);
}

/** The type to make: that of the known value if allowed, else the first one that is not null. */
function typeOf(schema: JsonObject, known: unknown, name: string | undefined, random: SeededRandom): string {
  const types = Array.isArray(schema.type) ? (schema.type as string[]) : [schema.type as string | undefined];
  const own = known === undefined ? undefined : jsonType(known);
  if (own !== undefined && types.includes(own)) return own;
  if (own === 'integer' && types.includes('number')) return 'number';
  const [type] = types.filter((one) => one !== 'null');
  if (type !== undefined) return type;
  if (types.includes('null')) return 'null';
  return impliedType(schema) ?? own ?? (name === undefined || random.next() < 2 ? 'string' : 'null');
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

function numberFor(schema: JsonObject, type: string, name: string, random: SeededRandom): number {
  const multiple = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : null;
  const step = multiple ?? (type === 'integer' ? 1 : 0.01);
  const wide = range(schema, Math.min(step, 1));
  const [usualMin, usualMax] = usualRange(name);
  const min = Number.isFinite(wide.min) ? wide.min : Math.min(usualMin, wide.max - 100);
  const max = Number.isFinite(wide.max) ? Math.min(wide.max, Math.max(usualMax, min)) : Math.max(usualMax, min + 100);
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  if (last < first) return narrow(schema, type, multiple);
  const number = random.between(first, last) * step;
  if (type === 'integer' && !Number.isInteger(number)) return Math.round(number);
  return Number(number.toPrecision(15));
}

/** A range narrower than a hundredth. */
function narrow(schema: JsonObject, type: string, multiple: number | null): number {
  const { min, max } = range(schema, 0);
  if (type === 'integer' || multiple !== null || min > max) throw new UnsatisfiableError();
  return (min + max) / 2;
}

function usualRange(name: string): [number, number] {
  const plain = plainName(name);
  if (/^lat(itude)?$/.test(plain)) return [-90, 90];
  if (/^(lon|lng|longitude)$/.test(plain)) return [-180, 180];
  if (/percent|humidity/.test(plain)) return [0, 100];
  if (/temp/.test(plain)) return [-5, 30];
  if (/year/.test(plain)) return [2020, 2026];
  if (/price|amount|cost|salary/.test(plain)) return [1, 500];
  return /(id|number)$/.test(plain) ? [1, 9_999] : [0, 100];
}

function textFor(schema: JsonObject, name: string, random: SeededRandom): string {
  const min = countOf(schema.minLength) ?? 0;
  const max = countOf(schema.maxLength) ?? Infinity;
  if (min > TEXT_CHARS_MAX || min > max) throw new UnsatisfiableError();
  if (typeof schema.pattern === 'string') return textOfPattern(schema.pattern, random) ?? words(random, 2);
  const made = (typeof schema.format === 'string' && textOfFormat(schema.format, random)) || textOfName(name, random);
  const long = made.length < min ? made + ` ${words(random, 8)}`.repeat(Math.ceil(min / 20) + 1) : made;
  return long
    .slice(0, Math.min(max, Math.max(min, made.length)))
    .trim()
    .padEnd(min, 'x');
}
