/**
 * The configuration values of a server's callers: from `configSchema` to fields, and from a request to the values for
 * the upstream.
 *
 * `x-from` names the header or query parameter in which a caller sends a value, `x-to` the one that the upstream
 * receives; without them it is a query parameter of the property's name. Nothing else of the request is passed on, and
 * an empty value counts as not sent. Hosted modules receive their values in the query of the worker's URL.
 *
 * Types and allowed values are checked here. Other keywords need the whole schema, which is compiled in a thread
 * (`config-values.job.ts`); namespaces take turns. Error messages name the field, never the value, which might be
 * secret.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { HEADER_VALUE } from '../../../platform/http/header-value.js';
import { isObject } from '../../../platform/text/json.js';
import { quote } from '../../../platform/text/quoted.js';
import { jsonIn } from '../../../platform/text/json-bounds.js';
import { tenantThread, ThreadJobEndedError } from '../../../platform/threads/fair-thread.js';
import type { job as valuesJob } from './config-values.job.js';

interface CallerConfig {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
}

export interface MappedConfig {
  headers: Record<string, string>;
  query: [name: string, value: string][];
  /** Required values that are not sent and have no default. */
  missing: { headers: string[]; query: string[] };
  faults: ConfigFault[];
}

/** The message never contains the value, which might be secret. */
interface ConfigFault {
  /** Null if it concerns several values together. */
  from: ConfigPlace | null;
  message: string;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * The kind of a release, which decides how it receives configuration values: headers and query, the worker's URL, a
 * prompt.
 */
export type ConfigKind = 'external' | 'hosted' | 'stdio';

export interface ConfigSchema {
  type: 'object';
  properties: Record<string, unknown>;
  required?: string[];
  [member: string]: unknown;
}

export interface ConfigPlace {
  place: 'header' | 'query';
  name: string;
}

export interface ConfigField {
  /** Names from the root to the value; only nested objects have more than one. */
  path: string[];
  /** `json` for arrays, objects and mixed types. */
  type: 'string' | 'number' | 'integer' | 'boolean' | 'json';
  isRequired: boolean;
  /** The default as a string; undefined without one of the right type. */
  fallback?: string;
  /** The allowed values as strings; undefined for any. */
  allowed?: ReadonlySet<string>;
  from: ConfigPlace;
  headerKey: string;
  to: ConfigPlace;
  /** The property as it was published, for title and description. */
  schema: Record<string, unknown>;
  /** The whole schema, for keywords that concern several values. */
  root: ConfigSchema;
}

/** Keywords of plain fields; others need the validator of the complete schema. */
const PLAIN = new Set([
  ...['type', 'properties', 'required', 'enum', 'default', 'title', 'description', 'examples', 'x-from', 'x-to'],
  ...['$schema', '$id', '$comment', 'deprecated', 'readOnly', 'writeOnly', 'additionalProperties'],
]);

/** Null if no keyword needs the validator of the whole schema. */
const schemaJson = new WeakMap<ConfigSchema, string | null>();

function isPlain(schema: Record<string, unknown>): boolean {
  const properties = isObject(schema.properties) ? Object.values(schema.properties) : [];
  return (
    Object.keys(schema).every((key) => PLAIN.has(key)) &&
    properties.every((property) => isObject(property) && isPlain(property))
  );
}

const VALUES = 'modules/releases/config/config-values.job.js';

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean']);

export function configFields(schema: ConfigSchema, kind: ConfigKind): ConfigField[] {
  return fieldsBelow(schema, { path: [], isAroundRequired: true, kind, root: schema });
}

/** Lists the paths in the order of the schema. Kinds differ in which properties are values. */
export function configOrder(schema: Record<string, unknown>): string[] {
  const kinds = ['hosted', 'external'] as const;
  const fields = kinds.flatMap((kind) => configFields({ properties: {}, ...schema, type: 'object' }, kind));
  return [...new Set(fields.map(({ path }) => path.join('.')))];
}

interface Around {
  path: string[];
  isAroundRequired: boolean;
  kind: ConfigKind;
  root: ConfigSchema;
}

function fieldsBelow(schema: Record<string, unknown>, { path, isAroundRequired, kind, root }: Around): ConfigField[] {
  const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries((schema.properties ?? {}) as Record<string, unknown>).flatMap(([name, value]) => {
    const inner = [...path, name];
    const isRequired = isAroundRequired && required.has(name);
    const property = isObject(value) ? value : {};
    if (isObject(property.properties) && kind !== 'external') {
      return fieldsBelow(property, { path: inner, isAroundRequired: isRequired, kind, root });
    }
    const type = typeOf(property);
    const byName: ConfigPlace = { place: 'query', name: inner.join('.') };
    const from = placeOf(property['x-from']) ?? byName;
    const allowed = Array.isArray(property.enum)
      ? new Set(property.enum.flatMap((option) => textOf(option, type) ?? []))
      : undefined;
    return [
      {
        ...{ path: inner, type, isRequired, allowed, from, root },
        fallback: textOf(property.default, type),
        headerKey: from.name.toLowerCase(),
        to: kind === 'hosted' ? byName : (placeOf(property['x-to']) ?? from),
        schema: value as Record<string, unknown>,
      },
    ];
  });
}

/** Returns the type of a field, even if combined with `null`. A missing type follows from `enum`, `const` or `default`. */
function typeOf({
  type,
  enum: values,
  const: constant,
  default: fallback,
}: Record<string, unknown>): ConfigField['type'] {
  const typeNames = Array.isArray(type) ? type.filter((typeName) => typeName !== 'null') : [type];
  if (typeNames.length === 1 && TYPES.has(typeNames[0])) return typeNames[0] as ConfigField['type'];
  if (type !== undefined) return 'json';
  const sample: unknown = Array.isArray(values) ? values[0] : (constant ?? fallback ?? '');
  return TYPES.has(typeof sample) ? (typeof sample as ConfigField['type']) : 'json';
}

export function textOf(value: unknown, type: ConfigField['type']): string | undefined {
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

/**
 * Maps configuration values. Use the result only if `missing` and `faults` are empty.
 *
 * @param namespaceId of the server; its schema is compiled in the turn of that namespace
 * @returns a promise only for a schema with more than types and allowed values
 */
export function mapConfig(
  fields: readonly ConfigField[],
  caller: CallerConfig,
  namespaceId: string,
): MappedConfig | Promise<MappedConfig> {
  const mapped: MappedConfig = { headers: {}, query: [], missing: { headers: [], query: [] }, faults: [] };
  const values: [ConfigField, string][] = [];
  for (const field of fields) {
    const { from, to } = field;
    const text = from.place === 'query' ? caller.query.get(from.name) : caller.headers[field.headerKey];
    const sent = (Array.isArray(text) ? text.join(', ') : text) || undefined;
    const value = sent ?? field.fallback;
    if (value === undefined) {
      if (field.isRequired) mapped.missing[from.place === 'header' ? 'headers' : 'query'].push(from.name);
      continue;
    }
    values.push([field, value]);
    const fault = sent === undefined ? null : faultOf(field, sent);
    const refuse = (must: string) =>
      mapped.faults.push({ from, message: `The ${from.place} "${from.name}" must be ${must}` });
    if (fault !== null) refuse(`${fault}.`);
    else if (to.place === 'query') mapped.query.push([to.name, value]);
    else if (HEADER_VALUE.test(value)) mapped.headers[to.name] = value;
    else refuse('of visible ASCII characters: it is sent on in a header.');
  }
  const { missing, faults } = mapped;
  const root = fields[0]?.root;
  if (!root || missing.headers.length + missing.query.length + faults.length > 0) return mapped;
  let schema = schemaJson.get(root);
  if (schema === undefined) schemaJson.set(root, (schema = isPlain(root) ? null : JSON.stringify(root)));
  if (schema === null) return mapped;
  return faultsTogether(schema, fields, values, namespaceId).then((together) => ({ ...mapped, faults: together }));
}

/** Checks lengths, ranges, patterns, formats and conditions, which need the complete schema. */
async function faultsTogether(
  schema: string,
  fields: readonly ConfigField[],
  values: [ConfigField, string][],
  namespaceId: string,
): Promise<ConfigFault[]> {
  const plain = values.map(([{ path, type }, text]) => ({ path, type, text }));
  const job = tenantThread.run<typeof valuesJob>(namespaceId, VALUES, { schema, values: plain });
  const schemaFaults = await job.catch((error: unknown) => {
    if (error instanceof ThreadJobEndedError) return null;
    throw error;
  });
  if (!schemaFaults) return [{ from: null, message: 'The values take too long to check against the configSchema.' }];
  return schemaFaults.map(({ path, message }) => {
    const from = fields.find((field) => field.path.every((name, i) => name === path[i]))?.from ?? null;
    const name = path.length > 0 ? `The value ${quote(path.join('.'))}` : 'The configuration';
    return { from, message: `${from ? `The ${from.place} ${quote(from.name)}` : name} ${message}.` };
  });
}

/** Returns the violated requirement, as the end of a message; null for a valid value. */
function faultOf({ type, allowed }: ConfigField, value: string): string | null {
  if (type === 'boolean' && value !== 'true' && value !== 'false') return 'true or false';
  if (type === 'number' && !isNumber(value)) return 'a number';
  if (type === 'integer' && !(isNumber(value) && Number.isInteger(Number(value)))) return 'a whole number';
  if (type === 'json' && jsonIn(value) === undefined) return 'JSON';
  return allowed && !allowed.has(value) ? 'one of the values its schema lists' : null;
}

function isNumber(value: string): boolean {
  return NUMBER.test(value) && Number.isFinite(Number(value));
}
