import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { makeFolder } from '../files/files.js';
import { createOnce, readIfThere } from '../files/files.js';
import { loadEnv, SettingsError, type EncryptionKey } from '../../config/env.js';

/**
 * The vault's keys when the database is embedded: read from `<dataDir>/encryption-keys`, made there (mode 0600) on
 * the first start. Losing the file loses every stored header and token, so it lies beside the data it seals.
 *
 * @param mayCreate false when there is a database already: a new key would open nothing in it
 * @throws SettingsError when the file does not hold keys, or is gone
 */
export async function keysFromFile(dataDir: string, mayCreate: boolean): Promise<EncryptionKey[]> {
  const file = path.join(dataDir, 'encryption-keys');
  await makeFolder(dataDir).catch((error: Error) => {
    throw unusable(dataDir, error);
  });
  const content = (await readIfThere(file)) ?? (mayCreate ? await create(dataDir, file) : null);
  if (content === null) {
    throw new SettingsError(`${file} is gone: restore it or set ENCRYPTION_KEYS, since it opens the stored headers.`);
  }
  try {
    const { encryptionKeys } = loadEnv({ ENCRYPTION_KEYS: content });
    if (encryptionKeys) return encryptionKeys;
  } catch {
    // The sentence below says it better: nobody has set ENCRYPTION_KEYS.
  }
  throw new SettingsError(
    `${file} does not hold encryption keys (id:base64): restore it, since it opens the stored headers.`,
  );
}

function unusable(dataDir: string, { message }: Error): SettingsError {
  return new SettingsError(
    `The database cannot be kept in ${dataDir} (${message}): ` +
      'make the folder writable, choose another one, or set DATABASE_URL.',
  );
}

function create(dataDir: string, file: string): Promise<string> {
  return createOnce(file, `k1:${randomBytes(32).toString('base64')}\n`, 0o600).catch((error: Error) => {
    throw unusable(dataDir, error);
  });
}
