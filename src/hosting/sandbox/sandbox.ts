/**
 * Isolation of hosted code from this host. Tools of Linux wrap the program's command: `setpriv`, `unshare`, `prlimit`,
 * `nsenter`, `nice`.
 *
 * Measures: an account for each owner, a separate network, limits of memory and files, an exit with this service; for
 * bundles also separate processes and a root tree with few files (`pivot-root.ts`). `HOSTING_ISOLATION`: `isolated`
 * rejects modules without all of them, `auto` needs the memory limit and the exit with the service, `container` accepts
 * any host. Bundles always need every measure.
 *
 * Values of environment variables never appear in arguments, which every process of the machine can read. Missing
 * measures are logged at start and named when a release is rejected.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lchown, lstat, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Env, ISOLATION_MEASURES, type IsolationMeasure } from '../../config/env.js';
import { makePivotRoot, type PivotRoot, type PivotRootPlan } from './pivot-root.js';
import { FIRST_USER, NOBODY, probeIsolation, TOOLS_PATH, wrappers, type Isolation } from './isolation-checks.js';

interface ProgramEnv {
  /** Command between the wrappers and the program. */
  wrapper: string[];
  env: Record<string, string>;
}

export interface Confinement {
  /** Memory that its code may allocate, in MiB. */
  memoryMb: number;
  /** Each owner has an account, where there are enough. */
  ownerId: string;
  /** Directory that is transferred to the program's account with its contents. */
  runDir: string;
  folders?: string[];
  workDir?: string;
  /** Complete environment except PATH; nothing of this service's is inherited. */
  env?: Record<string, string>;
  /** `own` (the default): an empty network namespace. A path: the namespace to join. */
  network?: string;
  /** Runs in a process namespace of its own, with a root tree or null for the files that its account may see. */
  alone?: { root: PivotRoot | null };
  /** Data segment that the runtime reserves before any code runs, in MiB. Default: workerd's. */
  reservedMb?: number;
}

export interface Launch {
  file: string;
  args: string[];
  options: { cwd: string; env: Record<string, string> };
  /** Descriptors to pass, from 3 on. */
  fds?: number[];
}

export interface IsolationReport {
  /** `isolated`: modules have their own user and network. `container`: less. */
  level: 'isolated' | 'container';
  /** State of each measure: `active`, or the reason why it is inactive. */
  measures: Record<IsolationMeasure, string>;
}

/**
 * V8 in workerd reserves 512 MiB of data, and an ordinary module with its buffers up to another 128 in addition to its
 * heap (measured: an MCP bundle does not start below 608 in total).
 */
const WORKERD_RESERVED_MB = 640;

let ofHost: Promise<Isolation> | undefined;

@Injectable()
export class Sandbox {
  private readonly logger = new Logger('hosting');
  private measured: Promise<Isolation> | undefined;

  constructor(
    private readonly env: Env,
    private readonly probe: () => Promise<Isolation> = () => (ofHost ??= probeIsolation()),
  ) {}

  async onModuleInit(): Promise<void> {
    if (!this.env.roles.includes('host')) return;
    const { level, measures } = await this.describeIsolation();
    const whyNot = await this.whyNot();
    const entry = { msg: whyNot ?? `hosted code runs at the isolation level ${level}`, isolation: level, ...measures };
    if (whyNot === null) this.logger.log(entry);
    else this.logger.warn(entry);
  }

  async describeIsolation(): Promise<IsolationReport> {
    const { missing } = await this.isolation();
    const level = MODULE_MEASURES.every((measure) => missing[measure] === null) ? 'isolated' : 'container';
    const measures = Object.fromEntries(ISOLATION_MEASURES.map((measure) => [measure, missing[measure] ?? 'active']));
    return { level, measures: measures as Record<IsolationMeasure, string> };
  }

  /** Returns null when modules may run here; otherwise a message with the missing measures, the reasons, and a remedy. */
  async whyNot(): Promise<string | null> {
    const lacking = await this.describeMissing(REQUIRED[this.env.hostingIsolation]);
    if (lacking === null) return null;
    return (
      `Hosted code would not be isolated on this host: it cannot build ${lacking}. ` +
      'Let the service do that, or set HOSTING_ISOLATION=container if you trust whoever uploads code.'
    );
  }

  async whyNoBundles(): Promise<string | null> {
    const lacking = await this.describeMissing(ISOLATION_MEASURES);
    return lacking && `Bundles run with complete isolation only, and this host cannot build ${lacking}.`;
  }

  /**
   * Returns the reason why a network namespace cannot be connected to the egress proxy; null where {@link
   * Confinement.network} may be a path.
   */
  async whyNoProxyNetwork(): Promise<string | null> {
    return (await this.isolation()).whyNoProxyNetwork;
  }

  async hasOwnFiles(): Promise<boolean> {
    return (await this.isolation()).missing['own-files'] === null;
  }

  /** Returns the root tree of a program, whose directory must exist; null without `own-files`. @throws file system errors */
  async ownRoot(plan: Omit<PivotRootPlan, 'hidden'>): Promise<PivotRoot | null> {
    if (!(await this.hasOwnFiles())) return null;
    return makePivotRoot({ ...plan, hidden: [this.env.dataDir, process.cwd()] });
  }

