import { access, mkdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { namesIn, streamIfThere, syncFile, syncFolder } from '../files/files.js';
import { BlobStore, type Blob, isBlobHash } from './blob-store.js';
import { UploadFolder } from './upload-folder.js';

/** Stores blobs in 256 directories; unfinished files are in `incoming`. */
export class DiskBlobStore extends BlobStore {
  private readonly uploads: UploadFolder;

  constructor(private readonly folder: string) {
    super();
    this.uploads = new UploadFolder(path.join(folder, 'incoming'));
  }

  put(content: Readable, bytesMax: number): Promise<Blob> {
    return this.uploads.receive(content, bytesMax, async (file, { hash }) => {
      // Content and name are on the disk before `put` returns: a row that names the file must find it, even after a
      // power cut.
      await syncFile(file);
      const target = this.fileOf(hash);
      const shelf = path.dirname(target);
      await mkdir(shelf, { recursive: true, mode: 0o700 });
      await rename(file, target);
      // The parent folder too: the subfolder can be new.
      await syncFolder(shelf);
      await syncFolder(this.folder);
      // Its age starts with this upload, even when the content was already stored: a rename preserves the time of the
      // new file. A sweep might have removed it already; code that refers to it in a row checks that it exists.
    });
  }

  async open(hash: string): Promise<Readable | null> {
    return streamIfThere(this.fileOf(hash));
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

  removeUnfinished(before: Date): Promise<void> {
    return this.uploads.sweep(before);
  }

  async *list(before: Date): AsyncIterable<string> {
    for (const shelf of await namesIn(this.folder)) {
      for (const name of await namesIn(path.join(this.folder, shelf))) {
        const file = path.join(this.folder, shelf, name);
        const age = await stat(file).catch(() => null);
        if (age && age.mtime < before && isBlobHash(name)) yield name;
      }
    }
  }

  async delete(hash: string): Promise<void> {
    await rm(this.fileOf(hash), { force: true });
  }

  private fileOf(hash: string): string {
    if (!isBlobHash(hash)) throw new Error('A blob is named by 64 hex digits');
    return path.join(this.folder, hash.slice(0, 2), hash);
  }
}
