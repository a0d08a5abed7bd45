import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { Env } from '../../config/env.js';
import { makeFolder } from '../../platform/files/files.js';
import { createOnce, readIfThere } from '../../platform/files/files.js';

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
    const id = ((await readIfThere(file)) ?? (await createOnce(file, `${randomUUID()}\n`))).trim();
    if (!isUUID(id)) throw new Error(`${file} does not hold an id: remove it`);
    return id;
  }
}
