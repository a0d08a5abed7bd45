import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { Env } from '../../config/env.js';
import { makeFolder } from '../../platform/files/files.js';
import { createOnce, readIfThere } from '../../platform/files/files.js';

/**
 * Identifies the data folder: processes that read the same id share the folder, whatever path each has for it, and so the
 * state of programs. An operator who copies a folder for a second service removes `hosting/folder-id` from the copy.
 */
@Injectable()
export class DataFolder {
  private known: string | null = null;

  constructor(private readonly env: Env) {}

  /** The folder's id, created on first use. @throws the file system's error, and Error when the file holds something else */
  async id(): Promise<string> {
    if (this.known !== null) return this.known;
    const folder = path.join(this.env.dataDir, 'hosting');
    const file = path.join(folder, 'folder-id');
    await makeFolder(folder);
    const id = ((await readIfThere(file)) ?? (await createOnce(file, `${randomUUID()}\n`))).trim();
    if (!isUUID(id)) throw new Error(`${file} does not hold an id: remove it`);
    this.known = id;
    return id;
  }
}
