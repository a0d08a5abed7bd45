import { copyFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { loadEnv } from '../config/env.js';
import { startDatabase } from '../infrastructure.js';
import { blobStore } from '../platform/blobs/blobs.module.js';
import { requireSurroundings } from '../platform/checks/surroundings.js';
import { loadDatabase } from '../platform/database/database-copy.js';
import { SchemaVersionError } from '../platform/database/migrations.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { makeFolder, namesIn, PASSABLE } from '../platform/files/files.js';
import { Backup, KEYS } from './backup-folder.js';
import { copyBlobs } from './copy-blobs.js';
import { UsageError } from './usage-error.js';
import { removeDataDirectory } from '../platform/embedded/server-files.js';
import { keysFromFile, Vault } from '../platform/vault/vault.js';

/**
 * `slipway restore FOLDER`: loads a backup into an empty database and an empty data folder. A backup of an earlier
 * version is migrated by the next start.
 *
 * @throws Error when the backup is damaged or newer, a key is missing, or the database or the data folder has content
 */
export async function run([folder, ...extraArgs]: string[]): Promise<number> {
  if (folder === undefined || extraArgs.length > 0) throw new UsageError('name the folder of a backup');
  const settings = loadEnv();
  const { dataDir } = settings;
  const backup = await Backup.open(folder);
  const { manifest } = backup;
  const names = await namesIn(dataDir);
  const content = names.filter((name) => ['pg', 'pg-location', 'blobs', 'hosting'].includes(name));
  if (content.length > 0) {
    throw new Error(`${dataDir} is not empty, it has ${content.join(', ')}: set DATA_DIR to a new folder.`);
  }
  await requireSurroundings(settings, ['postgres']);
  const ownKeys = names.includes(KEYS) ? dataDir : backup.has(KEYS) ? folder : null;
  const keys = settings.encryptionKeys ?? (ownKeys === null ? [] : await keysFromFile(ownKeys, false));
  if (keys.length === 0 && manifest.keyIds.length > 0) {
    throw new Error(
      `The backup holds no keys: put the file ${KEYS} that belongs to it into ${dataDir}, or set ENCRYPTION_KEYS.`,
    );
  }
  const missing = manifest.keyIds.filter((keyId) => !keys.some(({ id }) => id === keyId));
  if (missing.length > 0) throw new Error(`ENCRYPTION_KEYS lacks ${missing.join(', ')}, which the backup needs.`);
  if (!(manifest.samples ?? []).every((sample) => new Vault(keys).unwraps(sample))) {
    throw new Error(
      `The keys do not open what the backup holds: a key of the same name is another one. Use those of its service.`,
    );
  }
  const modules = await loadExternalModules(settings);
  // The embedded database needs its keys in the data folder.
  const copiesKeys = !settings.encryptionKeys && ownKeys === folder;
  if (copiesKeys) {
    await makeFolder(dataDir, PASSABLE);
    await copyFile(backup.pathOf(KEYS), path.join(dataDir, KEYS));
  }
  const { env, stop } = await startDatabase(settings);
  let isRestored = false;
  try {
    const files = async () => {
      await copyBlobs(backup.blobHashes, backup.blobs, blobStore(env));
      await backup.copySessions(env.dataDir);
    };
    await loadDatabase(env.databaseUrl ?? '', manifest, modules, (table) => backup.readTable(table), files);
    isRestored = true;
  } catch (error) {
    if (!(error instanceof SchemaVersionError)) throw error;
    throw new Error(`manifest.json is of another version, Slipway ${manifest.version}: ${error.message}`, {
      cause: error,
    });
  } finally {
    await stop();
    if (!isRestored) {
      if (env.embeddedFolder !== null) await removeDataDirectory(dataDir, env.embeddedFolder);
      if (copiesKeys) await rm(path.join(dataDir, KEYS), { force: true });
    }
  }
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  process.stdout.write(`Restored ${rows} rows and ${backup.blobHashes.length} files of releases; start the service.\n`);
  return 0;
}
