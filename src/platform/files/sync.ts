import { open } from 'node:fs/promises';

/** How systems say that they sync no folders: Windows, and some network file systems. */
const UNSUPPORTED = ['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP'];

/** What a file holds is on the disk then, also after a power cut; its name only with {@link syncFolder}. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path);
  await file.sync().finally(() => file.close());
}

/** The names a folder holds are on the disk then. Where folders cannot be synced that is left to the system. */
export async function syncFolder(path: string): Promise<void> {
  try {
    await syncFile(path);
  } catch (error) {
    if (!UNSUPPORTED.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
