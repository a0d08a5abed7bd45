import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { BlobStore, type Blob } from '../../platform/blobs/blob-store.js';
import { openZip } from '../../platform/zip/zip-archive.js';
import { dropStalledReader } from '../../platform/http/stalled-reader.js';
import { BlobsRepository } from './blobs.repository.js';
import { readBundle, type BundleFacts } from './bundle/bundle-manifest.js';
import { ReleaseArtifact, type ArtifactKind } from './release.entity.js';
import { UnavailableError } from '../../platform/errors/domain-error.js';
import { FileLostError } from './releases.errors.js';
import type { Bundle } from './releases.repository.js';

const MB = 1024 * 1024;

/** A bundle of 25 MB with all its node_modules has some thousand files and unpacks to a few times its size. */
const BUNDLE_LIMITS = { entriesMax: 20_000, totalBytesMax: 500 * MB };

/** Reads and stores the uploaded files of releases. */
@Injectable()
export class ReleaseFiles {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectRepository(ReleaseArtifact) private readonly artifacts: Repository<ReleaseArtifact>,
    private readonly rows: BlobsRepository,
    private readonly blobs: BlobStore,
  ) {}

  /**
   * Writes a bundle to a response. Ends without an error when the client disconnects or stops reading.
   *
   * @param begin sets the headers; called once the file is open, so that errors go out without them
   * @throws FileLostError before `begin`
   */
  async sendBundle({ releaseId }: Bundle, target: ServerResponse, begin: () => void): Promise<void> {
    const { hash } = await this.find(releaseId, 'bundle');
    const stream = await this.blobs.open(hash);
    if (!stream) throw new FileLostError('bundle');
    begin();
    dropStalledReader(target);
    await pipeline(stream, target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    });
  }

  /** Runs `read` with the path of a local copy. @throws FileLostError */
  async withFile<T>(releaseId: string, kind: ArtifactKind, read: (path: string) => Promise<T>): Promise<T> {
    const { hash } = await this.find(releaseId, kind);
    if (!(await this.blobs.has(hash))) throw new FileLostError(kind);
    return this.blobs.withFile(hash, read);
  }

  /** Reads the manifest of a bundle. @throws InvalidArchiveError, InvalidBundleError, FileLostError */
  async readBundle(releaseId: string): Promise<BundleFacts> {
    return this.withFile(releaseId, 'bundle', async (path) => {
      const zip = await openZip(path, BUNDLE_LIMITS);
      try {
        return await readBundle(zip);
      } finally {
        zip.close();
      }
    });
  }

  /**
   * Stores which files a new release has, within the transaction that stores it. The sweeper waits for its end.
   *
   * @throws UnavailableError when the sweeper took the same bytes of another release for unused meanwhile
   */
  async attach(releaseId: string, files: Partial<Record<ArtifactKind, Blob>>, tx: EntityManager): Promise<void> {
    // Sorted, so that two forms with the same files cannot deadlock.
    const sorted = (Object.entries(files) as [ArtifactKind, Blob][]).sort(([, a], [, b]) => (a.hash < b.hash ? -1 : 1));
    for (const [kind, { hash, bytes }] of sorted) {
      await this.rows.lock(hash, tx);
      if (!(await this.blobs.has(hash))) {
        throw new UnavailableError('An uploaded file was removed at the same moment: publish again.', 1);
      }
      await tx.insert(ReleaseArtifact, { releaseId, kind, hash, bytes });
    }
  }

  /** Marks the files of a refused form for removal. Never rejects: the sweeper finds them a day later anyway. */
  async discard(hashes: string[]): Promise<void> {
    if (hashes.length === 0) return;
    await this.rows.addGarbage(hashes).catch((error: unknown) => {
      this.logger.warn({ msg: 'the files of a refused form are removed a day later', err: error });
    });
  }

  private async find(releaseId: string, kind: ArtifactKind): Promise<ReleaseArtifact> {
    const artifact = await this.artifacts.findOneBy({ releaseId, kind });
    if (!artifact) throw new FileLostError(kind);
    return artifact;
  }
}
