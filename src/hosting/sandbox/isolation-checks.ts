import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WALLS, type Wall } from '../../config/env.js';
import { ENTER_ROOT, makePivotRoot, SCRATCH_INSIDE, type PivotRoot } from './pivot-root.js';

/** `strong`: every wall stands. `limited`: at least a limit of memory, and an end with this service. `none`: less. */
export type Level = 'strong' | 'limited' | 'none';

/** What was found out about this host, once. */
export interface Isolation {
  level: Level;
  /** Why each wall does not stand; null for one that does. */
  missing: Record<Wall, string | null>;
  /** This service is root, and gives each owner's programs an account of their own. */
  isRoot: boolean;
  /** Accounts beyond 65535 may be used: not in a container whose accounts are mapped. */
  hasManyUsers: boolean;
  /** `nice` is there: hosted code yields to this service. */
  canYield: boolean;
  /** Why a network of its own cannot be given a way to this service; null where it can. */
  whyNoWayOut: string | null;
}

/** What one program is wrapped for. */
export interface Wrapping {
  user: number;
  dataBytes: number;
  /** `own`: one in which there is nothing. `host`: this host's. A path: the namespace there, which stands already. */
  network: string;
  /** It yields to other hosted code too. */
  isLast: boolean;
  /** Its processes see and reach no others, and end with the first of them. */
  alone: boolean;
  /** What it sees of files, and where it starts there; null: what its account may see on this host. For one that is alone. */
  root: { tree: PivotRoot; workDir: string } | null;
}

/** Runs a command; rejects with a few words when it is not there or fails. */
export type Run = (file: string, args: string[]) => Promise<void>;

/** Where the tools of a system are; nothing of this service's environment is asked. */
export const TOOLS_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const PROBE_MS_MAX = 5_000;

/** The first of 65,536 accounts for hosted code, of a range that nothing else gives out (systemd's "unused"). */
export const FIRST_USER = 1_900_000_000;

/** `nobody`, for all hosted code, where there are no more accounts. */
export const NOBODY = 65_534;

/**
 * What hosted code yields to this service, and what yields to hosted code that behaves: a tenth of its share of a core. A
 * program that fills its memory again and again costs its neighbour's p95 1.1 times then, and 1.3 times without (measured).
 */
const NICE = '5';
const NICE_LAST = '15';

const NAMESPACES = ['--net', '--ipc', '--uts'];
const USER_SPACE = ['--user', '--map-root-user'];

/** Nothing listens in a network of its own before this. */
export const LOOPBACK_UP = 'ip link set lo up';

const ALONE = ['--pid', '--fork', '--kill-child'];

/** The first process of a program that is alone and shares the host's files: it reaps the others, and all end with it. */
const INIT = 'exec 3<&-; "$@"; exit';

