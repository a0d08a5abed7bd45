/**
 * The file tree of a bundle: system programs and libraries, its own folder at `/bundle`, its interpreter, five devices,
 * `/proc`, and a `/tmp` in memory. All but `/tmp` is read-only; the host's files are not visible.
 *
 * `makePivotRoot` writes a list of mounts in the format of fstab(5). The first process of the program (`ENTER_ROOT`)
 * mounts them in its own namespace, makes the tree its root and detaches the host's.
 *
 * Needs `unshare` with mount and process namespaces: `isolation-checks.ts` tries it with the same mounts. Files that
 * libraries expect are left out if the host lacks them.
 */
import { lstat, mkdir, readlink, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface PivotRootPlan {
  /** Empty folder for the tree, required while the program runs. */
  dir: string;
  /**
   * Folders and files of the program, mounted read-only under these names in {@link FOLDER_INSIDE}; `''` is that folder
   * itself.
   */
  folders: Record<string, string>;
  runtime: string;
  /** Size of {@link SCRATCH_INSIDE}, the only writable folder, in memory, separate for each session. */
  scratchMb: number;
  /** Folders of this service to hide if they are inside system folders. */
  hidden: string[];
}

export interface PivotRoot {
  dir: string;
  mounts: string;
}

export const FOLDER_INSIDE = '/bundle';
export const SCRATCH_INSIDE = '/tmp';

/** Folders of programs and libraries; on most systems links into `/usr`. */
const SYSTEM = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** Files of `/etc` that libraries need: certificates, names, the time zone. The rest of `/etc` is hidden. */
const SETTINGS = [
  ...['alternatives', 'ca-certificates', 'group', 'hosts', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime'],
  ...['nsswitch.conf', 'passwd', 'pki', 'protocols', 'resolv.conf', 'services', 'ssl', 'timezone'],
];

const DEVICES = ['full', 'null', 'random', 'urandom', 'zero'];

/** Limit of files in scratch per MB: small files use more memory than their size. */
const FILES_PER_MB = 256;

/** Name of the tree in the new root, a subdirectory: processes in a chroot cannot create user namespaces (EPERM). */
const TREE = 'r';

const READ_ONLY = 'bind,ro,nosuid,nodev';

/**
 * Script of the process that stays as the parent of all others, reaps them, and takes them down when it exits. Descriptor 3 may be the network
 * namespace and is closed before the program.
 */
export const ENTER_ROOT = `set -e
exec 3<&-
mount --all --fstab "$1"
cd "$2"
pivot_root . .
umount -l .
into="$3"
shift 3
unshare --root=${TREE} --wd="$into" -- "$@"
exit`;

export async function makePivotRoot({ dir, folders, runtime, scratchMb, hidden }: PivotRootPlan): Promise<PivotRoot> {
  const tree = path.join(dir, TREE);
  const mounts = [mount(dir, dir, READ_ONLY)];
  const show = async (source: string, target: string, options: string) => {
    const stats = await lstat(source).catch(() => null);
    if (!stats) return;
    const at = path.join(tree, target);
    await mkdir(stats.isDirectory() ? at : path.dirname(at), { recursive: true });
    if (!stats.isDirectory()) await writeFile(at, '');
    mounts.push(mount(source, at, options));
  };
  await mkdir(tree, { recursive: true });
  for (const name of SYSTEM) {
    const source = `/${name}`;
    const stats = await lstat(source).catch(() => null);
    if (stats?.isSymbolicLink()) await symlink(await readlink(source), path.join(tree, name));
    else await show(source, name, READ_ONLY);
  }
  for (const name of SETTINGS) await show(`/etc/${name}`, `etc/${name}`, READ_ONLY);
  for (const name of DEVICES) await show(`/dev/${name}`, `dev/${name}`, 'bind');
  if (!isWithin('/usr', runtime)) await show(runtime, runtime, READ_ONLY);
  for (const [name, source] of Object.entries(folders)) await show(source, path.join(FOLDER_INSIDE, name), READ_ONLY);
  for (const secret of hidden.filter((folder) => isWithin('/usr', folder) && !isWithin(folder, runtime))) {
    mounts.push(mount('tmpfs', path.join(tree, secret), 'ro,size=4k,nosuid,nodev', 'tmpfs'));
  }
  const scratch = `size=${scratchMb}m,nr_inodes=${scratchMb * FILES_PER_MB},mode=1777,nosuid,nodev`;
  for (const [at, options, type] of [
    ['tmp', scratch, 'tmpfs'],
    ['proc', 'nosuid,nodev,noexec', 'proc'],
  ]) {
    await mkdir(path.join(tree, at), { recursive: true });
    mounts.push(mount(type, path.join(tree, at), options, type));
  }
  await link(dir, tree);
  const file = path.join(dir, 'mounts');
  await writeFile(file, `${mounts.join('\n')}\n`);
  return { dir, mounts: file };
}

/**
 * Creates links for names that libraries expect, and those of the tools that run between the change of root and the program.
 */
async function link(dir: string, tree: string): Promise<void> {
  await symlink('/proc/self/fd', path.join(tree, 'dev/fd'));
  await symlink('../tmp', path.join(tree, 'dev/shm'));
  for (const name of [...SYSTEM, 'etc', 'dev', 'proc']) await symlink(path.join(TREE, name), path.join(dir, name));
}

function mount(source: string, target: string, options: string, type = 'none'): string {
  return `${escapeField(source)} ${escapeField(target)} ${type} ${options} 0 0`;
}

function escapeField(name: string): string {
  return name.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

function isWithin(folder: string, file: string): boolean {
  return file.startsWith(`${folder}/`);
}