  /**
   * Transfers the folders to the program's account, so write all files first; a program with a root tree needs no
   * transfer. The process id is the same through all wrappers, except with a process namespace: the spawned process
   * then waits for the program, and exits with its status.
   *
   * @throws file system errors when a folder cannot be transferred
   */
  async command(program: string, args: string[], confinement: Confinement): Promise<Launch> {
    const isolation = await this.isolation();
    const { runDir, folders = [], memoryMb, reservedMb = WORKERD_RESERVED_MB, network = 'own', alone } = confinement;
    const workDir = confinement.workDir ?? runDir;
    // The account is the same for all versions of a program, because it owns the state on disk.
    const ownerHash = createHash('sha256').update(confinement.ownerId).digest();
    const user = isolation.hasManyUsers ? FIRST_USER + ownerHash.readUInt16BE(0) : NOBODY;
    const tree = alone?.root ?? null;
    if (isolation.isRoot && isolation.missing['own-user'] === null && !tree) {
      for (const folder of [runDir, ...folders]) await changeOwner(user, folder);
    }
    const dataBytes = (reservedMb + memoryMb) * 1_048_576;
    const wrapping = { user, dataBytes, network, alone: alone !== undefined, root: tree && { tree, workDir } };
    const carried = programEnv(confinement.env ?? {});
    const [file, ...more] = [...ENDS_FIRST, ...wrappers(isolation, wrapping), ...carried.wrapper, program, ...args];
    const env = { PATH: TOOLS_PATH, ...carried.env };
    return { file, args: more, options: { cwd: tree ? runDir : workDir, env } };
  }

  private async describeMissing(needed: readonly IsolationMeasure[]): Promise<string | null> {
    const { missing } = await this.isolation();
    const lacking = needed.filter((measure) => missing[measure] !== null);
    return lacking.map((measure) => `${measure} (${missing[measure]})`).join(', ') || null;
  }

  private isolation(): Promise<Isolation> {
    return (this.measured ??= this.probe().then((isolation) => {
      if (this.env.hostingIsolation !== 'container') return isolation;
      const reason = 'HOSTING_ISOLATION is container';
      const off = { 'own-user': reason, 'own-network': reason, 'own-processes': reason, 'own-files': reason };
      return { ...isolation, missing: { ...isolation.missing, ...off } };
    }));
  }
}

/**
 * Makes Linux kill a program and not the service when memory runs out: the score is inherited, and every process may raise
 * its own. Other systems have no such file.
 */
const ENDS_FIRST = [
  'sh',
  '-c',
  '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; unset PWD OLDPWD SHLVL; exec "$@"',
  'sh',
];

/**
 * A module in workerd is one process and opens no files. With the other two measures it would start 10 ms later on an
 * idle machine and 60 on a busy one (measured; 80 without), and be a child of the spawned process, whose id is used for
 * CPU time and signals.
 */
const MODULE_MEASURES: readonly IsolationMeasure[] = ISOLATION_MEASURES.filter(
  (measure) => measure !== 'own-processes' && measure !== 'own-files',
);

/** Measures without which modules are refused. `container` accepts any host, such as macOS, which has none. */
const REQUIRED: Record<Env['hostingIsolation'], readonly IsolationMeasure[]> = {
  isolated: MODULE_MEASURES,
  auto: ['memory-limit', 'dies-with-service'],
  container: [],
};

/** Changes the owner of a directory without following links, which a tenant might have created. */
async function changeOwner(user: number, folder: string): Promise<void> {
  const before = await lstat(folder);
  if (before.uid === user) return;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const inside = path.join(folder, entry.name);
    if (entry.isDirectory()) await changeOwner(user, inside);
    else await lchown(inside, user, user);
  }
  await lchown(folder, user, user);
}

/** Open descriptors of files that a program uses although its account cannot pass the folders above them. */
export class HeldFiles {
  private readonly open: { fd: number; close(): Promise<void> }[] = [];

  /** @param first number of the first descriptor in the program, matching its `stdio` */
  constructor(private readonly first: number) {}

  get fds(): number[] {
    return this.open.map(({ fd }) => fd);
  }

  /**
   * Returns the path by which the program opens it through a descriptor. On systems other than Linux: the path itself.
   */
  async holdOpen(file: string): Promise<string> {
    if (process.platform !== 'linux') return file;
    this.open.push(await open(file, constants.O_RDONLY));
    return `/proc/self/fd/${this.first + this.open.length - 1}`;
  }

  /** Call it after the spawn, successful or not. The promise never rejects. */
  async release(): Promise<void> {
    for (const file of this.open.splice(0)) await file.close().catch(() => undefined);
  }
}

/**
 * Prepares the variables of a program. The wrappers run as this service, and a tenant's `PATH`, `LD_PRELOAD` or shell function would make them run the
 * tenant's code, so the variables pass under neutral names. A shell inside all wrappers restores the names; a name that
 * the shell refuses is omitted with a message.
 */
function programEnv(env: Record<string, string>): ProgramEnv {
  const pairs = Object.entries(env);
  if (pairs.length === 0) return { wrapper: [], env: {} };
  const carriers = pairs.map((_, index) => `SLIPWAY_${index}`);
  // `command` prevents the shell from exiting on a read-only variable.
  const exports = carriers.map((name) => `command export -- "$${name}"; unset ${name}`);
  return {
    wrapper: ['sh', '-c', ['unset OLDPWD', ...exports, 'exec "$@"'].join('\n'), 'sh'],
    env: Object.fromEntries(pairs.map(([name, value], index) => [carriers[index] ?? '', `${name}=${value}`])),
  };
}
