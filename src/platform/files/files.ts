import { randomUUID } from 'node:crypto';
import { link, open, readdir, readFile, rm, writeFile, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';

/** Error codes of systems that cannot sync folders: Windows, and some network file systems. */
const UNSUPPORTED = ['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP'];

/** Returns the content of a file; null without a file. @throws other errors of the file system */
export async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/**
 * Returns a stream of a file; null without a file. The file can be deleted while it is read. @throws other errors of
 * the file system
 */
export async function streamIfThere(file: string): Promise<Readable | null> {
  try {
    return (await open(file)).createReadStream();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Yields the files under a directory, and skips directories that are deleted meanwhile. @throws errors of the file system other than a missing folder */
export async function* filesBelow(folder: string): AsyncIterable<string> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const entry of entries) {
    const inside = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(inside);
    else if (entry.isFile()) yield inside;
  }
}

/** Returns the names in a directory; none if it does not exist. @throws other errors of the file system */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

/**
 * Creates a file, which appears complete or not at all; of two concurrent processes one wins.
 *
 * @returns the content, which another process may have written
 * @throws errors of the file system
 */
export async function createOnce(file: string, content: string, mode = 0o666): Promise<string> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, content, { mode, flush: true });
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, 'utf8');
}

/**
 * Mode by which other accounts can pass `DATA_DIR` but not list it. If the service is root, the embedded Postgres runs as another
 * account.
 */
export const PASSABLE = 0o711;

/**
 * Creates a directory and its parents, for this account alone unless `mode` says otherwise. Not `mkdir` with `recursive`:
 * in a file system without new folders (`/proc`) Node 20 would try forever.
 *
 * @throws errors of the file system
 */
export async function makeFolder(folder: string, mode = 0o700): Promise<void> {
  try {
    await mkdir(folder, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    const parent = path.dirname(folder);
    if (code !== 'ENOENT' || parent === folder) throw error;
    await makeFolder(parent, mode);
    await mkdir(folder, mode).catch((again: NodeJS.ErrnoException) => {
      if (again.code !== 'EEXIST') throw again;
    });
  }
}

/** Writes the content to disk, where it survives a power cut. The name needs {@link syncFolder}. */
export async function syncFile(file: string): Promise<void> {
  const handle = await open(file);
  await handle.sync().finally(() => handle.close());
}

/** Flushes the names in the folder to the disk, if the system can sync folders. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    await syncFile(folder);
  } catch (error) {
    if (!UNSUPPORTED.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
