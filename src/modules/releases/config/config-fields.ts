import { isObject } from '../../../platform/text/json.js';

/** The kind of a release, which decides how configuration values reach it: headers and query, the worker's URL, a prompt. */
export type ConfigKind = 'external' | 'hosted' | 'stdio';

/** A validated schema of the values each caller of a release sends. */
export interface ConfigSchema {
  type: 'object';
  properties: Record<string, unknown>;
  required?: string[];
  [member: string]: unknown;
}

/**
 * A header value that every HTTP server accepts: visible ASCII, with blanks and tabs inside. Decoded query values may hold
 * line breaks, which would inject headers.
 */
export const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;

/** The place of a value: a header (names in any case) or a query parameter. */
export interface ConfigPlace {
  place: 'header' | 'query';
  name: string;
}

/** One value of a configuration. */
export interface ConfigField {
  /** The names of the properties that lead to it; more than one when objects are nested. */
  path: string[];
  /** `json` for arrays, objects and mixed types. */
  type: 'string' | 'number' | 'integer' | 'boolean' | 'json';
  isRequired: boolean;
  /** The default as text; undefined when there is none of the right type. */
  fallback?: string;
  /** The allowed values as text; undefined for any. */
  allowed?: ReadonlySet<string>;
  from: ConfigPlace;
  to: ConfigPlace;
  /** The property as it was published, for title and description. */
  schema: Record<string, unknown>;
}

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean']);

/**
 * The fields of a schema, in its order. Objects with properties are flattened: `db.host` is a field of its own, required if
 * it and all objects around it are. Hosted modules read their configuration from the query of the
 * worker's URL under that dotted name, wherever the caller passed it.
 */
export function configFields(schema: ConfigSchema, kind: ConfigKind): ConfigField[] {
  const fields: ConfigField[] = [];
  collect(schema, [], true, kind, fields);
  return fields;
}

function collect(
  schema: Record<string, unknown>,
  path: string[],
  isAroundRequired: boolean,
  kind: ConfigKind,
  fields: ConfigField[],
): void {
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : [];
  for (const [name, value] of Object.entries(schema.properties as Record<string, unknown>)) {
    const inner = [...path, name];
    const isRequired = isAroundRequired && required.includes(name);
    const property = isObject(value) ? value : {};
    if (isObject(property.properties) && kind !== 'external') collect(property, inner, isRequired, kind, fields);
    else fields.push(toField(value as Record<string, unknown>, property, inner, isRequired, kind));
  }
}

function toField(
  schema: Record<string, unknown>,
  property: Record<string, unknown>,
  path: string[],
  isRequired: boolean,
  kind: ConfigKind,
): ConfigField {
  const type = typeOf(property);
  const from = placeOf(property['x-from']) ?? { place: 'query', name: path.join('.') };
  const to: ConfigPlace =
    kind === 'hosted' ? { place: 'query', name: path.join('.') } : (placeOf(property['x-to']) ?? from);
  const fallback = textOf(property.default, type);
  const allowed = Array.isArray(property.enum)
    ? new Set(property.enum.flatMap((one) => textOf(one, type) ?? []))
    : undefined;
  return { path, type, isRequired, fallback, allowed, from, to, schema };
}

/** A plain type, also as one of several beside `null`. Without a type it follows from `enum`, `const` or `default`. */
function typeOf({
  type,
  enum: values,
  const: constant,
  default: fallback,
}: Record<string, unknown>): ConfigField['type'] {
  const named = Array.isArray(type) ? type.filter((one) => one !== 'null') : [type];
  if (named.length === 1 && TYPES.has(named[0])) return named[0] as ConfigField['type'];
  if (type !== undefined) return 'json';
  const sample: unknown = Array.isArray(values) ? values[0] : (constant ?? fallback ?? '');
  return TYPES.has(typeof sample) ? (typeof sample as ConfigField['type']) : 'json';
}

/** A value as text; undefined when it is not of the type. */
function textOf(value: unknown, type: ConfigField['type']): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (type === 'json') return JSON.stringify(value);
  if (typeof value !== (type === 'integer' ? 'number' : type)) return undefined;
  if (type === 'integer' && !Number.isInteger(value)) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function placeOf(value: unknown): ConfigPlace | null {
  if (!isObject(value)) return null;
  if (typeof value.header === 'string') return { place: 'header', name: value.header };
  return typeof value.query === 'string' ? { place: 'query', name: value.query } : null;
}
