import { randomBytes, randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../embedded/make-folder.js';
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
  const content = (await readIfThere(file)) ?? (mayCreate ? await create(file) : null);
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

/** The file appears complete or not at all; of two processes at the same instant one wins, and both read its key. */
async function create(file: string): Promise<string> {
  const draft = `${file}.${randomUUID()}`;
  try {
    const content = `k1:${randomBytes(32).toString('base64')}\n`;
    await writeFile(draft, content, { mode: 0o600, flush: true }).catch((error: Error) => {
      throw unusable(path.dirname(file), error);
    });
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, 'utf8');
}

async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
