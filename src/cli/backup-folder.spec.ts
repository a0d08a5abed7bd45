import { createHash } from 'node:crypto';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadDatabase } from '../platform/database/database-copy.js';
import { Backup, NewBackup } from './backup-folder.js';

let root: string;
let folder: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'slipway-backup-'));
  folder = path.join(root, 'backup');
});
afterEach(() => rm(root, { recursive: true }));

/** Writes a backup with a stored file and a file of a session. */
async function writeBackup(): Promise<void> {
  const backup = await NewBackup.make(folder);
  await backup.write('hosting/state/owner/sessions/1', ['session']);
  const { hash } = await backup.blobs.put(Readable.from(['content']), 100);
  const outline = { migrations: [], tables: [], sequences: {} };
  await backup.finish({ version: '0.0.0', keyIds: [], lostBlobs: [], ...outline }, [hash]);
}

describe('the folder of a backup', () => {
  it('is readable by its account alone', async () => {
    await writeBackup();
    const entries = await readdir(folder, { recursive: true });
    expect(entries.length).toBeGreaterThan(8);
    for (const entry of ['', ...entries]) {
      const found = await stat(path.join(folder, entry));
      expect([entry, found.mode & 0o777]).toEqual([entry, found.isDirectory() ? 0o700 : 0o600]);
    }
  });

  it('is empty again after a backup that failed', async () => {
    await mkdir(folder);
    const backup = await NewBackup.make(folder);
    await backup.write('tables/servers', ['rows']);
    await backup.blobs.put(Readable.from(['content']), 100);
    await backup.empty();
    expect(await readdir(folder)).toEqual([]);
    await NewBackup.make(folder);
  });

  it('gives a data folder the files of sessions that its checksums list, and no others', async () => {
    await writeBackup();
    await writeFile(path.join(folder, 'hosting/state/owner/sessions/2'), 'planted');
    await (await Backup.open(folder)).copySessions(path.join(root, 'data'));
    const sessions = path.join(root, 'data/hosting/state/owner/sessions');
    expect(await readdir(sessions)).toEqual(['1']);
    expect(await readFile(path.join(sessions, '1'), 'utf8')).toBe('session');
  });

  it.each(['hosting/../planted', 'hosting/../../planted', '../planted'])(
    'is refused when its checksums list %s',
    async (file) => {
      await writeBackup();
      await writeFile(path.resolve(folder, file), 'planted');
      const sums = path.join(folder, 'SHA256SUMS');
      const lines = (await readFile(sums, 'utf8')).split('\n');
      const hash = createHash('sha256').update('planted').digest('hex');
      await writeFile(sums, `${hash}  ${file}\n`);
      await appendFile(sums, lines.join('\n'));
      await expect(Backup.open(folder)).rejects.toThrow(
        `SHA256SUMS lists ${file}, which is not a path inside the backup`,
      );
    },
  );
});

describe('loadDatabase', () => {
  it.each([
    `FOR VALUES FROM ('2026-11-24') TO ('2026-11-25'); DROP TABLE accounts`,
    `FOR VALUES FROM (pg_sleep(1)) TO ('2026-11-25')`,
    'DEFAULT',
  ])('refuses the partition bound %s before it connects', async (bound) => {
    const partition = { of: 'invocations', bound };
    const tables = [{ name: 'invocations_20261124', columns: ['day'], rows: 0, partition }];
    const outline = { migrations: [], tables, sequences: {} };
    const load = loadDatabase(
      'postgres://127.0.0.1:1/none',
      outline,
      [],
      () => Readable.from([]),
      () => Promise.resolve(),
    );
    await expect(load).rejects.toThrow(`invocations_20261124 has the bound ${bound}, which is not that of a day`);
  });
});
