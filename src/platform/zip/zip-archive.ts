import { crc32 } from 'node:zlib';
import type * as Yauzl from 'yauzl';
import type { Entry, ZipFile } from 'yauzl';
import { errorOf } from '../errors/domain-error.js';
import { lazyRequire } from '../lazy-require.js';

const yauzl = lazyRequire<typeof Yauzl>('yauzl');

/** The message explains how the archive is broken or hostile. */
export class InvalidArchiveError extends errorOf('invalid', 'validation_error') {}

export interface ZipLimits {
  /** Files and folders; including the folders in paths, with or without their own entry. */
  entriesMax: number;
  totalBytesMax: number;
  /** A hostile entry then has a `fault`, and the others can be read. */
  isPartUsed?: boolean;
}

export interface ZipMember {
  /** Unpacked size in bytes, as the archive states; reading stops if that was wrong. */
  size: number;
  isDirectory: boolean;
  /** Unix permission bits; 0 if the archive has none. */
  mode: number;
  /** Reason why the entry must not be unpacked; set only in archives of which a part is used. */
  fault?: InvalidArchiveError;
}

/** Checked: no entry is hostile. Names are relative, with `/`, without `.` and `..`. */
export interface ZipArchive {
  readonly entries: ReadonlyMap<string, ZipMember>;
  /** @throws InvalidArchiveError when the file is missing, larger than `bytesMax`, or broken */
  read(path: string, bytesMax: number): Promise<Buffer>;
  close(): void;
}

/** Above this ratio a large member is a bomb: text reaches 10 to 20, the maximum of deflate is 1,032. */
const RATIO_MAX = 200;
const RATIO_FREE_BYTES = 1024 * 1024;

/** Limits of a path, above those of file systems and archivers; each path is checked folder by folder. */
const PATH_LENGTH_MAX = 1_000;
const PATH_FOLDERS_MAX = 50;

const S_IFMT = 0o170000;
const S_IFLNK = 0o120000;

/**
 * Checks every member before any is read: no absolute or climbing paths, no links, no encryption, no duplicates and no
 * file that is also a folder (two readers would see different files), no bombs, not too many entries. Backslashes in
 * names, which archivers of Windows write, are read as slashes.
 *
 * @param source a file's path, or the archive itself
 * @throws InvalidArchiveError
 */
