import type { Vault } from '../../platform/vault/vault.js';
import type { Release } from './release.entity.js';
import { configFields, type ConfigSchema } from './config-fields.js';

/** Where the scan connects, and with what. */
export interface ScanTarget {
  url: URL;
  headers: Record<string, string>;
}

/**
 * The upstream of a release with its scan credentials in place: a value named like a property of the config schema goes
 * where that property goes, any other is a header.
 */
export function credentialTarget(
  upstream: URL,
  { id, sealedScanCredentials, configSchema }: Pick<Release, 'id' | 'sealedScanCredentials' | 'configSchema'>,
  vault: Vault,
): ScanTarget {
  const url = new URL(upstream);
  const headers: Record<string, string> = {};
  if (sealedScanCredentials === null) return { url, headers };
  const credentials = JSON.parse(vault.open(sealedScanCredentials, id)) as Record<string, string>;
  const fields = configSchema === null ? [] : configFields(configSchema as ConfigSchema, 'external');
  for (const [name, value] of Object.entries(credentials)) {
    const field = fields.find(({ path }) => path.join('.') === name);
    if (field?.to.place === 'query') url.searchParams.set(field.to.name, value);
    else headers[(field?.to.name ?? name).toLowerCase()] = value;
  }
  return { url, headers };
}
