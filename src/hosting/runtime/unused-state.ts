import { opendir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isUUID } from 'class-validator';

/**
 * Age at which all sessions in a folder have ended: they live for 7 days after their last call, and write that call with a
 * delay of up to an hour.
 */
const UNUSED_MS = 7 * 86_400_000 + 2 * 3_600_000;

/**
 * Removes expired sessions of stopped programs. A running program removes its own.
 *
 * @param root parent of the folders, one for each owner
 * @param now time that decides what is old
 */
export async function removeUnusedState(
  root: string,
  isRunning: (ownerId: string) => boolean,
  now: Date,
): Promise<void> {
  const owners = await readdir(root).catch(() => []);
  for (const ownerId of owners.filter((name) => isUUID(name))) {
    const folder = join(root, ownerId);
    if (isRunning(ownerId) || (await isUsed(folder, now.getTime() - UNUSED_MS))) continue;
    if (isRunning(ownerId)) continue;
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Returns true if the directory is in use, including when something disappeared during the check. */
async function isUsed(folder: string, since: number): Promise<boolean> {
  try {
    if ((await stat(folder)).mtimeMs > since) return true;
    for await (const { parentPath, name } of await opendir(folder, { recursive: true })) {
      if ((await stat(join(parentPath, name))).mtimeMs > since) return true;
    }
    return false;
  } catch {
    return true;
  }
}
