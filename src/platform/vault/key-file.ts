import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadEnv, type EncryptionKey } from '../../config/env.js';

/**
 * The vault's keys when the database is embedded: read from `<dataDir>/encryption-keys`, made there (mode 0600) on
 * the first start. Losing the file loses every stored header and token, so it lies beside the data it seals.
 */
export async function keysFromFile(dataDir: string): Promise<EncryptionKey[]> {
  const file = path.join(dataDir, 'encryption-keys');
  await mkdir(dataDir, { recursive: true });
  try {
    await writeFile(file, `k1:${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return loadEnv({ ENCRYPTION_KEYS: (await readFile(file, 'utf8')).trim() }).encryptionKeys ?? [];
}
