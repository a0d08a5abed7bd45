import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestApp } from '../app.js';

/** Files in the blob folder of an app: hashes of whole files, and names of unfinished ones. */
export async function blobFiles(app: Pick<TestApp, 'env'>): Promise<{ blobs: string[]; incoming: string[] }> {
  const folder = join(app.env.dataDir, 'blobs');
  const shelves = await readdir(folder).catch(() => []);
  const names = await Promise.all(shelves.map(async (shelf) => ({ shelf, files: await readdir(join(folder, shelf)) })));
  const of = (isIncoming: boolean) =>
    names.filter(({ shelf }) => (shelf === 'incoming') === isIncoming).flatMap(({ files }) => files);
  return { blobs: of(false).sort(), incoming: of(true) };
}
