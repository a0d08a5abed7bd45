import { execFile } from 'node:child_process';
import { WALLS, type Wall } from '../../config/env.js';

/**
 * `strong`: an account and a network of its own, a limit of memory, and an end with this service. `limited`: the last two.
 * `none`: less.
 */
export type Level = 'strong' | 'limited' | 'none';

/** What was found out about this host, once. */
export interface Walls {
  level: Level;
  /** Why each wall does not stand; null for one that does. */
  missing: Record<Wall, string | null>;
  /** This service is root, and gives each owner's programs an account of their own. */
  isRoot: boolean;
  /** Accounts beyond 65535 may be used: not in a container whose accounts are mapped. */
  hasManyUsers: boolean;
  /** `nice` is there: hosted code yields to this service. */
  canYield: boolean;
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

const NAMESPACES = ['--net', '--ipc', '--uts'];

/** Tries every wall by building it around `true`. Never rejects. */
export async function probeWalls(run: Run = runTool, uid = process.getuid?.() ?? -1): Promise<Walls> {
  const isRoot = uid === 0;
  const tried = (file: string, args: string[]) =>
    run(file, [...args, 'true']).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  const asUser = (user: number) => tried('setpriv', dropTo(user));
  const [many, nobody, own, network, memory, dies, nice] = await Promise.all([
    isRoot ? asUser(FIRST_USER) : 'not root',
    isRoot ? asUser(NOBODY) : 'not root',
    tried('unshare', ['--user', '--map-root-user']),
    tried('unshare', [...(isRoot ? [] : ['--user', '--map-root-user']), ...NAMESPACES]),
    tried('prlimit', [...limitsOf(1_073_741_824), '--']),
    tried('setpriv', ['--no-new-privs', '--pdeathsig=KILL']),
    tried('nice', ['-n', '5']),
  ]);
  const missing: Walls['missing'] = {
    'own-user': isRoot ? nobody && many : own,
    'own-network': network,
    'memory-limit': memory,
    'dies-with-service': dies,
  };
  return { level: levelOf(missing), missing, isRoot, hasManyUsers: many === null, canYield: nice === null };
}

/** What a program of one owner is wrapped in, for these walls. */
export function wrappers(
  { missing, isRoot, hasManyUsers, canYield }: Walls,
  wanted: { user: number; dataBytes: number; withNetwork: boolean },
): string[] {
  const hasUser = missing['own-user'] === null;
  const hasNetwork = missing['own-network'] === null && !wanted.withNetwork;
  const needsUserSpace = !isRoot && (hasUser || hasNetwork);
  const spaces = [...(needsUserSpace ? ['--user', '--map-root-user'] : []), ...(hasNetwork ? NAMESPACES : [])];
  const priv = [
    ...(isRoot && hasUser ? dropTo(wanted.user) : ['--no-new-privs']),
    ...(needsUserSpace ? ['--bounding-set=-all', '--inh-caps=-all'] : []),
    ...(missing['dies-with-service'] === null ? ['--pdeathsig=KILL'] : []),
  ];
  // Counted for an account, so only where nobody else has the same.
  const processes = isRoot && hasUser && hasManyUsers ? [`--nproc=${PROCESSES_MAX}`] : [];
  return [
    ...(missing['memory-limit'] === null ? ['prlimit', ...limitsOf(wanted.dataBytes), ...processes, '--'] : []),
    ...(spaces.length > 0 ? ['unshare', ...spaces, '--'] : []),
    ...(missing['dies-with-service'] === null || (isRoot && hasUser) ? ['setpriv', ...priv, '--'] : []),
    ...(canYield ? ['nice', '-n', '5'] : []),
  ];
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

function levelOf(missing: Walls['missing']): Level {
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
