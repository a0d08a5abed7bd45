import { mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Filling a folder takes seconds: an unfinished one as old as this was left by a process that was killed. */
const abandonedAfterMs = 10 * 60_000;

/**
 * Fills a new folder beside `target` and gives it the name `target` when it is complete. A process killed in the
 * middle leaves nothing that looks complete, and of two processes at the same instant one wins: the other's work is
 * dropped. `proof` is a path inside every complete folder. Returns whether the folder is ours.
 *
 * @throws what `fill` throws, or the error of the file system.
 */
export async function buildFolder(
  target: string,
  proof: string,
  fill: (draft: string) => Promise<void>,
): Promise<boolean> {
  const draft = await mkdtemp(`${target}.draft-`);
  try {
    await fill(draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (await stat(join(target, proof)).catch(() => undefined)) return false;
    throw error;
  }
  if (process.platform !== 'win32') await syncFolder(dirname(target));
  return true;
}

/** Removes what killed processes left of building `target`. Cheap enough for every start: it reads one folder. */
export async function removeAbandonedDrafts(target: string): Promise<void> {
  const parent = dirname(target);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(`${basename(target)}.draft-`)) continue;
    const found = await stat(join(parent, name)).catch(() => undefined);
    if (!found || Date.now() - found.mtimeMs < abandonedAfterMs) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** The new name must reach the disk before the first commit does, or a power cut takes both. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync().finally(() => folder.close());
}
