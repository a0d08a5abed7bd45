import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { errorOf } from '../errors/domain-error.js';
import { Metrics } from '../telemetry/metrics.js';

/** Free space below which `/ready` calls the storage full: the largest form of a publish. */
const NEEDED_BYTES = 40 * 1024 * 1024;

/**
 * True when a disk has room for records of the log beside what Postgres needs to go on: 200 MB, or 3 % of it up to 2 GB. It
 * ends when it cannot write its own log.
 */
export function hasLogRoom({ bavail, blocks, bsize }: Pick<StatsFs, 'bavail' | 'blocks' | 'bsize'>): boolean {
  return bavail * bsize >= Math.max(200e6, Math.min(blocks * bsize * 0.03, 2e9));
}

/** The disk of the data folder, or of the database, is full. */
export class StorageFullError extends errorOf('storage_full') {
  constructor(detail?: unknown) {
    super('This service has no space left to store this: its operator must free some. Nothing was stored.', detail);
  }
}

/** True when the file system refused a write for lack of space, or of quota. */
export function isStorageFull(error: unknown): boolean {
  const { code = '' } = (error ?? {}) as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Free space of the data folder. */
@Injectable()
export class StorageSpace {
  constructor(
    private readonly env: Env,
    metrics: Metrics,
  ) {
    metrics.gauge('slipway_storage_free_bytes', 'Free space of the data folder.', () => this.freeBytes(), 'min');
  }

  /** True when the largest upload finds no space. Never rejects. */
  async isFull(): Promise<boolean> {
    return (await this.freeBytes()) < NEEDED_BYTES;
  }

  /** @throws StorageFullError when the disk of the embedded Postgres has no room for the log */
  async requireLogRoom(): Promise<void> {
    const { embeddedFolder } = this.env;
    if (embeddedFolder !== null && !hasLogRoom(await statfs(embeddedFolder))) throw new StorageFullError();
  }

  /** Infinity before the folder exists. */
  private async freeBytes(): Promise<number> {
    return statfs(this.env.dataDir).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => Infinity,
    );
  }
}