export async function openZip(source: string | Buffer, limits: ZipLimits): Promise<ZipArchive> {
  const options = { lazyEntries: true, autoClose: false, validateEntrySizes: true };
  const zip = await new Promise<ZipFile>((resolve, reject) => {
    const done = (error: Error | null, opened?: ZipFile) => {
      if (opened) resolve(opened);
      else reject(unreadable(error));
    };
    if (typeof source === 'string') yauzl().open(source, options, done);
    else yauzl().fromBuffer(source, options, done);
  });
  try {
    const entries = await readEntries(zip, limits);
    const members = [...entries].map(([name, { entry, fault }]): [string, ZipMember] => {
      const mode = (entry.externalFileAttributes >>> 16) & 0o777;
      const member = { size: entry.uncompressedSize, isDirectory: entry.fileName.endsWith('/'), mode };
      return [name, fault ? { ...member, fault } : member];
    });
    return {
      entries: new Map(members),
      read: async (path, bytesMax) => {
        const { entry, fault } = entries.get(path) ?? {};
        if (fault) throw fault;
        return readMember(zip, entry, path, bytesMax);
      },
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

function unreadable(error: Error | null): InvalidArchiveError {
  return new InvalidArchiveError(`The archive is not a readable zip: ${error?.message ?? 'unknown reason'}.`);
}

interface JudgedEntry {
  entry: Entry;
  fault: InvalidArchiveError | null;
}

function readEntries(zip: ZipFile, limits: ZipLimits): Promise<Map<string, JudgedEntry>> {
  const entries = new Map<string, JudgedEntry>();
  let total = 0;
  return new Promise((resolve, reject) => {
    if (zip.entryCount > limits.entriesMax) {
      reject(
        new InvalidArchiveError(`The archive holds ${zip.entryCount} entries; at most ${limits.entriesMax} are taken.`),
      );
      return;
    }
    zip.on('error', (error: Error) => reject(unreadable(error)));
    zip.on('end', () => {
      try {
        judgeFolders(entries, limits.entriesMax);
        resolve(entries);
      } catch (error) {
        reject(error);
      }
    });
    zip.on('entry', (entry: Entry) => {
      try {
        const fault = faultOf(entry);
        if (fault && !limits.isPartUsed) throw fault;
        total += entry.uncompressedSize;
        if (total > limits.totalBytesMax) {
          throw new InvalidArchiveError(`The archive unpacks to more than ${limits.totalBytesMax} bytes.`);
        }
        const name = entry.fileName.replace(/\/$/, '');
        if (entries.has(name)) throw new InvalidArchiveError(`The archive holds "${sanitize(name)}" twice.`);
        entries.set(name, { entry, fault });
        zip.readEntry();
      } catch (error) {
        reject(error);
      }
    });
    zip.readEntry();
  });
}

/** Returns the problem of an entry. yauzl itself rejects climbing and absolute paths, with its own message. */
function faultOf(entry: Entry): InvalidArchiveError | null {
  const name = sanitize(entry.fileName);
  const segments = entry.fileName.replace(/\/$/, '').split('/');
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  const isUnsafe = /[\u0000-\u001f\u007f:]/.test(entry.fileName);
  if (isUnsafe || segments.some((part) => part === '' || part === '.' || part === '..')) {
    return new InvalidArchiveError(`The archive holds a file with an unsafe path: "${name}".`);
  }
  if (entry.fileName.length > PATH_LENGTH_MAX || segments.length > PATH_FOLDERS_MAX) {
    return new InvalidArchiveError(
      `The archive holds a path of more than ${PATH_LENGTH_MAX} characters or ${PATH_FOLDERS_MAX} folders: "${name}".`,
    );
  }
  if (((entry.externalFileAttributes >>> 16) & S_IFMT) === S_IFLNK) {
    return new InvalidArchiveError(`The archive holds a link, "${name}": pack the file itself.`);
  }
  if (entry.isEncrypted()) {
    return new InvalidArchiveError(`The archive is encrypted ("${name}"): pack it without a password.`);
  }
  const { compressedSize, uncompressedSize } = entry;
  if (uncompressedSize > RATIO_FREE_BYTES && uncompressedSize > compressedSize * RATIO_MAX) {
    return new InvalidArchiveError(
      `"${name}" unpacks to ${uncompressedSize} bytes from ${compressedSize}: that looks like a zip bomb.`,
    );
  }
  return null;
}

function judgeFolders(entries: Map<string, JudgedEntry>, foldersMax: number): void {
  const folders = new Set<string>();
  for (const name of entries.keys()) {
    for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
      const folder = name.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
      if (folders.size > foldersMax) {
        throw new InvalidArchiveError(`The archive holds files in more than ${foldersMax} folders.`);
      }
      const { entry } = entries.get(folder) ?? {};
      if (!entry || entry.fileName.endsWith('/')) continue;
      throw new InvalidArchiveError(`The archive holds "${sanitize(folder)}" both as a file and as a folder.`);
    }
  }
}

function readMember(zip: ZipFile, entry: Entry | undefined, path: string, bytesMax: number): Promise<Buffer> {
  if (!entry || entry.fileName.endsWith('/')) {
    return Promise.reject(new InvalidArchiveError(`The archive holds no file "${sanitize(path)}".`));
  }
  if (entry.uncompressedSize > bytesMax) {
    return Promise.reject(new InvalidArchiveError(`"${sanitize(path)}" is larger than ${bytesMax} bytes.`));
  }
  return new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => {
      if (!stream) return reject(unreadable(error));
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const content = Buffer.concat(chunks);
        // The library checks only sizes.
        if (crc32(content) === entry.crc32) resolve(content);
        else reject(new InvalidArchiveError(`"${sanitize(path)}" is damaged: its checksum is wrong.`));
      });
      stream.on('error', (broken: Error) => reject(unreadable(broken)));
    });
  });
}

function sanitize(name: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what it replaces
  return name.slice(0, 120).replace(/[\u0000-\u001f\u007f]/g, '?');
}
