import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { namesIn, syncFile, syncFolder } from '../files/files.js';
import { BlobStore, type Blob } from './blob-store.js';
import { TooLargeError } from '../errors/domain-error.js';
import { isStorageFull, StorageFullError } from './storage-space.js';

const HASH = /^[0-9a-f]{64}$/;

/** Blobs as files of a folder, 256 folders wide. Unfinished ones lie in `incoming`. */
export class DiskBlobStore extends BlobStore {
  constructor(private readonly folder: string) {
    super();
  }

  async put(content: Readable, bytesMax: number): Promise<Blob> {
    const incoming = path.join(this.folder, 'incoming');
    await mkdir(incoming, { recursive: true }).catch((error: unknown) => {
      throw isStorageFull(error) ? new StorageFullError(error) : error;
    });
    const file = path.join(incoming, randomUUID());
    const hash = createHash('sha256');
    let bytes = 0;
    const measure = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        hash.update(chunk);
        done(bytes > bytesMax ? tooLarge(bytesMax) : null, chunk);
      },
    });
    const sink = createWriteStream(file, { flags: 'wx', mode: 0o600 });
    try {
      await pipeline(content, measure, sink);
      const name = hash.digest('hex');
      await this.keep(file, name);
      return { hash: name, bytes };
    } catch (error) {
      // A pipeline can fail while the file is still being opened, which would create it after its removal.
      if (!sink.closed) await new Promise<void>((closed) => sink.once('close', closed));
      await rm(file, { force: true });
      throw isStorageFull(error) ? new StorageFullError(error) : error;
    }
  }

  async open(hash: string): Promise<Readable | null> {
    try {
      return (await open(this.fileOf(hash))).createReadStream();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async has(hash: string): Promise<boolean> {
    return access(this.fileOf(hash)).then(
      () => true,
      () => false,
    );
  }

  withFile<T>(hash: string, read: (path: string) => Promise<T>): Promise<T> {
    return read(this.fileOf(hash));
  }

  async *list(ageMs: number): AsyncIterable<string> {
    const before = Date.now() - ageMs;
    for (const shelf of await namesIn(this.folder)) {
      for (const name of await namesIn(path.join(this.folder, shelf))) {
        const file = path.join(this.folder, shelf, name);
        const age = await stat(file).catch(() => null);
        if (!age || age.mtimeMs >= before) continue;
        if (HASH.test(name)) yield name;
        // An upload that a crash cut off.
        else if (shelf === 'incoming') await rm(file, { force: true });
      }
    }
  }

  async delete(hash: string): Promise<void> {
    await rm(this.fileOf(hash), { force: true });
  }

  /** On the disk, content and name, before `put` tells of it: a row that names it must find it, also after a power cut. */
  private async keep(file: string, hash: string): Promise<void> {
    await syncFile(file);
    const target = this.fileOf(hash);
    const shelf = path.dirname(target);
    await mkdir(shelf, { recursive: true });
    await rename(file, target);
    // The folder of the shelves too: the shelf may be new.
    await syncFolder(shelf);
    await syncFolder(this.folder);
    // Its age counts from this upload, also when the same content was there before: a rename preserves the time of the new
    // file. A sweep may have removed it already; code that refers to it in a row checks that it exists.
  }

  private fileOf(hash: string): string {
    if (!HASH.test(hash)) throw new Error('A blob is named by 64 hex digits');
    return path.join(this.folder, hash.slice(0, 2), hash);
  }
}

function tooLarge(bytesMax: number): TooLargeError {
  return new TooLargeError(`The file is larger than ${bytesMax} bytes (${Math.floor(bytesMax / 1024 / 1024)} MB).`);
}
