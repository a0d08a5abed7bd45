import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { BlobStore, type Blob, type OpenBlob } from '../../platform/blobs/blob-store.js';
import { openZip } from '../../platform/zip/zip-archive.js';
import { lockBlob } from './blob-sweeper.js';
import { readBundle, type BundleFacts } from './bundle/bundle-manifest.js';
import { ReleaseArtifact, type ArtifactKind } from './release-artifact.entity.js';
import { FileLostError, UploadLostError } from './releases.errors.js';

const MB = 1024 * 1024;

/** A bundle of 25 MB with all its node_modules has some thousand files and unpacks to a few times its size. */
const BUNDLE_LIMITS = { entriesMax: 20_000, totalBytesMax: 500 * MB };

/** The uploaded files of releases. */
@Injectable()
export class ReleaseFiles {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectRepository(ReleaseArtifact) private readonly artifacts: Repository<ReleaseArtifact>,
    private readonly blobs: BlobStore,
  ) {}

  /** @throws FileLostError */
  async open(releaseId: string, kind: ArtifactKind): Promise<OpenBlob & { hash: string }> {
    const { hash } = await this.find(releaseId, kind);
    const blob = await this.blobs.open(hash);
    if (!blob) throw new FileLostError(kind);
    return { ...blob, hash };
  }

  /** Runs `read` with the path of a local file that holds it. @throws FileLostError */
  async withFile<T>(releaseId: string, kind: ArtifactKind, read: (path: string) => Promise<T>): Promise<T> {
    const { hash } = await this.find(releaseId, kind);
    if (!(await this.blobs.has(hash))) throw new FileLostError(kind);
    return this.blobs.withFile(hash, read);
  }

  /** What a bundle says of itself. @throws InvalidArchiveError, InvalidBundleError, FileLostError */
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
   * Names the files of a new release, part of the transaction that stores it. A sweep of the same file waits for its end.
   *
   * @throws UploadLostError
   */
  async attach(releaseId: string, files: Partial<Record<ArtifactKind, Blob>>, tx: EntityManager): Promise<void> {
    // In one order everywhere: two forms with the same files would wait for each other.
    const sorted = (Object.entries(files) as [ArtifactKind, Blob][]).sort(([, a], [, b]) => (a.hash < b.hash ? -1 : 1));
    for (const [kind, { hash, bytes }] of sorted) {
      await lockBlob(hash, tx);
      if (!(await this.blobs.has(hash))) throw new UploadLostError();
      await tx.insert(ReleaseArtifact, { releaseId, kind, hash, bytes });
    }
  }

  /** Lets the sweeper look at once at files of a form that was refused. Never rejects: it finds them a day later anyway. */
  async discard(hashes: string[]): Promise<void> {
    if (hashes.length === 0) return;
    const note = 'INSERT INTO blob_garbage SELECT unnest($1::text[]) ON CONFLICT DO NOTHING';
    await this.artifacts.query(note, [[...new Set(hashes)]]).catch((error: unknown) => {
      this.logger.warn({ msg: 'files of a refused form stay for a day', err: error });
    });
  }

  private async find(releaseId: string, kind: ArtifactKind): Promise<ReleaseArtifact> {
    const artifact = await this.artifacts.findOneBy({ releaseId, kind });
    if (!artifact) throw new FileLostError(kind);
    return artifact;
  }
}
