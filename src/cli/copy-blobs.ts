import type { BlobStore } from '../platform/blobs/blob-store.js';

/** @returns the files that were missing or damaged, which are not copied */
export async function copyBlobs(hashes: string[], from: BlobStore, to: BlobStore): Promise<string[]> {
  const lost: string[] = [];
  for (const hash of hashes) {
    const content = await from.open(hash);
    const stored = content && (await to.put(content, Infinity));
    if (stored?.hash === hash) continue;
    if (stored) await to.delete(stored.hash);
    lost.push(hash);
    process.stderr.write(`Not copied, since it is ${stored ? 'damaged' : 'gone'}: the file ${hash} of a release\n`);
  }
  return lost;
}
