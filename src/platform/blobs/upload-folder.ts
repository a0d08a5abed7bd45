import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TooLargeError } from '../errors/domain-error.js';
import { namesIn } from '../files/files.js';
import type { Blob } from './blob-store.js';
import { isStorageFull, StorageFullError } from './storage-space.js';

/** The hash of a file is known only at its end. */
export class UploadFolder {
  constructor(private readonly folder: string) {}

  /**
   * Removes the file unless `keep` moved it.
   *
   * @throws TooLargeError above `bytesMax`; StorageFullError; errors of the stream and of `keep`
   */
  async receive(content: Readable, bytesMax: number, keep: (file: string, blob: Blob) => Promise<void>): Promise<Blob> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 }).catch(storageError);
    const file = this.newFile();
    const hash = createHash('sha256');
    let bytes = 0;
    const measure = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        hash.update(chunk);
        const megabytes = Math.floor(bytesMax / 1024 / 1024);
        const fault = `The file is larger than ${bytesMax} bytes (${megabytes} MB).`;
        done(bytes > bytesMax ? new TooLargeError(fault) : null, chunk);
      },
    });
    const sink = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    try {
      await pipeline(content, measure, sink);
      const blob = { hash: hash.digest('hex'), bytes };
      await keep(file, blob);
      return blob;
    } catch (error) {
      // A pipeline can fail while the file is still being opened, which would create it after its removal.
      if (!sink.closed) await new Promise<void>((closed) => sink.once('close', closed));
      return storageError(error);
    } finally {
      await rm(file, { force: true });
    }
  }

  newFile(): string {
    return path.join(this.folder, randomUUID());
  }

  /** Removes files that a crash has left. */
  async sweep(before: Date): Promise<void> {
    for (const name of await namesIn(this.folder)) {
      const file = path.join(this.folder, name);
      const stats = await stat(file).catch(() => null);
      if (stats && stats.mtime < before) await rm(file, { force: true });
    }
  }
}

/** Throws StorageFullError if the disk is full, otherwise the given error. */
function storageError(error: unknown): never {
  throw isStorageFull(error) ? new StorageFullError(error) : error;
}
