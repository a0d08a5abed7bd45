import { lstat, mkdir, readlink, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** What a program behind `own-files` sees. */
export interface PivotRootPlan {
  /** An empty folder that stays while the program runs: the tree is put together in it. */
  dir: string;
  /** The program's own folder, shown read-only at {@link FOLDER_INSIDE}. */
  folder: string;
  /** The program's interpreter, shown at the same path. */
  runtime: string;
  /** Size of {@link SCRATCH_INSIDE}, its only place to write, in memory: of each process tree its own. */
  scratchMb: number;
  /** Folders of this service, which must not be seen even where they lie among the system's programs. */
  hidden: string[];
}

/** A tree of files that stands ready; every process tree that enters it has mounts and scratch files of its own. */
export interface PivotRoot {
  dir: string;
  /** What is mounted, as fstab(5). */
  mounts: string;
}

export const FOLDER_INSIDE = '/bundle';
export const SCRATCH_INSIDE = '/tmp';

/** Programs and libraries of a system; each is a folder, or on most systems a link into `/usr`. */
const SYSTEM = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** What libraries read of the system's settings: certificates, names, the time zone. Nothing else of `/etc` is seen. */
const SETTINGS = [
  ...['alternatives', 'ca-certificates', 'group', 'hosts', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime'],
  ...['nsswitch.conf', 'passwd', 'pki', 'protocols', 'resolv.conf', 'services', 'ssl', 'timezone'],
];

const DEVICES = ['full', 'null', 'random', 'urandom', 'zero'];

/** Files in scratch for each MB of it: small ones cost memory that their size does not tell. */
const FILES_PER_MB = 256;

/** The tree itself lies one folder below what becomes the root: whoever is in it may make no user namespace (EPERM). */
const TREE = 'r';

const READ_ONLY = 'bind,ro,nosuid,nodev';

/**
 * What the first process of a program does before the program starts, as root of its own namespaces: mounts, makes the tree
 * its root, lets go of the host's. It stays as the parent of all others, so that none is left without one who reaps it, and
 * everything ends with it. Descriptor 3 may be the way into a network, which is nothing for the program.
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

/**
 * Puts the tree together: the system's programs, the program's folder and interpreter, five devices, a `/proc` of its own
 * processes, and `/tmp`. All is read-only but the last.
 *
 * @throws the error of the file system
 */
export async function makePivotRoot({ dir, folder, runtime, scratchMb, hidden }: PivotRootPlan): Promise<PivotRoot> {
  const tree = path.join(dir, TREE);
  const mounts = [mount(dir, dir, READ_ONLY)];
  const show = async (source: string, target: string, options: string) => {
    const found = await lstat(source).catch(() => null);
    if (!found) return;
    const at = path.join(tree, target);
    await mkdir(found.isDirectory() ? at : path.dirname(at), { recursive: true });
    if (!found.isDirectory()) await writeFile(at, '');
    mounts.push(mount(source, at, options));
  };
  await mkdir(tree, { recursive: true });
  for (const name of SYSTEM) {
    const source = `/${name}`;
    const found = await lstat(source).catch(() => null);
    if (found?.isSymbolicLink()) await symlink(await readlink(source), path.join(tree, name));
    else await show(source, name, READ_ONLY);
  }
  for (const name of SETTINGS) await show(`/etc/${name}`, `etc/${name}`, READ_ONLY);
  for (const name of DEVICES) await show(`/dev/${name}`, `dev/${name}`, 'bind');
  if (!isWithin('/usr', runtime)) await show(runtime, runtime, READ_ONLY);
  await show(folder, FOLDER_INSIDE, READ_ONLY);
  for (const secret of hidden.filter((one) => isWithin('/usr', one) && !isWithin(one, runtime))) {
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

/** Names libraries look for; and those by which the tools are found between the change of root and the program. */
async function link(dir: string, tree: string): Promise<void> {
  await symlink('/proc/self/fd', path.join(tree, 'dev/fd'));
  await symlink('../tmp', path.join(tree, 'dev/shm'));
  for (const name of [...SYSTEM, 'etc', 'dev', 'proc']) await symlink(path.join(TREE, name), path.join(dir, name));
}

function mount(source: string, target: string, options: string, type = 'none'): string {
  return `${escaped(source)} ${escaped(target)} ${type} ${options} 0 0`;
}

/** fstab(5) knows white space by its octal number only. */
function escaped(name: string): string {
  return name.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

function isWithin(folder: string, file: string): boolean {
  return file.startsWith(`${folder}/`);
}
