import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, chmod, lstat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';

const PREFIX = 'slipway-run-';

/** Longest path that leaves room for the names below it in the path of a unix socket (Linux 107 bytes, macOS 103). */
const BASE_CHARS_MAX = 50;

/**
 * Folders of program starts: `slipway-run-<pid>-<start of the process>-<random>/<n>` in the system's temporary folder,
 * or in `/tmp` if its path is long. Not in `DATA_DIR`, because paths of unix sockets are limited, and process ids are
 * ambiguous in a folder shared by machines or containers.
 */
export class RunDirs {
  private readonly logger = new Logger('hosting');
  private root: Promise<string> | null = null;
  private lastNumber = 0;
  private readonly base: string;

  constructor(folder = tmpdir()) {
    this.base = folder.length > BASE_CHARS_MAX ? '/tmp' : folder;
  }

  /** Creates a directory. Its parent is passable but not readable for others, since programs run as other accounts. */
  async make(): Promise<string> {
    const prefix = `${PREFIX}${process.pid}-${startOf(process.pid) ?? '0'}-`;
    this.root ??= mkdtemp(join(this.base, prefix)).then(async (root) => {
      await chmod(root, 0o711);
      return root;
    });
    const folder = join(await this.root, String((this.lastNumber += 1)));
    await mkdir(folder, { mode: 0o700 });
    return folder;
  }

  /** Removes a directory. The promise never rejects: the next process that starts removes the leftovers. */
  async remove(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) =>
      this.logger.warn({ msg: 'the directory of an exited program could not be removed', err: error }),
    );
  }

  /** Removes directories of exited processes, which can contain secrets. The promise never rejects. */
  async removeStale(): Promise<void> {
    const names = await readdir(this.base).catch(() => []);
    for (const name of names) {
      const [, pid, startedAt] = /^slipway-run-(\d+)-(\d+)-/.exec(name) ?? [];
      if (pid === undefined || startedAt === undefined || isAlive(Number(pid), startedAt)) continue;
      const folder = join(this.base, name);
      // Skips a link, or a folder of another account with such a name.
      const stats = await lstat(folder).catch(() => null);
      if (stats?.isDirectory() && stats.uid === process.getuid?.()) await this.remove(folder);
    }
  }

  /** Removes all folders of this process. Never rejects. */
  async close(): Promise<void> {
    const root = await this.root?.catch(() => null);
    if (root) await this.remove(root);
    this.root = null;
  }
}

/** Returns true while the process runs. The start time detects reused ids. */
function isAlive(pid: number, startedAt: string): boolean {
  const start = startOf(pid);
  if (start !== null) return start === startedAt;
  if (process.platform === 'linux') return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns the start time in ticks since boot; null after the exit, or where the system does not report it. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return 'ZX'.includes(state) ? null : (fields[18] ?? null);
  } catch {
    return null;
  }
}
