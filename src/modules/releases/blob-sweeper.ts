import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { BlobStore } from '../../platform/blobs/blob-store.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { BlobsRepository } from './blobs.repository.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

/** Time until the files of a deleted server are removed. */
const GARBAGE_EVERY_MS = 5_000;
const GARBAGE_BATCH = 100;

/** Interval of removing files that no row names, which rejected uploads and killed processes leave. */
const ORPHANS_EVERY_MS = 60 * 60_000;
const ORPHAN_AGE_MS = 24 * 60 * 60_000;

@Injectable()
export class BlobSweeper implements OnApplicationBootstrap {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly blobsRepository: BlobsRepository,
    private readonly blobStore: BlobStore,
    private readonly schedule: Schedule,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('removal of unused files', GARBAGE_EVERY_MS, () => this.removeGarbage());
    this.schedule.every('removal of orphaned files', ORPHANS_EVERY_MS, () => this.removeOrphans());
  }

  private async removeGarbage(): Promise<void> {
    for (const hash of await this.blobsRepository.findGarbage(GARBAGE_BATCH)) {
      await this.removeUnused(hash);
      await this.blobsRepository.removeGarbage(hash);
    }
  }

  private async removeOrphans(): Promise<void> {
    const now = await deletionTime(this.database);
    if (!now) return;
    const before = new Date(now.getTime() - ORPHAN_AGE_MS);
    await this.blobStore.removeUnfinished(before);
    for await (const hash of this.blobStore.list(before)) await this.removeUnused(hash);
  }

  private async removeUnused(hash: string): Promise<void> {
    await this.database.transaction(async (tx) => {
      await this.blobsRepository.lock(hash, tx);
      if (!(await this.blobsRepository.isNamed(hash, tx))) await this.blobStore.delete(hash);
    });
  }
}
