import type { Readable } from 'node:stream';

/** One stored file, named by its content. */
export interface Blob {
  /** SHA-256 of the content, 64 hex digits. */
  hash: string;
  bytes: number;
}

/**
 * Files by content hash: bundles, modules, source maps. Rows refer to them; files without a row are swept. Storing the
 * same content twice keeps one copy. Another kind of storage is another implementation of this class.
 */
export abstract class BlobStore {
  /**
   * Stores a stream piece by piece. Nothing is visible under the hash before it is complete.
   *
   * @throws TooLargeError above `bytesMax`, with nothing stored; errors of the stream
   */
  abstract put(content: Readable, bytesMax: number): Promise<Blob>;
  /** @returns null when there is none */
  abstract open(hash: string): Promise<Readable | null>;
  abstract has(hash: string): Promise<boolean>;
  /** Runs `read` with the path of a local file that holds the blob. @throws when there is none */
  abstract withFile<T>(hash: string, read: (path: string) => Promise<T>): Promise<T>;
  /** Blobs whose last `put` was before a time, in no order. */
  abstract list(before: Date): AsyncIterable<string>;
  /** Removes the files of uploads that a crash cut off before a time. */
  abstract removeUnfinished(before: Date): Promise<void>;
  /** Missing blobs are ignored. */
  abstract delete(hash: string): Promise<void>;
}

export function isBlobHash(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
