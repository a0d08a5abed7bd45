import type { IncomingMessage } from 'node:http';
import { mapConfig, type ConfigField, type ConfigPlace, type MappedConfig } from '../releases/config/config-fields.js';
import type { RunFormField, StoredValues } from '../releases/releases.types.js';
import { InputInvalidError, InputRequiredError, type RequiredInputs } from './run.errors.js';

export type RunValues = Pick<MappedConfig, 'headers' | 'query'>;

/**
 * Reads the values of a request, except the API key and cookies, whatever the schema declares.
 *
 * @param namespaceId of the server
 * @throws InputRequiredError, InputInvalidError
 */
export async function valuesOf(
  config: readonly ConfigField[],
  { headers, url = '' }: Pick<IncomingMessage, 'headers' | 'url'>,
  namespaceId: string,
): Promise<RunValues> {
  const mark = url.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark));
  const caller = { headers: { ...headers, authorization: undefined, cookie: undefined }, query };
  return requireComplete(config, await mapConfig(config, caller, namespaceId));
}

function requireComplete(config: readonly ConfigField[], { headers, query, missing, faults }: MappedConfig): RunValues {
  if (missing.headers.length + missing.query.length > 0) {
    throw new InputRequiredError({ http: toRunInputs(config), missing });
  }
  if (faults.length > 0) {
    const text = faults.map(({ message }) => message).join(' ');
    const places = faults.flatMap(({ from }) => from ?? []);
    const names = (place: ConfigPlace['place']) =>
      places.filter((from) => from.place === place).map(({ name }) => name);
    const invalid = { headers: names('header'), query: names('query') };
    throw new InputInvalidError(text, { http: toRunInputs(config), missing: invalid });
  }
  return { headers, query };
}

/**
 * Returns the values to send: configuration values as the schema maps them, other headers unchanged, since their owner stored them to be
 * sent.
 *
 * @throws InputRequiredError, InputInvalidError
 */
export async function valuesFor(
  config: readonly ConfigField[],
  { headers, query }: StoredValues,
  namespaceId: string,
): Promise<RunValues> {
  const stored = { headers, query: new URLSearchParams(query) };
  const mapped = requireComplete(config, await mapConfig(config, stored, namespaceId));
  const configured = new Set(config.flatMap(({ from, headerKey }) => (from.place === 'header' ? [headerKey] : [])));
  const otherHeaders = Object.entries(headers).filter(([name]) => !configured.has(name));
  return { headers: { ...Object.fromEntries(otherHeaders), ...mapped.headers }, query: mapped.query };
}

/** Returns inputs in the form that published clients read. */
function toRunInputs(fields: readonly ConfigField[]): RequiredInputs['http'] {
  const inputs: RequiredInputs['http'] = {};
  for (const { place, name, isRequired: required, ...rest } of fields.map(toField)) {
    (inputs[place] ??= {})[name] = { ...rest, required };
  }
  return inputs;
}

function toField({ from, path, schema, isRequired, fallback }: ConfigField) {
  const { title, description } = schema;
  return {
    place: from.place === 'header' ? ('headers' as const) : ('query' as const),
    name: from.name,
    label: typeof title === 'string' ? title : path.join('.'),
    ...(typeof description === 'string' && { description }),
    isRequired: isRequired && fallback === undefined,
  };
}

/** Length above which a string gets a multi-line control in forms. */
const LINE_CHARS_MAX = 200;

const FORMATS = new Map(Object.entries({ date: 'date', email: 'email', uri: 'url' } as const));

const SECRET_NAME = /key|token|secret|passw|pwd|credential|auth/i;

/** The beginning of an error message, left out next to the field of a form. */
const NAMED = /^The (?:header|query) "(?:[^"\\]|\\.)*" /;

/** Returns a form whose fields show the state of their stored values. */
export async function toRunForm(
  config: readonly ConfigField[],
  { headers, query }: StoredValues,
  namespaceId: string,
): Promise<RunFormField[]> {
  const stored = new URLSearchParams(query);
  const { missing, faults } = await mapConfig(config, { headers, query: stored }, namespaceId);
  return config.map((field) => {
    const { from, headerKey, path, schema, type, allowed, fallback } = field;
    const formField = toField(field);
    const isSecret =
      schema.format === 'password' || schema.writeOnly === true || SECRET_NAME.test(`${from.name} ${path.join('.')}`);
    return {
      ...formField,
      isSecret,
      ...controlOf(field),
      ...(!isSecret && { fallback }),
      allowed: allowed ? [...allowed] : type === 'boolean' ? ['true', 'false'] : null,
      isStored: Boolean(from.place === 'header' ? headers[headerKey] : stored.get(from.name)),
      isMissing: missing[formField.place].includes(from.name),
      fault: faults.find((fault) => fault.from === from)?.message.replace(NAMED, 'It ') ?? null,
    };
  });
}

/** Returns the control of a field; the server checks what HTML cannot express. */
function controlOf({ type, schema, fallback = '' }: ConfigField): Pick<RunFormField, 'control' | 'limits'> {
  const limit = (attribute: string, ...keywords: string[]) => {
    const value = keywords.map((keyword) => schema[keyword]).find((candidate) => typeof candidate === 'number');
    return value === undefined ? {} : { [attribute]: value };
  };
  if (type === 'number' || type === 'integer') {
    const limits = { ...limit('min', 'minimum', 'exclusiveMinimum'), ...limit('max', 'maximum', 'exclusiveMaximum') };
    return { control: type, limits };
  }
  const limits = { ...limit('minlength', 'minLength'), ...limit('maxlength', 'maxLength') };
  const isLong = type === 'json' || Number(schema.maxLength) > LINE_CHARS_MAX || fallback.length > LINE_CHARS_MAX;
  return { control: isLong ? 'lines' : (FORMATS.get(String(schema.format)) ?? 'line'), limits };
}

/** Returns names such as `header "x-token" and query "region"`; empty without any. */
export function inputNames(fields: readonly ConfigField[]): string {
  return fields.map(({ from }) => `${from.place} "${from.name}"`).join(' and ');
}
