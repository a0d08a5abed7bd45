import type { IncomingMessage } from 'node:http';
import { mapConfig, type ConfigField, type MappedConfig, type ConfigPlace } from '../releases/config/config-fields.js';
import type { GivenValues, RunFormField } from '../releases/releases.types.js';
import { InputInvalidError, InputRequiredError } from './run.errors.js';

/** A configuration value of a server, as clients show it. */
export interface RunInput {
  label: string;
  description?: string;
  required: boolean;
}

/** The configuration values of a server, by where callers send them. */
export interface RunInputs {
  headers?: Record<string, RunInput>;
  query?: Record<string, RunInput>;
}

/** The configuration values to send to the upstream. */
export type RunValues = Pick<MappedConfig, 'headers' | 'query'>;

/**
 * The configuration values in a request. Whatever a schema says, the API key and cookies are not among them.
 *
 * @throws InputRequiredError, InputInvalidError
 */
export function valuesOf(
  config: readonly ConfigField[],
  { headers, url = '' }: Pick<IncomingMessage, 'headers' | 'url'>,
): RunValues {
  const mark = url.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark));
  const mapped = mapConfig(config, { headers: { ...headers, authorization: undefined, cookie: undefined }, query });
  return requireComplete(config, mapped);
}

function requireComplete(config: readonly ConfigField[], { headers, query, missing, faults }: MappedConfig): RunValues {
  if (missing.headers.length + missing.query.length > 0) {
    throw new InputRequiredError({ http: toRunInputs(config), missing });
  }
  if (faults.length > 0) {
    const text = faults.map(({ message }) => message).join(' ');
    throw new InputInvalidError(text, { http: toRunInputs(config), missing: namesOf(faults.map(({ from }) => from)) });
  }
  return { headers, query };
}

/**
 * The values to send for stored ones: configuration values as the schema maps them, and other headers unchanged, since
 * their owner stored them to be sent.
 *
 * @throws InputRequiredError, InputInvalidError
 */
export function valuesFor(config: readonly ConfigField[], { headers, query }: GivenValues): RunValues {
  const mapped = requireComplete(config, mapConfig(config, { headers, query: new URLSearchParams(query) }));
  const configured = new Set(config.flatMap(({ from, headerKey }) => (from.place === 'header' ? [headerKey] : [])));
  const others = Object.entries(headers).filter(([name]) => !configured.has(name));
  return { headers: { ...Object.fromEntries(others), ...mapped.headers }, query: mapped.query };
}

/** The configuration values in the form that published clients read. */
function toRunInputs(fields: readonly ConfigField[]): RunInputs {
  const inputs: RunInputs = {};
  for (const { from, path, schema, isRequired, fallback } of fields) {
    const { title, description } = schema as { title?: unknown; description?: unknown };
    const place = (inputs[from.place === 'header' ? 'headers' : 'query'] ??= {});
    place[from.name] = {
      label: typeof title === 'string' ? title : path.join('.'),
      ...(typeof description === 'string' ? { description } : {}),
      required: isRequired && fallback === undefined,
    };
  }
  return inputs;
}

function namesOf(places: readonly ConfigPlace[]): { headers: string[]; query: string[] } {
  const of = (place: ConfigPlace['place']) => places.filter((one) => one.place === place).map(({ name }) => name);
  return { headers: of('header'), query: of('query') };
}

/** Names of values that forms should not display. */
const SECRET_NAME = /key|token|secret|passw|pwd|credential|auth/i;

/** The form fields of a configuration, with the state of the stored values. */
export function toRunForm(config: readonly ConfigField[], { headers, query }: GivenValues): RunFormField[] {
  const given = new URLSearchParams(query);
  const { missing, faults } = mapConfig(config, { headers, query: given });
  return config.map(({ from, headerKey, path, schema, type, isRequired, fallback, allowed }) => {
    const isHeader = from.place === 'header';
    const { title, description, format, writeOnly } = schema;
    return {
      place: isHeader ? 'headers' : 'query',
      name: from.name,
      label: typeof title === 'string' ? title : path.join('.'),
      ...(typeof description === 'string' ? { description } : {}),
      isRequired: isRequired && fallback === undefined,
      isSecret: format === 'password' || writeOnly === true || SECRET_NAME.test(`${from.name} ${path.join('.')}`),
      allowed: allowed ? [...allowed] : type === 'boolean' ? ['true', 'false'] : null,
      isGiven: Boolean(isHeader ? headers[headerKey] : given.get(from.name)),
      isMissing: missing[isHeader ? 'headers' : 'query'].includes(from.name),
      fault: faults.find((fault) => fault.from === from)?.message ?? null,
    };
  });
}

/** `header "x-token" and query "region"`; empty without any. */
export function inputNames(fields: readonly ConfigField[]): string {
  return fields.map(({ from }) => `${from.place} "${from.name}"`).join(' and ');
}
