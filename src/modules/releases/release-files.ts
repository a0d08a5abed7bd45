import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
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
import { BUNDLE_LIMITS } from '../../hosting/bundle/unpack-bundle.js';
import { errorOf, UnavailableError } from '../../platform/errors/domain-error.js';
import type { Bundle } from './releases.repository.js';

export class FileLostError extends errorOf('internal', 'internal_error') {
  constructor(kind: ArtifactKind) {
    super(`The ${kind} of this release is no longer in storage: publish it again.`);
  }
}

@Injectable()
export class ReleaseFiles {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectRepository(ReleaseArtifact) private readonly releaseArtifactRepository: Repository<ReleaseArtifact>,
    private readonly blobsRepository: BlobsRepository,
    private readonly blobStore: BlobStore,
  ) {}

  /**
   * Sends a bundle. Finishes without an error if the client disconnects or stops reading.
   *
   * @param begin sets the headers; called once the file is open, so that errors are sent without them
   * @throws FileLostError before `begin`
   */
  async sendBundle({ releaseId }: Bundle, target: ServerResponse, begin: () => void): Promise<void> {
    const { hash } = await this.find(releaseId, 'bundle');
    const stream = await this.blobStore.open(hash);
    if (!stream) throw new FileLostError('bundle');
    begin();
    dropStalledReader(target);
    await pipeline(stream, target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    });
  }

  /** Calls `read` with the path of a local copy. @throws FileLostError */
  async withFile<T>(releaseId: string, kind: ArtifactKind, read: (path: string) => Promise<T>): Promise<T> {
    const { hash } = await this.find(releaseId, kind);
    if (!(await this.blobStore.has(hash))) throw new FileLostError(kind);
    return this.blobStore.withFile(hash, read);
  }

  /** @throws InvalidArchiveError, InvalidInputError, FileLostError */
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
   * Attaches files in the transaction that stores the release; the sweeper waits for its end.
   *
   * @throws UnavailableError if the sweeper is removing the same bytes, which an earlier release left unused
   */
  async attach(releaseId: string, files: Partial<Record<ArtifactKind, Blob>>, tx: EntityManager): Promise<void> {
    // Sorted, so that two forms with the same files cannot deadlock.
    const sorted = (Object.entries(files) as [ArtifactKind, Blob][]).sort(([, a], [, b]) => (a.hash < b.hash ? -1 : 1));
    for (const [kind, { hash, bytes }] of sorted) {
      await this.blobsRepository.lock(hash, tx);
      if (!(await this.blobStore.has(hash))) {
        throw new UnavailableError('An uploaded file was removed at the same moment: publish again.', 1);
      }
      await tx.insert(ReleaseArtifact, { releaseId, kind, hash, bytes });
    }
  }

  /** Runs `work`. If it rejects, the files that it stored are marked for removal. */
  async storing<T>(work: (keep: (content: Readable, bytesMax: number) => Promise<Blob>) => Promise<T>): Promise<T> {
    const hashes: string[] = [];
    try {
      return await work(async (content, bytesMax) => {
        const blob = await this.blobStore.put(content, bytesMax);
        hashes.push(blob.hash);
        return blob;
      });
    } catch (error) {
      if (hashes.length === 0) throw error;
      // The sweeper finds them within a day anyway.
      await this.blobsRepository.addGarbage(hashes).catch((failure: unknown) => {
        this.logger.warn({ msg: 'the files of a refused form are removed a day later', err: failure });
      });
      throw error;
    }
  }

  private async find(releaseId: string, kind: ArtifactKind): Promise<ReleaseArtifact> {
    const artifact = await this.releaseArtifactRepository.findOneBy({ releaseId, kind });
    if (!artifact) throw new FileLostError(kind);
    return artifact;
  }
}
