import type { IncomingHttpHeaders } from 'node:http';
import {
  configFields,
  HEADER_VALUE,
  type ConfigField,
  type ConfigKind,
  type ConfigPlace,
  type ConfigSchema,
} from './config-fields.js';
import { parseBounded } from '../../../platform/text/json-bounds.js';

/** A schema compiled for {@link mapConfig}, once for a release. */
export interface CompiledConfig {
  fields: ReadonlyArray<ConfigField & { headerKey: string }>;
}

/** Headers and query of a request to a run endpoint. */
export interface CallerConfig {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
}

/** The values for the upstream, and the faults that prevent the call. */
export interface MappedConfig {
  headers: Record<string, string>;
  query: [name: string, value: string][];
  /** Names of required values that were not sent and have no default. */
  missing: { headers: string[]; query: string[] };
  /** Values of the wrong type. */
  faults: ConfigFault[];
}

/** A fault of a value. The message never repeats the value: it may be a secret. */
export interface ConfigFault {
  from: ConfigPlace;
  message: string;
}

/** Compiles a schema that passed `requireConfigSchema` for the same kind. */
export function compileConfig(schema: ConfigSchema, kind: ConfigKind): CompiledConfig {
  return {
    fields: configFields(schema, kind).map((field) => ({ ...field, headerKey: field.from.name.toLowerCase() })),
  };
}

/**
 * Maps the values of a schema from the place in the request (`x-from`) to the place for the upstream (`x-to`). Nothing else
 * is passed on. An empty value counts as not sent. Use the result only if `missing` and `faults` are empty.
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

/** The requirement that a value fails, as the end of a sentence; null without one. */
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
    parseBounded(value);
    return true;
  } catch {
    return false;
  }
}
