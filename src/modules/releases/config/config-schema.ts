import { RESERVED_HEADERS } from '../../../config/published-clients.js';
import { HEADER_VALUE } from '../../../platform/http/header-value.js';
import { storableFault } from '../../../platform/database/storable.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { DATA_KEYWORDS, isLinearPattern, patternsOf, schemasIn } from '../../../platform/json-schema/patterns.js';
import { quote, visible } from '../../../platform/text/quoted.js';
import { isKnownFormat, schemaValidator } from '../../../platform/json-schema/schema-check.js';
import { isObject } from '../../../platform/text/json.js';
import { configFields, type ConfigField, type ConfigKind, type ConfigSchema } from './config-fields.js';

/** The documented limits of the format. Published clients exceed them, so this only causes a warning. */
const PROPERTIES_DOCUMENTED = 20;
const BYTES_DOCUMENTED = 1024;

/** Hard limit: a caller's configuration must fit into headers or a URL. */
const BYTES_MAX = 64 * 1024;

/** Headers of the request itself; a caller's value in one of them would break or redirect it. */
export const TRANSPORT =
  /^(?:host|connection|keep-alive|content-.*|transfer-encoding|te|trailer|upgrade|expect|accept(?:-encoding)?|proxy-.*|mcp-(?!server).*|last-event-id|x-request-id|__proto__)$/i;

export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;

// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const QUERY_NAME = /^[^\u0000-\u0020\u007f]{1,128}$/;

/**
 * Validates the config schema of a publish payload: an object of strings, numbers and booleans, each with `x-from`
 * (where callers send it) and `x-to` (where the upstream receives it), both `{header}` or `{query}`. Hosted modules and
 * bundles can have nested objects and lists, as their build tools write them.
 *
 * @returns the schema with its unknown members, and warnings for the publisher
 * @throws InvalidInputError naming the invalid part
 */
export function requireConfigSchema(value: unknown, kind: ConfigKind): { schema: ConfigSchema; warnings: string[] } {
  if (!isObject(value)) throw new InvalidInputError('configSchema must be an object');
  const fault = storableFault(value);
  if (fault !== null) throw new InvalidInputError(`configSchema ${fault}`);
  const { type = 'object', properties = {} } = value;
  if (type !== 'object') throw new InvalidInputError('configSchema.type must be "object"');
  if (!isObject(properties)) throw new InvalidInputError('configSchema.properties must be an object');
  const schema: ConfigSchema = { ...value, type, properties };
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > BYTES_MAX) throw new InvalidInputError(`configSchema must be at most ${BYTES_MAX / 1024} KB`);
  const fields = configFields(schema, kind);
  const warnings: string[] = [];
  const promise = (max: number) => `clients are promised at most ${max}, and some may refuse more.`;
  if (fields.length > PROPERTIES_DOCUMENTED) {
    warnings.push(`configSchema has ${fields.length} properties; ${promise(PROPERTIES_DOCUMENTED)}`);
  }
  if (bytes > BYTES_DOCUMENTED) warnings.push(`configSchema has ${bytes} bytes; ${promise(BYTES_DOCUMENTED)}`);
  for (const field of fields) requireField(field, kind, warnings);
  requireRequired(schema);
  // Values are matched in linear time: RE2 syntax only, with limited number and size of patterns.
  for (const { pattern, place, refusal } of patternsOf(schema)) {
    if (refusal !== null) {
      throw new InvalidInputError(`configSchema.${place} must be a pattern of RE2, without ${refusal}`);
    }
    if (isLinearPattern(pattern)) continue;
    throw new InvalidInputError(`configSchema.${place} must be a regular expression: ${quote(pattern)}`);
  }
  if (kind !== 'stdio') requireDistinctTargets(fields);
  requireEnforceable(schema, warnings);
  return { schema, warnings };
}

