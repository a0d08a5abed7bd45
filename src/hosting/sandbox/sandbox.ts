import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lchown, lstat, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Env, WALLS, type Wall } from '../../config/env.js';
import { makePivotRoot, type PivotRoot, type PivotRootPlan } from './pivot-root.js';
import {
  FIRST_USER,
  NOBODY,
  probeIsolation,
  TOOLS_PATH,
  wrappers,
  type Level,
  type Isolation,
} from './isolation-checks.js';

/** How a program comes to its environment. */
interface ProgramEnv {
  /** Goes between the walls and the program. */
  wrapper: string[];
  /** For the outermost wrapper. */
  env: Record<string, string>;
}

/** A program's own processes, and what they see of files; null: what their account may see on this host. */
export interface Solitude {
  root: PivotRoot | null;
}

/** What a program may take of the host. */
export interface Confinement {
  /** What its code may allocate, in MiB. */
  memoryMb: number;
  /** Whose program it is: each owner's run under an account of their own, where there are enough. */
  ownerId: string;
  /** Where cores are scarce it comes after all others. */
  isLast?: boolean;
  /** Its own folder: where it starts. Given to its account, with all that is in it. */
  runDir: string;
  /** More folders that are given to its account, with all that is in them. */
  folders?: string[];
  /** Where it starts, in place of the run folder. */
  workDir?: string;
  /** Its whole environment, but for PATH; nothing of ours goes with it. */
  env?: Record<string, string>;
  /** `own` (the default): one in which there is nothing. `host`: this host's. A path: the network whose namespace is there. */
  network?: string;
  /** It is many processes, which see and reach no others, and end with the first. Default: it is one, and shares. */
  alone?: Solitude;
  /** What the runtime that runs the code reserves as data, in MiB, before any code runs. Default: workerd's. */
  reservedMb?: number;
}

/** How to spawn a confined program. */
export interface Launch {
  file: string;
  args: string[];
  options: { cwd: string; env: Record<string, string> };
  /** Descriptors it is given, from 3 on. */
  fds?: number[];
}

/** What an operator is told of the walls. */
export interface IsolationReport {
  level: Level;
  /** By wall: `stands`, or why it does not. */
  walls: Record<Wall, string>;
}

/**
 * V8 in workerd reserves 512 MiB that count as data, and a module of ordinary size with its buffers takes up to another
 * 128 beside its heap (measured: below 608 in all an MCP bundle does not start).
 */
const WORKERD_RESERVED_MB = 640;

/** What stands between hosted code and this host. Found out once, at start or at the first use. */
@Injectable()
export class Sandbox {
  private readonly logger = new Logger('hosting');
  private found: Promise<Isolation> | undefined;

  constructor(
    private readonly env: Env,
    private readonly probe: () => Promise<Isolation> = probeIsolation,
  ) {}

  /** Says once what stands and what does not. */
  async onModuleInit(): Promise<void> {
    if (!this.env.roles.includes('host')) return;
    const { level, walls } = await this.describeWalls();
    const said = { msg: `hosted code runs behind ${WORDS[level]}`, level, ...walls };
    if ((await this.whyNot()) === null) this.logger.log(said);
    else this.logger.warn(said);
  }

  async describeWalls(): Promise<IsolationReport> {
    const { level, missing } = await this.walls();
    const walls = Object.fromEntries(WALLS.map((wall) => [wall, missing[wall] ?? 'stands']));
    return { level, walls: walls as Record<Wall, string> };
  }

  /**
   * Null when hosted code may run here; otherwise a sentence: which walls are missing, why, and what to do.
   *
   * @param needed the walls it wants; a module in workerd needs neither processes nor files of its own, as it has none
   */
  async whyNot(needed: readonly Wall[] = MODULE_WALLS): Promise<string | null> {
    const { missing } = await this.walls();
    const without = this.env.runtimeWithout ?? [];
    const lacking = needed.filter((wall) => missing[wall] !== null && !without.includes(wall));
    if (lacking.length === 0) return null;
    const reasons = lacking.map((wall) => `${wall} (${missing[wall]})`).join(', ');
    const all = needed.filter((wall) => missing[wall] !== null).join(',');
    return (
      `Hosted code would not be isolated on this host: it cannot build ${reasons}. ` +
      `Let the service do that, or set RUNTIME_WITHOUT=${all} if you trust whoever uploads code.`
    );
  }

  /** Why a program in a network of its own cannot be given a way out of it; null where {@link Confinement.network} may be a path. */
  async whyNoWayOut(): Promise<string | null> {
    return (await this.walls()).whyNoWayOut;
  }

  async hasOwnFiles(): Promise<boolean> {
    return (await this.walls()).missing['own-files'] === null;
  }

