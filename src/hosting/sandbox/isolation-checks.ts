import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { IsolationMeasure } from '../../config/env.js';
import { ENTER_ROOT, makePivotRoot, SCRATCH_INSIDE, type PivotRoot } from './pivot-root.js';

export interface Isolation {
  /** Reason per inactive measure; null for an active one. */
  missing: Record<IsolationMeasure, string | null>;
  isRoot: boolean;
  /** True if accounts above 65535 exist: not in a container with mapped accounts. */
  hasManyUsers: boolean;
  /** True if `nice` is available, which lowers the priority of hosted code. */
  canYield: boolean;
  /** Reason why a network namespace cannot be connected to this service; null if it can. */
  whyNoProxyNetwork: string | null;
}

export interface Wrapping {
  user: number;
  dataBytes: number;
  /** `own`: an empty network namespace. A path: an existing namespace. */
  network: string;
  alone: boolean;
  /** Root tree and working directory; null for the files that its account may see on this host. Requires `alone`. */
  root: { tree: PivotRoot; workDir: string } | null;
}

export type Run = (file: string, args: string[]) => Promise<void>;

export const TOOLS_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Timeout of a tool of the system, which takes a tenth of a second. */
export const TOOL_MS_MAX = 10_000;

/** First of 65,536 accounts for hosted code, in a range that is not otherwise allocated (systemd's "unused"). */
export const FIRST_USER = 1_900_000_000;

/** `nobody`, for all hosted code where accounts are limited. */
export const NOBODY = 65_534;

const NICE = '5';

const NAMESPACES = ['--net', '--ipc', '--uts'];
const USER_SPACE = ['--user', '--map-root-user'];

/** Activates the loopback device, without which a new network namespace has no addresses. */
export const LOOPBACK_UP = 'ip link set lo up';

const ALONE = ['--pid', '--fork', '--kill-child'];

/** First process of a process namespace with the host's files: it reaps the others, and all end with it. */
const INIT = 'exec 3<&-; "$@"; exit';

/** Applies every measure to the command `true`. The promise never rejects. */
export async function probeIsolation(run: Run = runTool, uid = process.getuid?.() ?? -1): Promise<Isolation> {
  const isRoot = uid === 0;
  const space = isRoot ? [] : USER_SPACE;
  const tried = (file: string, args: string[]) =>
    run(file, [...args, 'true']).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  const asUser = (user: number) => tried('setpriv', dropTo(user));
  const [many, nobody, userSpace, network, memory, dies, processes, files, nice, loopback] = await Promise.all([
    isRoot ? asUser(FIRST_USER) : 'not root',
    isRoot ? asUser(NOBODY) : 'not root',
    tried('unshare', USER_SPACE),
    tried('unshare', [...space, ...NAMESPACES]),
    tried('prlimit', [...limitsOf(1_073_741_824), '--']),
    tried('setpriv', ['--no-new-privs', '--pdeathsig=KILL']),
    tried('unshare', [...space, ...ALONE, '--mount-proc']),
    tryOwnFiles((args) => tried('unshare', [...space, ...args])),
    tried('nice', ['-n', NICE]),
    isRoot ? tried('unshare', ['--net', 'sh', '-c', `${LOOPBACK_UP} && "$@"`, 'sh']) : 'the service is not root',
  ]);
  const missing: Isolation['missing'] = {
    'own-user': isRoot ? nobody && many : userSpace,
    'own-network': network,
    'memory-limit': memory,
    'dies-with-service': dies,
    'own-processes': processes,
    'own-files': processes ?? files,
  };
  const whyNoProxyNetwork = network ?? loopback;
  return { missing, isRoot, hasManyUsers: many === null, canYield: nice === null, whyNoProxyNetwork };
}

