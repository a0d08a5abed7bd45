import { randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';

/** What a file holds; null when there is none. @throws what the file system says otherwise */
export async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/**
 * Makes a file that appears complete or not at all; of two processes at the same instant one wins.
 *
 * @returns what it holds then, by whoever it was made
 * @throws what the file system says
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