  /** A tree of files for a program, whose folder must be there; null where `own-files` does not stand. @throws of the file system */
  async ownRoot(plan: Omit<PivotRootPlan, 'hidden'>): Promise<PivotRoot | null> {
    if (!(await this.hasOwnFiles())) return null;
    return makePivotRoot({ ...plan, hidden: [this.env.dataDir, process.cwd()] });
  }

  /**
   * How to spawn `program` behind every wall that stands. Gives the folders to the account it runs under, so write all
   * files before; one with a tree of files of its own needs none of them. The process keeps one id through all wrappers,
   * unless it is alone: then what is spawned waits for it, and ends as it did.
   *
   * @throws the error of the file system when a folder cannot be given away
   */
  async command(program: string, args: string[], confinement: Confinement): Promise<Launch> {
    const walls = await this.walls();
    const {
      runDir,
      folders = [],
      memoryMb,
      reservedMb = WORKERD_RESERVED_MB,
      network = 'own',
      alone,
      isLast = false,
    } = confinement;
    const workDir = confinement.workDir ?? runDir;
    const user = userOf(confinement.ownerId, walls);
    const tree = alone?.root ?? null;
    if (walls.isRoot && walls.missing['own-user'] === null && !tree) {
      for (const folder of [runDir, ...folders]) await giveTo(user, folder);
    }
    const dataBytes = (reservedMb + memoryMb) * 1_048_576;
    const wrapping = { user, dataBytes, network, isLast, alone: alone !== undefined, root: tree && { tree, workDir } };
    const given = programEnv(confinement.env ?? {});
    const [file, ...more] = [...wrappers(walls, wrapping), ...given.wrapper, program, ...args];
    const env = { PATH: TOOLS_PATH, ...given.env };
    return { file, args: more, options: { cwd: tree ? runDir : workDir, env } };
  }

  private walls(): Promise<Isolation> {
    return (this.found ??= this.probe());
  }
}

/**
 * A module in workerd is one process, and opens no file. Behind the other two walls it would start 10 ms later on an idle
 * machine and 60 on a busy one (measured; it takes 80 without), and be the child of what is spawned: its CPU time, and the
 * signal that ends it in order, are told by that id.
 */
const MODULE_WALLS: readonly Wall[] = WALLS.filter((wall) => wall !== 'own-processes' && wall !== 'own-files');

const WORDS: Record<Level, string> = { strong: 'every wall', limited: 'some walls', none: 'no wall' };

/** The same one for all versions of a program: its state on disk belongs to it. */
function userOf(ownerId: string, { hasManyUsers }: Isolation): number {
  if (!hasManyUsers) return NOBODY;
  return FIRST_USER + createHash('sha256').update(ownerId).digest().readUInt16BE(0);
}

/** Gives a folder away with what is in it, unless it was before. Follows no link: what is in it may be a tenant's making. */
async function giveTo(user: number, folder: string): Promise<void> {
  const before = await lstat(folder);
  if (before.uid === user) return;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const inside = path.join(folder, entry.name);
    if (entry.isDirectory()) await giveTo(user, inside);
    else await lchown(inside, user, user);
  }
  await lchown(folder, user, user);
}

/** Files and folders that a program finds although its account may not pass through the folders above them. */
export class HeldFiles {
  private readonly open: { fd: number; close(): Promise<void> }[] = [];

  /** @param first the number of the first one in the program: what stands in its `stdio` from there */
  constructor(private readonly first: number) {}

  get fds(): number[] {
    return this.open.map(({ fd }) => fd);
  }

  /** The path by which the program reaches it. Elsewhere than on Linux: the path itself. */
  async hold(file: string): Promise<string> {
    if (process.platform !== 'linux') return file;
    this.open.push(await open(file, constants.O_RDONLY));
    return `/proc/self/fd/${this.first + this.open.length - 1}`;
  }

  /** To be called once the program was spawned, or was not. Never rejects. */
  async release(): Promise<void> {
    for (const file of this.open.splice(0)) await file.close().catch(() => undefined);
  }
}

/**
 * Carries a program's environment through its walls under names that mean nothing. What builds them runs as this service,
 * and a tenant's `PATH`, `LD_PRELOAD` or function of a shell would have it run a tenant's code. A shell behind all walls
 * gives the variables their names; one whose name no shell takes is left out, and the shell says so. No value stands in an
 * argument, which every process of the machine can read.
 */
function programEnv(env: Record<string, string>): ProgramEnv {
  const pairs = Object.entries(env);
  if (pairs.length === 0) return { wrapper: [], env: {} };
  const carriers = pairs.map((_, index) => `SLIPWAY_${index}`);
  // `command`: a variable that cannot be set, such as a shell's own, ends the shell otherwise.
  const given = carriers.map((name) => `command export -- "$${name}"; unset ${name}`);
  return {
    wrapper: ['sh', '-c', ['unset OLDPWD', ...given, 'exec "$@"'].join('\n'), 'sh'],
    env: Object.fromEntries(pairs.map(([name, value], index) => [carriers[index] ?? '', `${name}=${value}`])),
  };
}
