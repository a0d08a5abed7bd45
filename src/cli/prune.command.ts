import { stat } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { tuningOf } from '../config/tuning.js';
import { InvocationsRepository } from '../modules/logs/store/invocations.repository.js';
import { PartitionMaintenance } from '../modules/logs/store/partition-maintenance.js';
import { PartitionsRepository } from '../modules/logs/store/partitions.repository.js';
import { BlobSweeper } from '../modules/releases/blob-sweeper.js';
import { BlobsRepository, namedBlobs } from '../modules/releases/blobs.repository.js';
import { ReleasesRepository } from '../modules/releases/releases.repository.js';
import { blobStore } from '../platform/blobs/blobs.module.js';
import { Schedule } from '../platform/schedule/schedule.js';
import { UsageError } from './usage-error.js';
import { withDatabase } from './with-database.js';

/**
 * `slipway prune`: removes the days of the log, the releases and the files that the retention allows to go, as the service
 * does bit by bit; it may run meanwhile. `--older-than 7d`: in place of LOG_RETENTION_DAYS. `--dry-run`: only counts.
 *
 * @returns 1 when the log was not pruned, because a worker maintains it
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      'older-than': { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      tuning: { type: 'string' },
    },
  });
  const { 'older-than': olderThan, 'dry-run': isDry } = values;
  if (olderThan !== undefined && !/^[1-9]\d{0,4}d$/.test(olderThan)) {
    throw new UsageError('--older-than takes whole days, such as 7d');
  }
  const changes = olderThan === undefined ? {} : { logRetentionDays: parseInt(olderThan, 10) };
  return withDatabase({ migrate: 'off', ...changes }, async ({ env, source }) => {
    const schedule = new Schedule();
    const partitions = new PartitionsRepository(source);
    const logs = new PartitionMaintenance(schedule, partitions, new InvocationsRepository(source), env, source);
    const days = await logs.surplus(Date.now());
    const areLogsPruned = isDry || (await logs.dropOld());
    if (!areLogsPruned) process.stderr.write('A worker maintains the log: run slipway prune again in a minute.\n');

    const blobs = blobStore(env);
    const rows = new BlobsRepository(source);
    const sweeper = new BlobSweeper(source, rows, blobs, schedule);
    const runner = source.createQueryRunner();
    let releases = 0;
    let named: Set<string>;
    let garbage: string[];
    await runner.startTransaction();
    try {
      const tuning = tuningOf(args);
      const repository = new ReleasesRepository(source, tuning);
      let deleted: number;
      do {
        deleted = await repository.deleteOld(tuning.releaseKeep, env.releaseKeepDays, runner);
        releases += deleted;
      } while (deleted > 0);
      named = new Set(await namedBlobs(runner));
      garbage = await rows.findGarbage(null, runner);
      if (!isDry) await runner.commitTransaction();
    } finally {
      if (runner.isTransactionActive) await runner.rollbackTransaction();
      await runner.release();
    }
    const before = await sweeper.orphanedBefore();
    if (!isDry && before) await blobs.removeUnfinished(before);
    const unused = new Set(garbage);
    if (before) for await (const hash of blobs.list(before)) unused.add(hash);
    let [files, bytes] = [0, 0];
    for (const hash of unused) {
      if (named.has(hash)) continue;
      const size = await blobs
        .withFile(hash, async (file) => (await stat(file)).size)
        .catch(async (error: unknown) => {
          if (await blobs.has(hash)) throw error;
          return null; // the service removed it meanwhile
        });
      if (size === null || (!isDry && !(await sweeper.removeUnused(hash)))) continue;
      files += 1;
      bytes += size;
    }
    const dropped = areLogsPruned ? days : [];
    const megabytes = (count: number) => `${(count / 1024 ** 2).toFixed(1)} MB`;
    const logBytes = dropped.reduce((sum, day) => sum + day.bytes, 0);
    process.stdout.write(
      `${isDry ? 'Would remove' : 'Removed'}: ${dropped.length} days of logs (${megabytes(logBytes)}), ` +
        `${releases} releases, ${files} files (${megabytes(bytes)})\n`,
    );
    return areLogsPruned ? 0 : 1;
  });
}
