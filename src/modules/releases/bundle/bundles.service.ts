import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { dropStalledReader } from '../../../platform/http/stalled-reader.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ReleaseFiles } from '../release-files.js';
import { BundleNotFoundError } from '../releases.errors.js';

/** A bundle that can be downloaded. */
export interface Bundle {
  releaseId: string;
  hash: string;
  bytes: number;
  publishedAt: Date;
}

/** Bundles as people download them. */
@Injectable()
export class BundlesService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly files: ReleaseFiles,
  ) {}

  /** The bundle of the current release, or of the latest successful one that has one. @throws BundleNotFoundError */
  async find({ id }: ServerRef): Promise<Bundle> {
    const [bundle] = await this.database.query<Bundle[]>(
      `SELECT r.id AS "releaseId", a.hash, a.bytes, r.updated_at AS "publishedAt"
         FROM releases r
         JOIN release_artifacts a ON a.release_id = r.id AND a.kind = 'bundle'
         JOIN servers s ON s.id = r.server_id
        WHERE r.server_id = $1 AND r.status = 'SUCCESS'
        ORDER BY r.id = s.current_release_id DESC NULLS LAST, r.seq DESC
        LIMIT 1`,
      [id],
    );
    if (!bundle) throw new BundleNotFoundError();
    return bundle;
  }

  /**
   * Writes the bundle's bytes; ends quietly when the reader leaves, or stops reading.
   *
   * @param begin called when it is sure that there are bytes: an error is not described as a bundle
   * @throws FileLostError before that
   */
  async send({ releaseId }: Bundle, target: ServerResponse, begin: () => void): Promise<void> {
    const { stream } = await this.files.open(releaseId, 'bundle');
    begin();
    dropStalledReader(target);
    await pipeline(stream, target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    });
  }
}
