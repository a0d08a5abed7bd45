import { isObject } from '../../../platform/text/json.js';
import { resolveRef as withTarget } from '../../../platform/json-schema/references.js';
import type { ConfigParser, ParseResult } from './user-module.js';

/** Names that would access an object's prototype. */
const UNSAFE = new Set(['__proto__', 'constructor', 'prototype']);

export interface Schema {
  [keyword: string]: unknown;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  $ref?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

/** `path`: names joined by dots, empty for the whole value. */
interface ConfigError {
  path: string;
  message: string;
}

type Raw = { values: string[] } | Map<string, Raw>;

export type ConfigResult = { config: unknown } | { errors: ConfigError[] };

/**
 * Parses a caller's configuration from the query: `db.host=x` becomes `{db: {host: 'x'}}`. Values are converted to the
 * type in the schema, so `5000` stays a string for the type string; without a type, JSON if it parses as such. The
 * module's exported zod object, if any, validates the result; values were checked against the schema before the call.
 */
export async function readConfig(
  query: URLSearchParams,
  schema: Schema | null,
  parser: unknown,
): Promise<ConfigResult> {
  const raw = rawOf(query);
  if (schema) {
    const config = withDefaults(schema, schema, convert(raw, schema, schema)) ?? {};
    return isParser(parser) ? toResult(await parser.safeParseAsync(config)) : { config };
  }
  const config = convert(raw, {}, {});
  return isParser(parser) ? await parsedLoosely(parser, config, raw) : { config };
}

function isParser(value: unknown): value is ConfigParser {
  return typeof (value as ConfigParser | undefined)?.safeParseAsync === 'function';
}

/** Restores the text of values for which zod reports an expected string, once. */
async function parsedLoosely(parser: ConfigParser, config: unknown, raw: Raw): Promise<ConfigResult> {
  const first = await parser.safeParseAsync(config);
  if (first.success) return { config: first.data };
  const mistyped = first.error.issues.filter(({ expected }) => expected === 'string');
  let isChanged = false;
  for (const { path } of mistyped) isChanged = restoreText(config, raw, path.map(String)) || isChanged;
  return toResult(isChanged ? await parser.safeParseAsync(config) : first);
}

function restoreText(config: unknown, raw: Raw, path: string[]): boolean {
  const name = path.at(-1);
  const text = path.reduce<Raw | undefined>((at, step) => (at instanceof Map ? at.get(step) : undefined), raw);
  const owner = path.slice(0, -1).reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), config);
  if (name === undefined || !text || text instanceof Map || !isObject(owner)) return false;
  owner[name] = text.values.at(-1);
  return true;
}

function toResult(result: ParseResult): ConfigResult {
  if (result.success) return { config: result.data };
  return { errors: result.error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message })) };
}

function rawOf(query: URLSearchParams): Raw {
  const root = new Map<string, Raw>();
  for (const name of new Set(query.keys())) {
    const steps = name.split('.');
    if (steps.some((step) => step === '' || UNSAFE.has(step))) continue;
    setValues(root, steps, query.getAll(name));
  }
  return root;
}

/** Stores values at a path. If `a` and `a.b` both occur, the first one is used. */
function setValues(root: Map<string, Raw>, steps: string[], values: string[]): void {
  let at = root;
  for (const step of steps.slice(0, -1)) {
    const next = at.get(step) ?? new Map<string, Raw>();
    if (!(next instanceof Map)) return;
    at.set(step, next);
    at = next;
  }
  const last = steps[steps.length - 1];
  if (!at.has(last)) at.set(last, { values });
}

/** Converts values to their types. A value that does not convert stays text, for validation to report. */
function convert(raw: Raw, schema: Schema, root: Schema): unknown {
  const here = resolveSchema(schema, root);
  if (raw instanceof Map) {
    return Object.fromEntries([...raw].map(([name, part]) => [name, convert(part, propertyOf(here, name), root)]));
  }
  const types = typesOf(here, root);
  if (types.has('array')) return typedArray(raw.values, here, root);
  return typedText(raw.values.at(-1) ?? '', types);
}

function propertyOf(schema: Schema, name: string): Schema {
  if (schema.properties && Object.hasOwn(schema.properties, name)) return schema.properties[name];
  return isObject(schema.additionalProperties) ? schema.additionalProperties : {};
}

function typedArray(values: string[], schema: Schema, root: Schema): unknown {
  if (values.length === 1) {
    const list = fromJson(values[0]);
    if (Array.isArray(list)) return list;
  }
  const item = typesOf(schema.items ?? {}, root);
  return values.map((value) => typedText(value, item));
}

function typedText(text: string, types: Set<string>): unknown {
  if (types.size === 1 && types.has('string')) return text;
  const value = fromJson(text);
  if (types.size === 0) return value === undefined ? text : value;
  const isWanted =
    (typeof value === 'number' && (types.has('number') || types.has('integer'))) ||
    (typeof value === 'boolean' && types.has('boolean')) ||
    (value === null && types.has('null')) ||
    (isObject(value) && types.has('object'));
  return isWanted ? value : text;
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown) => (UNSAFE.has(key) ? undefined : value)) as unknown;
  } catch {
    return undefined;
  }
}

/** Replaces `$ref` by the referenced schema; an unresolvable one allows everything. */
function resolveSchema(schema: unknown, root: Schema): Schema {
  return withTarget(schema, root);
}

/** Returns the types that a schema allows; an empty set means any type. @param around schemas being read, to stop at circular references */
function typesOf(schema: Schema, root: Schema, around: unknown[] = []): Set<string> {
  if (around.includes(schema)) return new Set();
  const here = resolveSchema(schema, root);
  if (here.type !== undefined) return new Set([here.type].flat());
  const values = here.enum ?? (here.const === undefined ? [] : [here.const]);
  if (values.length > 0) return new Set(values.map(typeName));
  const choices = here.anyOf ?? here.oneOf ?? here.allOf ?? [];
  const types = choices.map((choice) => typesOf(choice, root, [...around, schema]));
  return types.some((set) => set.size === 0) ? new Set() : new Set(types.flatMap((set) => [...set]));
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** Drops members that the schema forbids. */
function withDefaults(schema: Schema, root: Schema, value: unknown, around: unknown[] = []): unknown {
  const here = resolveSchema(schema, root);
  if (value === undefined && here.default !== undefined) return structuredClone(here.default);
  if (value === undefined && around.includes(schema)) return undefined;
  if (!here.properties || (value !== undefined && !isObject(value))) return value;
  const declared = Object.entries(here.properties)
    .map(([name, property]) => [name, withDefaults(property, root, value?.[name], [...around, schema])] as const)
    .filter(([, filled]) => filled !== undefined);
  const more = here.additionalProperties === false ? [] : Object.entries(value ?? {});
  if (value === undefined && declared.length === 0) return undefined;
  return Object.fromEntries([...more, ...declared]);
}