function requireField(field: ConfigField, kind: ConfigKind, warnings: string[]): void {
  const names = field.path.map((name) => (/^[\w-]{1,64}$/.test(name) ? name : quote(name)));
  const path = `configSchema.properties.${names.join('.')}`;
  if (!isObject(field.schema)) throw new InvalidInputError(`${path} must be an object`);
  if (field.type === 'json' && kind === 'external') {
    throw new InvalidInputError(
      `${path}.type must be "string", "number", "integer" or "boolean": callers pass each value in a header or the query`,
    );
  }
  if (field.type === 'json' && kind === 'hosted') {
    warnings.push(`${path} is not a string, number or boolean: callers must pass it as JSON.`);
  }
  if (field.schema.default !== undefined && field.fallback === undefined) {
    if (kind === 'external') throw new InvalidInputError(`${path}.default must be of type ${field.type}`);
    warnings.push(`${path}.default is not of type ${field.type}: it is not used.`);
  }
  if (field.to.place === 'header' && field.fallback !== undefined && !HEADER_VALUE.test(field.fallback)) {
    throw new InvalidInputError(`${path}.default must be of visible ASCII characters: it is sent on in a header`);
  }
  for (const member of ['x-from', 'x-to'] as const) {
    const place = field.schema[member];
    if (place === undefined || place === null) continue;
    const hasOneName = isObject(place) && Object.keys(place).length === 1;
    if (hasOneName && (typeof place.header === 'string' || typeof place.query === 'string')) continue;
    throw new InvalidInputError(`${path}.${member} must be {"header": "<name>"} or {"query": "<name>"}`);
  }
  // The defaults use the property's own name, which must be valid there as well.
  if (kind !== 'stdio') {
    requireName(field.from.place, field.from.name, `${path}.x-from`);
    requireName(field.to.place, field.to.name, `${path}.x-to`);
  }
  if (field.from.place === 'header' && RESERVED_HEADERS.pattern.test(field.from.name)) {
    throw new InvalidInputError(
      `${path}.x-from.header must not be ${quote(field.from.name)}: ${RESERVED_HEADERS.list} are reserved`,
    );
  }
}

function requireName(place: 'header' | 'query', name: string, path: string): void {
  if (place === 'query') {
    if (QUERY_NAME.test(name)) return;
    throw new InvalidInputError(`${path} must name a query parameter of 1 to 128 visible characters: ${quote(name)}`);
  }
  if (!HEADER_NAME.test(name)) throw new InvalidInputError(`${path}.header must be a header name: ${quote(name)}`);
  if (TRANSPORT.test(name)) {
    throw new InvalidInputError(`${path}.header must not be ${quote(name)}: it belongs to the HTTP exchange or to MCP`);
  }
}

/** Rejects parts of the schema that no check covers: values are checked against the whole schema. */
function requireEnforceable(schema: ConfigSchema, warnings: string[]): void {
  const validator = schemaValidator(schema);
  if (typeof validator === 'string') {
    throw new InvalidInputError(`configSchema cannot be enforced: ${visible(validator, 300)}`);
  }
  // Members such as `x-from` are annotations.
  const isData = (keyword: string) => DATA_KEYWORDS.has(keyword) || keyword.startsWith('x-');
  for (const [{ format, pattern }, place] of schemasIn(schema, isData)) {
    if (typeof format !== 'string' || isKnownFormat(format)) continue;
    const at = place === '' ? 'configSchema' : `configSchema.${place}`;
    const fault = `${at}.format ${quote(format)} has no check`;
    if (pattern === undefined) throw new InvalidInputError(`${fault}: leave it out, or say it with pattern`);
    warnings.push(`${fault}: its pattern is enforced.`);
  }
}

/** Rejects a required name without a property, which would make every call fail. */
function requireRequired({ required, properties }: ConfigSchema): void {
  if (required === undefined) return;
  if (!Array.isArray(required)) throw new InvalidInputError('configSchema.required must be an array');
  required.forEach((name, at) => {
    if (typeof name === 'string' && Object.hasOwn(properties, name)) return;
    throw new InvalidInputError(`configSchema.required.${at} must be the name of a property`);
  });
}

function requireDistinctTargets(fields: ConfigField[]): void {
  const pathByTarget = new Map<string, string>();
  for (const { to, path } of fields) {
    const target = to.place === 'header' ? `header ${to.name.toLowerCase()}` : `query ${to.name}`;
    const other = pathByTarget.get(target);
    if (other !== undefined) {
      throw new InvalidInputError(
        `configSchema.properties ${quote(other)} and ${quote(path.join('.'))} both go to ${to.place} ${quote(to.name)}: ` +
          'give one of them another x-to',
      );
    }
    pathByTarget.set(target, path.join('.'));
  }
}
