import path from 'node:path';
import { loadEnv } from '../config/env.js';
import { namedBlobs } from '../modules/releases/blobs.repository.js';
import { blobStore } from '../platform/blobs/blobs.module.js';
import { requireSurroundings } from '../platform/checks/surroundings.js';
import { DiskBlobStore } from '../platform/blobs/disk-blob-store.js';
import { DatabaseSnapshot, loadDatabase } from '../platform/database/database-copy.js';
import { pendingMigrations } from '../platform/database/migrations.js';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.js';
import { holdsDatabase, noteMove } from '../platform/embedded/server-account.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { requireKeys } from '../platform/vault/sealed-values.repository.js';
import { Vault } from '../platform/vault/vault.js';
import { copyBlobs } from './copy-blobs.js';

/**
 * `slipway move`: copies the embedded database of DATA_DIR to DATABASE_URL, which is empty, and files of releases to
 * BLOB_URL if that is set. The originals stay in place, with a mark: a start without DATABASE_URL is then refused.
 * Session data of hosted code stays in DATA_DIR, which remains in use.
 *
 * @throws Error while the service runs, or when the new database has content; StartError when ENCRYPTION_KEYS do not
 * open what is stored
 */
export async function run(): Promise<number> {
  const env = loadEnv();
  const { databaseUrl, blobUrl, dataDir, encryptionKeys } = env;
  if (databaseUrl === null) throw new Error('Set DATABASE_URL to the new database, and BLOB_URL to move files too.');
  if (!holdsDatabase(dataDir)) throw new Error(`There is no embedded database in ${dataDir}: check DATA_DIR.`);
  await requireSurroundings(env, ['postgres']);
  const external = await loadExternalModules(env);
  const embedded = await startEmbeddedPostgres({ dataDir, log: () => undefined });
  try {
    if (embedded.shared) throw new Error('The service is running: stop it first.');
    if ((await pendingMigrations(embedded.url, external)).length > 0) {
      throw new Error('The embedded database is older than this version: run `npm run migrate` without DATABASE_URL.');
    }
    const snapshot = await DatabaseSnapshot.open(embedded.url);
    try {
      await requireKeys(snapshot, new Vault(encryptionKeys ?? []));
      const outline = await snapshot.outline();
      const hashes = blobUrl ? await namedBlobs(snapshot) : [];
      let lost: string[] = [];
      const files = async () => {
        lost = await copyBlobs(hashes, new DiskBlobStore(path.join(dataDir, 'blobs')), blobStore(env));
      };
      await loadDatabase(databaseUrl, outline, external, (table) => snapshot.read(table), files);
      await noteMove(dataDir, databaseUrl);
      for (const { name, rows } of outline.tables) process.stdout.write(`${name}  ${rows}\n`);
      process.stdout.write(`Moved, with the same number of rows in each table`);
      process.stdout.write(blobUrl ? ` and ${hashes.length - lost.length} files of releases.\n` : '.\n');
    } finally {
      await snapshot.close();
    }
  } finally {
    await embedded.stop();
  }
  return 0;
}
