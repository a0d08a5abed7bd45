import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { valueRedactor } from '../../../platform/telemetry/redact-values.js';
import { quote } from '../../../platform/text/quoted.js';
import type { Vault } from '../../../platform/vault/vault.js';
import type { Release } from '../release.entity.js';
import { HEADER_VALUE } from '../../../platform/http/header-value.js';
import {
  configFields,
  textOf,
  type ConfigField,
  type ConfigPlace,
  type ConfigSchema,
} from '../config/config-fields.js';
import { HEADER_NAME, TRANSPORT } from '../config/config-schema.js';

export interface ScanTarget {
  url: URL;
  headers: Record<string, string>;
  secrets: string[];
  /** Added to the error of a server that rejects the credentials; empty for none. */
  note: string;
}

/**
 * Validates credentials of a scan. Errors never contain the values.
 *
 * @param kind `hosted` for a bundle that runs here: it receives every value in the query
 * @returns the credentials as strings: a number or boolean is accepted if the schema declares its type
 * @throws InvalidInputError
 */
export function requireScanCredentials(
  credentials: Record<string, unknown>,
  configSchema: ConfigSchema | null,
  kind: 'external' | 'hosted' = 'external',
): Record<string, string> {
  const fields = fieldsOf(configSchema, kind);
  const values: Record<string, string> = {};
  for (const [name, sent] of Object.entries(credentials)) {
    const label = HEADER_NAME.test(name) ? `scanCredentials.${name}` : `scanCredentials ${quote(name)}`;
    const type = fields.find(({ path }) => path.join('.') === name)?.type ?? 'string';
    const value = typeof sent === 'string' ? sent : textOf(sent, type);
    if (value === undefined) {
      const types = type === 'string' ? 'a string' : `a string or of the type ${type} of its schema`;
      throw new InvalidInputError(`${label} must be ${types}`);
    }
    values[name] = value;
    const { place, name: target } = placeOf(name, fields);
    if (kind === 'hosted' || place === 'query') continue;
    if (!HEADER_NAME.test(target) || TRANSPORT.test(target)) {
      throw new InvalidInputError(
        `${label} must be named like a property of the configSchema, or like a header that is not the protocol's own`,
      );
    }
    if (!HEADER_VALUE.test(value)) {
      throw new InvalidInputError(`${label} must be of visible ASCII characters: it is sent on in a header`);
    }
  }
  return values;
}

/**
 * Warns about credentials without a property in the schema, which the scan uses but callers cannot send, and about
 * those that the schema sends in the query by omission.
 */
export function credentialWarnings(credentials: Record<string, unknown>, configSchema: ConfigSchema | null): string[] {
  const names = fieldsOf(configSchema).map(({ path }) => path.join('.'));
  const scanOnly = Object.keys(credentials)
    .filter((name) => !names.includes(name))
    .map(
      (name) =>
        `scanCredentials ${quote(name)} is not a property of the configSchema: the scan uses it, but callers of the server ` +
        'have no way to send theirs. Add a property with x-from and x-to.',
    );
  const inQuery = sentInQuery(credentials, configSchema).map(
    (name) =>
      `scanCredentials ${quote(name)} is sent in the query, because its property has no x-to. ` +
      'If the server reads a header, add "x-to": {"header": "<name>"}.',
  );
  return [...scanOnly, ...inQuery];
}

/** Returns the credentials sent in the query: their properties do not name another location. */
function sentInQuery(credentials: Record<string, unknown>, configSchema: ConfigSchema | null): string[] {
  return fieldsOf(configSchema)
    .filter(({ to, schema }) => to.place === 'query' && schema['x-to'] === undefined)
    .map(({ path }) => path.join('.'))
    .filter((name) => Object.hasOwn(credentials, name));
}

/**
 * Returns the target of a scan with its credentials: a value with the name of a schema property is sent where that
 * property says, any other in a header.
 */
export function credentialTarget(
  upstream: URL,
  { id, sealedScanCredentials, configSchema }: Pick<Release, 'id' | 'sealedScanCredentials' | 'configSchema'>,
  vault: Vault,
): ScanTarget {
  const url = new URL(upstream);
  const headers: Record<string, string> = {};
  if (sealedScanCredentials === null) return { url, headers, secrets: [], note: '' };
  const credentials = JSON.parse(vault.open(sealedScanCredentials, id)) as Record<string, string>;
  const fields = fieldsOf(configSchema as ConfigSchema | null);
  for (const [name, value] of Object.entries(credentials)) {
    const to = placeOf(name, fields);
    if (to.place === 'query') url.searchParams.set(to.name, value);
    else headers[to.name.toLowerCase()] = value;
  }
  const inQuery = sentInQuery(credentials, configSchema as ConfigSchema | null).map((name) => quote(name));
  const note = `The scan sent ${inQuery.join(', ')} in the query, because its property in the configSchema has no x-to.`;
  return { url, headers, secrets: Object.values(credentials), note: inQuery.length === 0 ? '' : ` ${note}` };
}

/** Redacts credentials in a message of the upstream, in all usual encodings. */
export function redactCredentials(text: string, { secrets }: Pick<ScanTarget, 'secrets'>): string {
  return valueRedactor(secrets, '[credential]')(text);
}

function fieldsOf(configSchema: ConfigSchema | null, kind: 'external' | 'hosted' = 'external'): ConfigField[] {
  return configSchema === null ? [] : configFields(configSchema, kind);
}

function placeOf(name: string, fields: ConfigField[]): ConfigPlace {
  return fields.find(({ path }) => path.join('.') === name)?.to ?? { place: 'header', name };
}