/** Tries every wall by building it around `true`. Never rejects. */
export async function probeIsolation(run: Run = runTool, uid = process.getuid?.() ?? -1): Promise<Isolation> {
  const isRoot = uid === 0;
  const space = isRoot ? [] : USER_SPACE;
  const tried = (file: string, args: string[]) =>
    run(file, [...args, 'true']).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  const asUser = (user: number) => tried('setpriv', dropTo(user));
  const [many, nobody, own, network, memory, dies, processes, files, nice, loopback] = await Promise.all([
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
    'own-user': isRoot ? nobody && many : own,
    'own-network': network,
    'memory-limit': memory,
    'dies-with-service': dies,
    'own-processes': processes,
    'own-files': processes ?? files,
  };
  const whyNoWayOut = network ?? loopback;
  return {
    level: levelOf(missing),
    missing,
    isRoot,
    hasManyUsers: many === null,
    canYield: nice === null,
    whyNoWayOut,
  };
}

/** Enters a tree as programs do, with what a tree is made of. */
async function tryOwnFiles(tried: (args: string[]) => Promise<string | null>): Promise<string | null> {
  try {
    const dir = await mkdtemp(path.join(tmpdir(), 'slipway-walls-'));
    try {
      const plan = { dir: path.join(dir, 'root'), folder: dir, runtime: process.execPath, scratchMb: 1, hidden: [] };
      const tree = await makePivotRoot(plan);
      return await tried([...ALONE, '--mount', '--', ...entering({ tree, workDir: SCRATCH_INSIDE })]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What a program of one owner is wrapped in, for these walls. */
export function wrappers({ missing, isRoot, hasManyUsers, canYield }: Isolation, wanted: Wrapping): string[] {
  const hasUser = missing['own-user'] === null;
  const hasNetwork = missing['own-network'] === null && wanted.network === 'own';
  const joins = wanted.network.startsWith('/');
  const isAlone = missing['own-processes'] === null && wanted.alone;
  const root = isAlone && missing['own-files'] === null ? wanted.root : null;
  const needsUserSpace = !isRoot && (hasUser || hasNetwork || isAlone);
  const spaces = [
    ...(needsUserSpace ? USER_SPACE : []),
    ...(hasNetwork ? NAMESPACES : joins ? NAMESPACES.slice(1) : []),
    ...(isAlone ? [...ALONE, root ? '--mount' : '--mount-proc'] : []),
  ];
  const dies = missing['dies-with-service'] === null ? ['--pdeathsig=KILL'] : [];
  const priv = [
    ...(isRoot && hasUser ? dropTo(wanted.user) : ['--no-new-privs']),
    ...(needsUserSpace ? ['--bounding-set=-all', '--inh-caps=-all'] : []),
    ...dies,
  ];
  // Counted for an account, so only where nobody else has the same.
  const processes = isRoot && hasUser && hasManyUsers ? [`--nproc=${PROCESSES_MAX}`] : [];
  return [
    // Of those that are alone the outermost stays, and the first inside ends with it.
    ...(isAlone && dies.length > 0 ? ['setpriv', ...dies, '--'] : []),
    ...(missing['memory-limit'] === null ? ['prlimit', ...limitsOf(wanted.dataBytes), ...processes, '--'] : []),
    ...(joins ? ['nsenter', `--net=${wanted.network}`, '--'] : []),
    ...(spaces.length > 0 ? ['unshare', ...spaces, '--'] : []),
    ...(root ? entering(root) : isAlone ? ['sh', '-c', INIT, 'sh'] : []),
    ...(dies.length > 0 || (isRoot && hasUser) ? ['setpriv', ...priv, '--'] : []),
    ...(canYield ? ['nice', '-n', wanted.isLast ? NICE_LAST : NICE] : []),
  ];
}

function entering({ tree, workDir }: NonNullable<Wrapping['root']>): string[] {
  return ['sh', '-c', ENTER_ROOT, 'sh', tree.mounts, tree.dir, workDir];
}

/** Processes and threads of one owner: 25 sessions of a bundle in Node take some 300. */
const PROCESSES_MAX = 1_024;

/** Open files and the size of one of them (bytes): enough for 1,000 sessions on disk at once, and no disk is filled by one. */
function limitsOf(dataBytes: number): string[] {
  return [`--data=${dataBytes}`, '--core=0', '--nofile=4096', '--fsize=1073741824'];
}

function dropTo(user: number): string[] {
  return [
    ...[`--reuid=${user}`, `--regid=${user}`, '--clear-groups'],
    ...['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'],
  ];
}

function levelOf(missing: Isolation['missing']): Level {
  if (WALLS.every((wall) => missing[wall] === null)) return 'strong';
  return missing['memory-limit'] === null && missing['dies-with-service'] === null ? 'limited' : 'none';
}

function runTool(file: string, args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { env: { PATH: TOOLS_PATH }, timeout: PROBE_MS_MAX };
    execFile(file, args, options, (error, _out, stderr) => {
      if (!error) return resolve();
      if (error.code === 'ENOENT') return reject(new Error(`there is no ${file} on this host`));
      const said = stderr.trim().split('\n')[0].slice(0, 200);
      reject(new Error(said === '' ? `${file} failed` : said));
    });
  });
}
