import type { IncomingHttpHeaders } from 'node:http';
import {
  configFields,
  HEADER_VALUE,
  type ConfigField,
  type ConfigKind,
  type ConfigPlace,
  type ConfigSchema,
} from './config-fields.js';

/** A schema made ready for {@link mapConfig}; made once for a release, used for every call. */
export interface CompiledConfig {
  fields: ReadonlyArray<ConfigField & { headerKey: string }>;
}

/** What a caller of a run endpoint sent. */
export interface CallerConfig {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
}

/** What goes on to the upstream, and what kept it from going. */
export interface MappedConfig {
  headers: Record<string, string>;
  query: [name: string, value: string][];
  /** The names, as callers must pass them, of required values that are neither sent nor have a default. */
  missing: { headers: string[]; query: string[] };
  /** Values of the wrong type. */
  faults: ConfigFault[];
}

/** A value that cannot go on. The sentence never repeats it: it may be a secret. */
export interface ConfigFault {
  from: ConfigPlace;
  message: string;
}

/** Needs a schema that passed `requireConfigSchema` for the same kind. */
export function compileConfig(schema: ConfigSchema, kind: ConfigKind): CompiledConfig {
  return {
    fields: configFields(schema, kind).map((field) => ({ ...field, headerKey: field.from.name.toLowerCase() })),
  };
}

/**
 * Takes the values of a schema from where callers pass them (`x-from`) to where they go (`x-to`), and nothing else of the
 * request. An empty value counts as not sent. Only use the result when `missing` and `faults` are empty.
 */
export function mapConfig({ fields }: CompiledConfig, caller: CallerConfig): MappedConfig {
  const mapped: MappedConfig = { headers: {}, query: [], missing: { headers: [], query: [] }, faults: [] };
  for (const field of fields) {
    const sent = sentValue(field, caller);
    const value = sent ?? field.fallback;
    if (value === undefined) {
      if (field.isRequired) mapped.missing[field.from.place === 'header' ? 'headers' : 'query'].push(field.from.name);
      continue;
    }
    const { from, to } = field;
    const fault = sent === undefined ? null : faultOf(field, sent);
    const refuse = (must: string) =>
      mapped.faults.push({ from, message: `The ${from.place} "${from.name}" must be ${must}` });
    if (fault !== null) refuse(`${fault}.`);
    else if (to.place === 'query') mapped.query.push([to.name, value]);
    else if (HEADER_VALUE.test(value)) mapped.headers[to.name] = value;
    else refuse('of visible ASCII characters: it goes on in a header.');
  }
  return mapped;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function sentValue({ from, headerKey }: CompiledConfig['fields'][number], caller: CallerConfig): string | undefined {
  if (from.place === 'query') return caller.query.get(from.name) || undefined;
  const value = caller.headers[headerKey];
  return (Array.isArray(value) ? value.join(', ') : value) || undefined;
}

/** What the value must be, as the end of a sentence; null when it is. */
function faultOf({ type, allowed }: ConfigField, value: string): string | null {
  if (type === 'boolean' && value !== 'true' && value !== 'false') return 'true or false';
  if (type === 'number' && !isNumber(value)) return 'a number';
  if (type === 'integer' && !(isNumber(value) && Number.isInteger(Number(value)))) return 'a whole number';
  if (type === 'json' && !isJson(value)) return 'JSON';
  return allowed && !allowed.has(value) ? 'one of the values its schema lists' : null;
}

function isNumber(value: string): boolean {
  return NUMBER.test(value) && Number.isFinite(Number(value));
}

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}
