import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, chmod, lstat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';

const PREFIX = 'slipway-run-';

/**
 * Folders for starts of programs: `slipway-run-<pid>-<start of the process>-<random>/<n>` in the system's folder for
 * temporary files. There, and not in `DATA_DIR`: the names of unix sockets may have 107 characters at most, and a process
 * id means nothing to a process of another machine or container that shares the folder.
 */
export class RunDirs {
  private readonly logger = new Logger('hosting');
  private root: Promise<string> | null = null;
  private lastNumber = 0;

  constructor(private readonly base = tmpdir()) {}

  /** A new empty folder, 0700. Others may pass through the one above it, not look into it: programs run as other accounts. */
  async make(): Promise<string> {
    const folder = join(await (this.root ??= this.makeRoot()), String((this.lastNumber += 1)));
    await mkdir(folder, { mode: 0o700 });
    return folder;
  }

  /** Never rejects: what cannot be removed is removed by the next process that starts. */
  async remove(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) =>
      this.logger.warn({ msg: 'the folder of a program that ended could not be removed', err: error }),
    );
  }

  /** Removes the folders of processes that are gone, which may hold secrets of programs. Never rejects. */
  async removeStale(): Promise<void> {
    const names = await readdir(this.base).catch(() => []);
    for (const name of names) {
      const [, pid, startedAt] = /^slipway-run-(\d+)-(\d+)-/.exec(name) ?? [];
      if (pid === undefined || startedAt === undefined || isAlive(Number(pid), startedAt)) continue;
      const folder = join(this.base, name);
      if (await isOurs(folder)) await this.remove(folder);
    }
  }

  /** Removes everything of this process. Never rejects. */
  async close(): Promise<void> {
    const root = await this.root?.catch(() => null);
    if (root) await this.remove(root);
    this.root = null;
  }

  private async makeRoot(): Promise<string> {
    const root = await mkdtemp(join(this.base, `${PREFIX}${process.pid}-${startOf(process.pid) ?? '0'}-`));
    await chmod(root, 0o711);
    return root;
  }
}

/** A folder somebody else made under such a name is left alone; so is a link. */
async function isOurs(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  return found !== null && found.isDirectory() && found.uid === process.getuid?.();
}

/** True for the very process that had this id then: ids are given out again. */
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

/** When a process started, in ticks since the machine did; null when there is none, or the system does not tell. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
