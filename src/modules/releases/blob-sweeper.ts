import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { BlobStore } from '../../platform/blobs/blob-store.js';
import { isDatabaseAway } from '../../platform/database/database-outage.js';
import { ReleaseArtifact } from './release-artifact.entity.js';

/** How soon the files of a deleted server are gone. */
const GARBAGE_EVERY_MS = 5_000;
const GARBAGE_BATCH = 100;

/** Uploads that were refused, or whose process died, leave files that no row ever named. */
const ORPHANS_EVERY_MS = 60 * 60_000;
const ORPHAN_AGE_MS = 24 * 60 * 60_000;

/** Keeps a file from being removed while a release names it, until the transaction ends. */
export async function lockBlob(hash: string, tx: EntityManager): Promise<void> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('blob ' || $1, 0))`, [hash]);
}

/** Removes files that no release names any more. A trigger on the artifacts' table notes what may have become garbage. */
@Injectable()
export class BlobSweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('blobs');
  private readonly timers: NodeJS.Timeout[] = [];
  private sweeping: Promise<void> = Promise.resolve();

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly blobs: BlobStore,
  ) {}

  onApplicationBootstrap(): void {
    const every = (ms: number, sweep: () => Promise<void>) => {
      const run = () => (this.sweeping = this.sweeping.then(() => this.attempt(sweep)));
      this.timers.push(setInterval(() => void run(), ms).unref());
    };
    every(GARBAGE_EVERY_MS, () => this.removeGarbage());
    every(ORPHANS_EVERY_MS, () => this.removeOrphans());
  }

  async onApplicationShutdown(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    await this.sweeping;
  }

  private async attempt(sweep: () => Promise<void>): Promise<void> {
    try {
      await sweep();
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'files were not swept', err: error });
    }
  }

  private async removeGarbage(): Promise<void> {
    const rows = await this.database.query<{ hash: string }[]>(`SELECT hash FROM blob_garbage LIMIT ${GARBAGE_BATCH}`);
    for (const { hash } of rows) {
      await this.removeUnused(hash);
      await this.database.query('DELETE FROM blob_garbage WHERE hash = $1', [hash]);
    }
  }

  private async removeOrphans(): Promise<void> {
    for await (const hash of this.blobs.list(ORPHAN_AGE_MS)) await this.removeUnused(hash);
  }

  private async removeUnused(hash: string): Promise<void> {
    await this.database.transaction(async (tx) => {
      await lockBlob(hash, tx);
      if (!(await tx.existsBy(ReleaseArtifact, { hash }))) await this.blobs.delete(hash);
    });
  }
}