async function tryOwnFiles(tried: (args: string[]) => Promise<string | null>): Promise<string | null> {
  try {
    const dir = await mkdtemp(path.join(tmpdir(), 'slipway-probe-'));
    try {
      const plan = {
        dir: path.join(dir, 'root'),
        folders: { '': dir },
        runtime: process.execPath,
        scratchMb: 1,
        hidden: [],
      };
      const tree = await makePivotRoot(plan);
      return await tried([...ALONE, '--mount', '--', ...entering({ tree, workDir: SCRATCH_INSIDE })]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export function wrappers({ missing, isRoot, hasManyUsers, canYield }: Isolation, wrapping: Wrapping): string[] {
  const hasUser = missing['own-user'] === null;
  const hasNetwork = missing['own-network'] === null && wrapping.network === 'own';
  const joins = wrapping.network.startsWith('/');
  const isAlone = missing['own-processes'] === null && wrapping.alone;
  const root = isAlone && missing['own-files'] === null ? wrapping.root : null;
  const needsUserSpace = !isRoot && (hasUser || hasNetwork || isAlone);
  const spaces = [
    ...(needsUserSpace ? USER_SPACE : []),
    ...(hasNetwork ? NAMESPACES : joins ? NAMESPACES.slice(1) : []),
    ...(isAlone ? [...ALONE, root ? '--mount' : '--mount-proc'] : []),
  ];
  const dies = missing['dies-with-service'] === null ? ['--pdeathsig=KILL'] : [];
  const priv = [
    ...(isRoot && hasUser ? dropTo(wrapping.user) : ['--no-new-privs']),
    ...(needsUserSpace ? ['--bounding-set=-all', '--inh-caps=-all'] : []),
    ...dies,
  ];
  // Counted per account, so only for accounts of a single owner.
  const processes = isRoot && hasUser && hasManyUsers ? [`--nproc=${OWNER_PROCESSES_MAX}`] : [];
  return [
    // With a process namespace the outermost process stays outside, and the first process inside ends with it.
    ...(isAlone && dies.length > 0 ? ['setpriv', ...dies, '--'] : []),
    ...(missing['memory-limit'] === null ? ['prlimit', ...limitsOf(wrapping.dataBytes), ...processes, '--'] : []),
    ...(joins ? ['nsenter', `--net=${wrapping.network}`, '--'] : []),
    ...(spaces.length > 0 ? ['unshare', ...spaces, '--'] : []),
    ...(root ? entering(root) : isAlone ? ['sh', '-c', INIT, 'sh'] : []),
    ...(dies.length > 0 || (isRoot && hasUser) ? ['setpriv', ...priv, '--'] : []),
    ...(canYield ? ['nice', '-n', NICE] : []),
  ];
}

function entering({ tree, workDir }: NonNullable<Wrapping['root']>): string[] {
  return ['sh', '-c', ENTER_ROOT, 'sh', tree.mounts, tree.dir, workDir];
}

/** Limit of processes and threads of one owner: 25 bundle sessions in Node take some 300. */
export const OWNER_PROCESSES_MAX = 1_024;

/**
 * Returns limits of open files and of the size of one file (bytes): enough for 1,000 concurrent sessions on disk, and no file
 * fills the disk.
 */
function limitsOf(dataBytes: number): string[] {
  return [`--data=${dataBytes}`, '--core=0', '--nofile=4096', '--fsize=1073741824'];
}

function dropTo(user: number): string[] {
  return [
    ...[`--reuid=${user}`, `--regid=${user}`, '--clear-groups'],
    ...['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'],
  ];
}

function runTool(file: string, args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { PATH: TOOLS_PATH }, timeout: TOOL_MS_MAX };
    execFile(file, args, options, (error, _out, stderr) => {
      if (!error) return resolve();
      if (error.code === 'ENOENT') return reject(new Error(`there is no ${file} on this host`));
      const firstLine = stderr.trim().split('\n')[0].slice(0, 200);
      reject(new Error(firstLine === '' ? `${file} failed` : firstLine));
    });
  });
}
