import { isObject } from '../../../platform/text/json.js';
import { issuesOf, resolved, typesOf, withDefaults, type ConfigError, type Schema } from './config-json-schema.js';
import type { ConfigParser, ParseResult } from './user-module.js';

/** Names of one configuration; the rest is passed over. */
const NAMES_MAX = 100;

/** Levels of dots in a name; a deeper one is passed over. */
const DEPTH_MAX = 8;

/** Names that would reach into an object's own workings. */
const UNSAFE = new Set(['__proto__', 'constructor', 'prototype']);

/** The values of the query, still text, by their names. */
type Raw = { values: string[] } | Map<string, Raw>;

/** What came out: the configuration, or all that is wrong with it. */
export type ConfigResult = { config: unknown } | { errors: ConfigError[] };

/**
 * Reads a caller's configuration from the query: `db.host=x` becomes `{db: {host: 'x'}}`. A value has the type the schema
 * says, so `5000` stays text where text is wanted; without a word of the schema it is JSON when it reads as such.
 * Defaults are filled in. The module's own zod object has the last word when it exports one.
 */
export async function readConfig(
  query: URLSearchParams,
  schema: Schema | null,
  parser: unknown,
): Promise<ConfigResult> {
  const raw = rawOf(query);
  if (schema) {
    const config = withDefaults(schema, schema, typed(raw, schema, schema)) ?? {};
    const errors = issuesOf(schema, schema, config);
    if (errors.length > 0) return { errors };
    return isParser(parser) ? parsed(await parser.safeParseAsync(config)) : { config };
  }
  const config = typed(raw, {}, {});
  return isParser(parser) ? await parsedLoosely(parser, config, raw) : { config };
}

function isParser(value: unknown): value is ConfigParser {
  return typeof (value as ConfigParser | undefined)?.safeParseAsync === 'function';
}

/** A zod object says which of the values should have stayed text: those are put back, once. */
async function parsedLoosely(parser: ConfigParser, config: unknown, raw: Raw): Promise<ConfigResult> {
  const first = await parser.safeParseAsync(config);
  if (first.success) return { config: first.data };
  const texts = first.error.issues.filter(({ expected }) => expected === 'string');
  let isChanged = false;
  for (const { path } of texts) isChanged = restoreText(config, raw, path.map(String)) || isChanged;
  return parsed(isChanged ? await parser.safeParseAsync(config) : first);
}

function restoreText(config: unknown, raw: Raw, path: string[]): boolean {
  const name = path.at(-1);
  const text = path.reduce<Raw | undefined>((at, step) => (at instanceof Map ? at.get(step) : undefined), raw);
  const owner = path.slice(0, -1).reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), config);
  if (name === undefined || !text || text instanceof Map || !isObject(owner)) return false;
  owner[name] = text.values.at(-1);
  return true;
}

function parsed(result: ParseResult): ConfigResult {
  if (result.success) return { config: result.data };
  return { errors: result.error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message })) };
}

function rawOf(query: URLSearchParams): Raw {
  const root = new Map<string, Raw>();
  for (const name of [...new Set(query.keys())].slice(0, NAMES_MAX)) {
    const steps = name.split('.');
    if (steps.length > DEPTH_MAX || steps.some((step) => step === '' || UNSAFE.has(step))) continue;
    place(root, steps, query.getAll(name));
  }
  return root;
}

/** Where `a` and `a.b` are both given, the first one stays. */
function place(root: Map<string, Raw>, steps: string[], values: string[]): void {
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

/** Gives values their types. What does not fit stays text, for the check to name. */
function typed(raw: Raw, schema: Schema, root: Schema): unknown {
  const here = resolved(schema, root);
  if (raw instanceof Map) {
    return Object.fromEntries([...raw].map(([name, part]) => [name, typed(part, propertyOf(here, name), root)]));
  }
  const types = typesOf(here, root);
  if (types.has('array')) return typedArray(raw.values, here, root);
  return typedText(raw.values.at(-1) ?? '', types);
}

function propertyOf(schema: Schema, name: string): Schema {
  if (schema.properties && Object.hasOwn(schema.properties, name)) return schema.properties[name];
  return isObject(schema.additionalProperties) ? schema.additionalProperties : {};
}

/** A list is given as JSON, or as the same name several times. */
function typedArray(values: string[], schema: Schema, root: Schema): unknown {
  if (values.length === 1) {
    const whole = fromJson(values[0]);
    if (Array.isArray(whole)) return whole;
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
