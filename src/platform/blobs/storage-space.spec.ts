import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { type Env, LAST_BACKUP } from '../../config/env.js';
import { verifies } from '../../../test/support/verifies.js';
import { Metrics } from '../telemetry/metrics.js';
import { hasLogRoom, StorageSpace } from './storage-space.js';

const dataDir = mkdtempSync(path.join(tmpdir(), 'slipway-space-'));
afterAll(() => rmSync(dataDir, { recursive: true }));

/** Lines of the metric of the last backup, where the database is in this folder. */
async function shown(embeddedFolder: string | null): Promise<string[]> {
  const metrics = new Metrics({ metricsToken: 'open' });
  new StorageSpace({ dataDir, embeddedFolder } as Env, metrics);
  return ((await metrics.text()) ?? '').match(/^slipway_last_backup.*/gm) ?? [];
}

describe('the time of the last backup', () => {
  it('is 0 until there is one of the embedded database', async () => {
    expect(await shown(dataDir)).toEqual(['slipway_last_backup_timestamp_seconds 0']);
    const file = path.join(dataDir, LAST_BACKUP);
    writeFileSync(file, '');
    utimesSync(file, 1_700_000_000.5, 1_700_000_000.5);
    expect(await shown(dataDir)).toEqual(['slipway_last_backup_timestamp_seconds 1700000000']);
  });

  it('is not shown for a database that has backups of its own', async () => {
    expect(await shown(null)).toEqual([]);
  });
});

verifies('log-ingestion:full-disk', 'keeps 200 MB for Postgres, or 3 % of the disk up to 2 GB', () => {
  const room = (freeMb: number, diskGb: number) =>
    hasLogRoom({ bavail: freeMb * 1_000, blocks: diskGb * 1_000_000, bsize: 1_000 });
  expect([room(199, 1), room(200, 1)]).toEqual([false, true]);
  expect([room(1_499, 50), room(1_500, 50)]).toEqual([false, true]);
  expect([room(1_999, 1_000), room(2_000, 1_000)]).toEqual([false, true]);
});
