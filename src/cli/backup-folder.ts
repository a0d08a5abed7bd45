import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { DiskBlobStore } from '../platform/blobs/disk-blob-store.js';
import type { DatabaseOutline, TableOutline } from '../platform/database/database-copy.js';
import { makeFolder, namesIn, readIfThere } from '../platform/files/files.js';

const MANIFEST = 'manifest.json';

/** File of checksums in the format of `sha256sum`, written last: a directory without this file is not a complete backup. */
const CHECKSUMS = 'SHA256SUMS';

export const KEYS = 'encryption-keys';

const FORMAT = 2;

export interface Manifest extends DatabaseOutline {
  format: number;
  version: string;
  createdAt: string;
  keyIds: string[];
  /** Sealed values, one for each key, that prove that a key of this name is the right one. */
  samples?: string[];
  lostBlobs: string[];
}

export class NewBackup {
  readonly blobs: DiskBlobStore;
  private readonly sums: string[] = [];

  private constructor(private readonly folder: string) {
    this.blobs = new DiskBlobStore(path.join(folder, 'blobs'));
  }

  /** @throws Error when the folder has content */
  static async make(folder: string): Promise<NewBackup> {
    if ((await namesIn(folder)).length > 0) throw new Error(`${folder} is not empty: name a new folder.`);
    await makeFolder(path.resolve(folder));
    return new NewBackup(folder);
  }

  /** Deletes what was written; the folder may be a mount point, and stays. */
  async empty(): Promise<void> {
    for (const name of await namesIn(this.folder)) await rm(path.join(this.folder, name), { recursive: true });
  }

  async writeTable({ name }: TableOutline, rows: Readable): Promise<void> {
    await this.write(`tables/${name}.gz`, rows, createGzip({ level: 1 }));
  }

  /** Writes a file, for this account alone. @param file path inside the folder @param packing compresses it */
  async write(file: string, content: Readable | string[], packing: Transform = new PassThrough()): Promise<void> {
    const target = path.join(this.folder, file);
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    const hash = createHash('sha256');
    const hashing = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    await pipeline(content, packing, hashing, createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true }));
    this.sums.push(`${hash.digest('hex')}  ${file}\n`);
  }

  /** Completes the backup. @param hashes files that {@link blobs} received */
  async finish(manifest: Omit<Manifest, 'format' | 'createdAt'>, hashes: string[]): Promise<void> {
    for (const hash of hashes) this.sums.push(`${hash}  blobs/${hash.slice(0, 2)}/${hash}\n`);
    const content: Manifest = { format: FORMAT, createdAt: new Date().toISOString(), ...manifest };
    await this.write(MANIFEST, [`${JSON.stringify(content, null, 2)}\n`]);
    await writeFile(path.join(this.folder, CHECKSUMS), this.sums.join(''), { mode: 0o600, flush: true });
  }
}

/** A complete backup with unchanged files. */
export class Backup {
  readonly blobs: DiskBlobStore;

  private constructor(
    private readonly folder: string,
    readonly manifest: Manifest,
    private readonly files: string[],
  ) {
    this.blobs = new DiskBlobStore(path.join(folder, 'blobs'));
  }

  /** @throws Error naming a file that is missing, damaged, outside the folder or of a newer version */
  static async open(folder: string): Promise<Backup> {
    const sums = await readIfThere(path.join(folder, CHECKSUMS));
    if (sums === null) throw new Error(`${folder} is not a complete backup: ${CHECKSUMS} is missing.`);
    const lines = sums.split('\n').map((line) => ({ hash: line.slice(0, 64), file: line.slice(66) }));
    if (lines.at(-2)?.file !== MANIFEST) throw new Error(`${CHECKSUMS} is damaged: its end is missing.`);
    for (const { hash, file } of lines.slice(0, -1)) {
      if (file.split(/[\\/]/).includes('..')) {
        throw new Error(`${CHECKSUMS} lists ${file}, which is not a path inside the backup. Use another backup.`);
      }
      const digest = createHash('sha256');
      const isThere = await pipeline(createReadStream(path.join(folder, file)), digest).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
          return false;
        },
      );
      if (!isThere || digest.digest('hex') !== hash) {
        throw new Error(`${file} is damaged: its SHA-256 is not that of ${CHECKSUMS}. Use another backup.`);
      }
    }
    const manifest = JSON.parse(await readFile(path.join(folder, MANIFEST), 'utf8')) as Manifest;
    if (manifest.format > FORMAT) {
      throw new Error(`${MANIFEST} is newer than this version: restore with Slipway ${manifest.version}.`);
    }
    return new Backup(
      folder,
      manifest,
      lines.map(({ file }) => file),
    );
  }

  get blobHashes(): string[] {
    return this.files.filter((file) => file.startsWith('blobs/')).map((file) => path.basename(file));
  }

  /** Copies the session data of hosted code into a data folder: the listed files alone, since others are not checked. */
  async copySessions(dataDir: string): Promise<void> {
    for (const file of this.files.filter((name) => name.startsWith(`hosting${path.sep}`))) {
      const target = path.join(dataDir, file);
      await makeFolder(path.dirname(target));
      await copyFile(this.pathOf(file), target);
    }
  }

  readTable({ name }: TableOutline): Readable {
    const plain = `tables/${name}`;
    // Backups of format 1 are not compressed.
    if (this.has(plain)) return createReadStream(this.pathOf(plain));
    const rows = createGunzip();
    const file = createReadStream(this.pathOf(`${plain}.gz`)).on('error', (error) => rows.destroy(error));
    return file.pipe(rows);
  }

  has(file: string): boolean {
    return this.files.includes(file);
  }

  pathOf(file: string): string {
    return path.join(this.folder, file);
  }
}
