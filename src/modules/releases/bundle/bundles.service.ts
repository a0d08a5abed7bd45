import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { dropStalledReader } from '../../../platform/http/stalled-reader.js';
import type { ServerRef } from '../../servers/server.types.js';
import { ReleaseFiles } from '../release-files.js';
import { BundleNotFoundError } from '../releases.errors.js';
import { ReleasesRepository, type Bundle } from '../releases.repository.js';

/** Downloads of bundles. */
@Injectable()
export class BundlesService {
  constructor(
    private readonly releases: ReleasesRepository,
    private readonly files: ReleaseFiles,
  ) {}

  /** The bundle of the current release, or of the latest successful one that has one. @throws BundleNotFoundError */
  async find({ id }: ServerRef): Promise<Bundle> {
    const bundle = await this.releases.findBundle(id);
    if (!bundle) throw new BundleNotFoundError();
    return bundle;
  }

  /**
   * Writes a bundle to a response. Ends without an error when the client disconnects or stops reading.
   *
   * @param begin sets the headers; called once the file is open, so that errors go out without them
   * @throws FileLostError before `begin`
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
