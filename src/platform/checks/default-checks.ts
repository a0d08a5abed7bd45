/** All are warnings: the settings are safe on a developer's machine but not if others can reach the service. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { LAST_BACKUP, LOOPBACK_HOST, type Env } from '../../config/env.js';
import { holdsDatabase } from '../embedded/server-account.js';
import { faultsOf, type Check } from './check.js';
import type { examineFolders } from './folder-checks.js';

interface DefaultFacts {
  env: Env;
  /** True if others can reach the service: by a `PUBLIC_URL` elsewhere, or on all addresses with an external database. */
  isProduction: boolean;
  /** True if `DATA_DIR` has the embedded database. */
  isEmbedded: boolean;
  hasBackup: boolean;
}

function row(asks: string, isUnsafe: (facts: DefaultFacts) => boolean, fault: string, remedy: string) {
  const find = (facts: DefaultFacts) => (isUnsafe(facts) ? { baseUrl: facts.env.baseUrl } : null);
  return { asks, isFatal: false, find, fault, remedy };
}

export const defaultChecks: Check<DefaultFacts>[] = [
  row(
    'an address for users',
    ({ env }) => env.publicUrl === null && env.listensEverywhere,
    'PUBLIC_URL is not set: links begin with {baseUrl}, which only this machine reaches',
    'set it to the address by which people reach the service',
  ),
  row(
    'https',
    ({ env, isProduction }) => isProduction && env.publicUrl?.startsWith('http:') === true,
    'PUBLIC_URL is not https, and keys and passwords travel unencrypted',
    'put a proxy with TLS in front of the service, and set PUBLIC_URL to its https address',
  ),
  row(
    'the proxy',
    ({ env, isProduction }) => isProduction && env.trustProxy === null && env.publicUrl?.startsWith('https:') === true,
    'TRUST_PROXY is not set, and limits and logs see the address of the TLS proxy instead of that of each client',
    'set TRUST_PROXY to the addresses of the proxy',
  ),
  row(
    'the visibility of new servers',
    ({ env, isProduction }) => isProduction && env.defaultVisibility === 'public',
    'New servers are public, and every account can call them',
    'set DEFAULT_VISIBILITY to `restricted` or `private`',
  ),
  row(
    'the first key',
    ({ env, isProduction, isEmbedded }) =>
      isProduction && env.bootstrapApiKey !== null && (isEmbedded || env.databaseUrl !== null),
    "BOOTSTRAP_API_KEY is set, and every process holds an operator's key",
    'unset BOOTSTRAP_API_KEY after the first start',
  ),
  row(
    'the encryption keys',
    ({ env, isProduction }) => isProduction && env.encryptionKeys === null,
    'The encryption keys are in DATA_DIR, and a copy of that folder opens all stored secrets',
    'move them into ENCRYPTION_KEYS',
  ),
  row(
    'a backup',
    ({ isProduction, isEmbedded, hasBackup }) => isProduction && isEmbedded && !hasBackup,
    'The embedded database has no backup',
    'create one with `npm run slipway -- backup FOLDER`, and repeat it daily',
  ),
];

export function examineDefaults(env: Env): ReturnType<typeof examineFolders> {
  const isLocalUrl = LOOPBACK_HOST.test(new URL(env.baseUrl).hostname);
  const isProduction = !isLocalUrl || (env.listensEverywhere && env.databaseUrl !== null);
  const isEmbedded = env.databaseUrl === null && holdsDatabase(env.dataDir);
  const hasBackup = existsSync(path.join(env.dataDir, LAST_BACKUP));
  const faults = faultsOf(defaultChecks, { env, isProduction, isEmbedded, hasBackup });
  return Promise.resolve({
    found: isProduction ? 'safe for production' : 'only this machine uses the service',
    faults,
  });
}
