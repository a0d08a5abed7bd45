import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { LAST_BACKUP } from '../config/env.js';
import { CLIENT_INFO } from '../mcp/protocol/protocol.js';
import { namedBlobs } from '../modules/releases/blobs.repository.js';
import { blobStore } from '../platform/blobs/blobs.module.js';
import { isStorageFull, StorageFullError } from '../platform/blobs/storage-space.js';
import { DatabaseSnapshot } from '../platform/database/database-copy.js';
import { filesBelow, streamIfThere } from '../platform/files/files.js';
import { keyUses } from '../platform/vault/sealed-values.repository.js';
import { KEYS, NewBackup } from './backup-folder.js';
import { copyBlobs } from './copy-blobs.js';
import { UsageError } from './usage-error.js';
import { withDatabase } from './with-database.js';

const LOG_TABLES = /^(invocation|log_batches|account_log_days|deleted_invocation_owners)/;

/**
 * `slipway backup FOLDER`: writes the database as it is now, the files that it names and the session data of hosted code to a
 * new folder, with checksums; `--with-keys`: also the encryption keys; `--without-logs`: not the runtime logs. The service may
 * run meanwhile. A backup that fails leaves an empty folder.
 *
 * @returns 1 if files of releases are lost, which the backup then lacks
 * @throws Error when the folder has content, or the disk has no room for it
 */
export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { 'with-keys': { type: 'boolean', default: false }, 'without-logs': { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1) throw new UsageError('name one folder, which it makes');
  const backup = await NewBackup.make(folder);
  const completion = withDatabase({ migrate: 'off' }, async ({ env }) => {
    const { dataDir, databaseUrl, encryptionKeys } = env;
    const snapshot = await DatabaseSnapshot.open(databaseUrl ?? '');
    const read = async () => {
      const { tables, ...rest } = await snapshot.outline();
      const outline = {
        ...rest,
        tables: tables.filter(({ name }) => !values['without-logs'] || !LOG_TABLES.test(name)),
      };
      for (const table of outline.tables) await backup.writeTable(table, snapshot.read(table));
      return { outline, hashes: await namedBlobs(snapshot), uses: await keyUses(snapshot) };
    };
    // Closes the connection before files are copied, since migrations wait for it.
    const { outline, hashes, uses } = await read().finally(() => snapshot.close());
    const lostBlobs = await copyBlobs(hashes, blobStore(env), backup.blobs);
    for await (const file of filesBelow(path.join(dataDir, 'hosting'))) {
      const content = await streamIfThere(file);
      if (content) await backup.write(path.relative(dataDir, file), content);
    }
    if (values['with-keys']) {
      const keys = (encryptionKeys ?? []).map(({ id, secret }) => `${id}:${secret.toString('base64')}`);
      await backup.write(KEYS, [`${keys.join()}\n`]);
    }
    const [keyIds, samples] = [uses.map(({ keyId }) => keyId), uses.map(({ sample }) => sample)];
    const copied = hashes.filter((hash) => !lostBlobs.includes(hash));
    await backup.finish({ version: CLIENT_INFO.version, keyIds, samples, lostBlobs, ...outline }, copied);
    if (env.embeddedFolder !== null) {
      await writeFile(path.join(dataDir, LAST_BACKUP), `${new Date().toISOString()}\n`);
    }
    const rows = outline.tables.reduce((sum, table) => sum + table.rows, 0);
    process.stdout.write(`Backed up to ${folder}: ${rows} rows, ${copied.length} files of releases.\n`);
    const place = env.storesKeysWithData ? path.join(dataDir, KEYS) : 'ENCRYPTION_KEYS';
    const needed = `A restore also needs the keys ${keyIds.join(', ')} of ${place}: store a copy of them elsewhere.\n`;
    if (!values['with-keys'] && keyIds.length > 0) process.stdout.write(needed);
    if (lostBlobs.length === 0) return 0;
    process.stderr.write(`${lostBlobs.length} files of releases are lost: publish these releases again.\n`);
    return 1;
  });
  return completion.catch(async (error: unknown) => {
    await backup.empty();
    if (!isStorageFull(error) && !(error instanceof StorageFullError)) throw error;
    throw new Error(
      `There is no room for the backup in ${folder}: name a folder on a larger disk. Nothing was kept there.`,
    );
  });
}
