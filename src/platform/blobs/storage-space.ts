import type { StatsFs } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { Env, LAST_BACKUP } from '../../config/env.js';
import { errorOf } from '../errors/domain-error.js';
import { Metrics, type Sample } from '../telemetry/metrics.js';

/** Free space below which `/ready` calls the storage full: the largest form of a publish. */
const NEEDED_BYTES = 40 * 1024 * 1024;

/**
 * Returns true when a disk has room for log records in addition to what Postgres needs: 200 MB, or 3 % of the disk up to 2 GB.
 * Postgres exits when it cannot write its own log.
 */
export function hasLogRoom({ bavail, blocks, bsize }: Pick<StatsFs, 'bavail' | 'blocks' | 'bsize'>): boolean {
  return bavail * bsize >= Math.max(200e6, Math.min(blocks * bsize * 0.03, 2e9));
}

export class StorageFullError extends errorOf('storage_full') {
  constructor(detail?: unknown) {
    super('This service has no space left to store this: its operator must free some. Nothing was stored.', detail);
  }
}

/** Returns true when the file system rejected a write for lack of space, or of quota. */
export function isStorageFull(error: unknown): boolean {
  const { code = '' } = (error ?? {}) as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

@Injectable()
export class StorageSpace {
  constructor(
    private readonly env: Env,
    metrics: Metrics,
  ) {
    metrics.gauge('slipway_storage_free_bytes', 'Free space of the data folder.', () => this.freeBytes(), 'min');
    metrics.gauge(
      'slipway_last_backup_timestamp_seconds',
      'Unix time of the last backup.',
      () => this.backups(),
      'max',
    );
  }

  /** Resolves to true if the largest upload finds no space. The promise never rejects. */
  async isFull(): Promise<boolean> {
    return (await this.freeBytes()) < NEEDED_BYTES;
  }

  /** @throws StorageFullError when the disk of the embedded Postgres has no room for the log */
  async requireLogRoom(): Promise<void> {
    const { embeddedFolder } = this.env;
    if (embeddedFolder !== null && !hasLogRoom(await statfs(embeddedFolder))) throw new StorageFullError();
  }

  /**
   * Returns the time of the last backup of the embedded database, 0 without one; nothing if another database has its own backups.
   */
  private async backups(): Promise<Sample[]> {
    const { embeddedFolder, dataDir } = this.env;
    if (embeddedFolder === null) return [];
    const written = await stat(path.join(dataDir, LAST_BACKUP)).catch(() => null);
    return [{ labels: {}, value: Math.floor((written?.mtimeMs ?? 0) / 1000) }];
  }

  /** Returns the free bytes; infinity before the directory exists. */
  private async freeBytes(): Promise<number> {
    return statfs(this.env.dataDir).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => Infinity,
    );
  }
}
