import { randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { Env } from '../../config/env.js';
import { makeFolder } from '../../platform/embedded/make-folder.js';

/**
 * Tells data folders apart: processes that read the same id share the folder, however each of them calls it, and so the
 * state of programs. Whoever copies a folder for a second service removes `hosting/folder-id` from the copy.
 */
@Injectable()
export class DataFolder {
  constructor(private readonly env: Env) {}

  /** The folder's id, made on first use. @throws what the file system says, and Error when the file holds something else */
  async id(): Promise<string> {
    const folder = path.join(this.env.dataDir, 'hosting');
    const file = path.join(folder, 'folder-id');
    await makeFolder(folder);
    const id = ((await readIfThere(file)) ?? (await create(file))).trim();
    if (!isUUID(id)) throw new Error(`${file} does not hold an id: remove it`);
    return id;
  }
}

/** The file appears complete or not at all; of two processes at the same instant one wins, and both read its id. */
async function create(file: string): Promise<string> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, `${randomUUID()}\n`, { flush: true });
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, 'utf8');
}

async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
