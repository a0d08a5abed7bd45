import type { Readable } from 'node:stream';

export interface Blob {
  /** SHA-256 of the content, 64 hex digits. */
  hash: string;
  bytes: number;
}

/**
 * Bundles, modules and source maps by content hash. Rows refer to files; files without a row are swept. Storing the
 * same content twice keeps one copy.
 */
export abstract class BlobStore {
  /**
   * Stores content, which is visible under its hash once it is complete.
   *
   * @throws TooLargeError above `bytesMax`, with nothing stored; errors of the stream
   */
  abstract put(content: Readable, bytesMax: number): Promise<Blob>;
  /** @returns null when there is none */
  abstract open(hash: string): Promise<Readable | null>;
  abstract has(hash: string): Promise<boolean>;
  /** @throws when the blob does not exist */
  abstract withFile<T>(hash: string, read: (path: string) => Promise<T>): Promise<T>;
  /** Blobs whose last `put` was before a time, in no order. */
  abstract list(before: Date): AsyncIterable<string>;
  /** Deletes files of uploads that a crash has cut off. */
  abstract removeUnfinished(before: Date): Promise<void>;
  /** Deletes a blob, and ignores a missing one. */
  abstract delete(hash: string): Promise<void>;
}

export function isBlobHash(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
