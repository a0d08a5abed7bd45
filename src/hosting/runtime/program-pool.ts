import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Env } from '../../config/env.js';
import { namesIn } from '../../platform/files/files.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { Engine } from '../engine.js';
import type { EngineName, ProgramLimits, ProgramRef } from '../hosting.types.js';
import type { ProgramOwners } from '../hosting.js';
import { noFreePlace, noMemory, overQuota, resting, stopping } from './termination-errors.js';
import { LiveProgram, type RuntimeCounts } from './live-program.js';
import { OwnerVersions } from './owner-versions.js';
import { isOutdated } from './restart-coalescer.js';
import type { RunDirs } from './run-dirs.js';
import { removeUnusedState } from './unused-state.js';
import { Watchdog } from './watchdog.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { withTimeout } from '../../platform/limits/with-timeout.js';

/** Upper limit of the sweep interval for idle programs. */
const SWEEP_MS = 5_000;

/** Interval at which session data that nobody uses is looked for. */
const STATE_SWEEP_MS = 3_600_000;

/** Time for programs to exit when the service stops, and then after being killed. */
const CLOSE_MS = 4_000;
const CLOSE_BY_FORCE_MS = 1_000;

/**
 * Limit of concurrent starts. One takes a core for about 80 ms, and more starts than cores delay each other; two on one
 * core, since a start also waits for files.
 */
const STARTS_MAX = Math.max(2, availableParallelism());

/** Longest wait of a start: for its turn, and for older versions whose requests are in flight. */
const AWAITED_MS_MAX = 60_000;

/**
 * Share of the memory of the container or machine that the service and its programs may use together. The rest is for an
 * embedded Postgres, builds and programs that grow between two looks.
 */
const MEMORY_SHARE_MAX = 0.85;

/** Memory that a program uses once it has started, in MB. */
const STARTED_MB = 30;

/** Interval of looks at the memory: 30 µs a program. */
const MEMORY_LOOK_MS = 1_000;

/** Memory of the container or machine, in bytes. */
export interface Memory {
  total: number;
  /** Resident memory of this process. */
  own(): number;
}

/** Dependencies of a pool of programs. */
export interface ProgramPoolDependencies {
  env: Env;
  memory: Memory;
  limits: ProgramLimits;
  programs: ProgramOwners;
  engineOf: (name: EngineName) => Engine;
  runDirs: RunDirs;
}

/** All programs of this process: starts, replaces and evicts them. */
export class ProgramPool {
  private readonly logger = new Logger('hosting');
  private readonly owners = new Map<string, OwnerVersions>();
  private readonly programs = new Set<LiveProgram>();
  private readonly watchdog = new Watchdog(() => this.relieveMemory());
  private readonly starts: KeyedLimiter;
  /** Parent of each owner's session data folder. */
  private readonly stateRoot: string;
  private readonly sweeper: Repeat;
  private readonly stateSweeper: Repeat;
  private isClosing = false;
  private memoryCheckedAt = -Infinity;
  /** An idle program that ends because memory is short. */
  private evicted: LiveProgram | null = null;
  readonly counts: RuntimeCounts = {
    starts: 0,
    crashes: 0,
    kills: { cpu: 0, stall: 0, memory: 0 },
    refused: { busy: 0, resting: 0, start: 0, unavailable: 0 },
    cpuMs: 0,
    dropped: 0,
  };

  constructor(private readonly dependencies: ProgramPoolDependencies) {
    this.stateRoot = join(dependencies.env.dataDir, 'hosting', 'state');
    this.starts = KeyedLimiter.fair(STARTS_MAX, Math.min(dependencies.limits.wallMs, AWAITED_MS_MAX));
    this.sweeper = repeat(Math.min(SWEEP_MS, dependencies.env.runtimeIdleMs / 2), () => this.sweep());
    this.stateSweeper = repeat(STATE_SWEEP_MS, () => void this.sweepState());
    void this.sweepState();
  }

  get live(): readonly LiveProgram[] {
    return [...this.programs];
  }

  /** Number of programs that the watchdog follows: active ones and recently active ones. */
  get watched(): number {
    return this.watchdog.count;
  }

  /**
   * Program for a request, started if it is not running.
   *
   * @throws HostedFailure during a back-off, without a free place, or while the service stops
   */
  programFor(asked: ProgramRef): LiveProgram {
    let owner = this.owners.get(asked.ownerId);
    if (!owner) this.owners.set(asked.ownerId, (owner = new OwnerVersions(asked)));
    const ref = owner.versionFor(asked);
    return owner.acceptingOf(ref) ?? this.launch(owner, ref);
  }

  /**
   * Makes another version of an owner current, and starts it if an older one runs. Resolves when it accepts requests or
   * has failed. In both cases older ones stop after their requests.
   *
   * @throws HostedFailure as {@link programFor}
   */
  async swap(ref: ProgramRef): Promise<void> {
    const owner = this.owners.get(ref.ownerId);
    if (!owner) return;
    owner.follow(ref);
    if (owner.accepting.length > 0) await this.programFor(ref).settled;
  }

  /**
   * Restarts the current version of an owner if its secrets or egress rules changed since its start; see {@link
   * Hosting.renew}. Resolves when it accepts requests or has failed.
   *
   * @throws HostedFailure as {@link programFor}
   */
  async renew(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    if (!owner) return;
    owner.endRest();
    const program = owner.acceptingOf(owner.current);
    await program?.settled;
    if (!program || !(await isOutdated(this.dependencies.programs, program.ref, program.valuesDigest))) return;
    // A program started meanwhile has the current values.
    if (owner.acceptingOf(owner.current) === program) await this.launch(owner, program.ref).settled;
  }

  /** Stops all versions of an owner and removes its session data. */
  async forget(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    await Promise.all([...(owner?.programs ?? [])].map((program) => program.stop()));
    if (owner?.programs.size === 0) this.owners.delete(ownerId);
    await rm(this.stateDirOf(ownerId), { recursive: true, force: true, maxRetries: 3 });
  }

  /** Stops stateful programs, see {@link LocalHosting.endStateful}. Never rejects. */
  async endStateful(graceMs: number): Promise<void> {
    const programs = this.live.filter(({ ref }) => ref.isStateful);
    await Promise.all(programs.map((program) => (graceMs > 0 ? program.drain(graceMs) : program.stop(0))));
  }

  /** Number of programs that run here, by account. */
  liveByAccount(): Record<string, number> {
    const numbers: Record<string, number> = {};
    for (const { accountId, acceptsCalls } of this.programs) {
      if (accountId !== null && acceptsCalls) numbers[accountId] = (numbers[accountId] ?? 0) + 1;
    }
    return numbers;
  }

  /** Owners with session data here. @throws file system errors */
  async ownersWithState(): Promise<string[]> {
    return (await namesIn(this.stateRoot)).filter((name) => isUUID(name));
  }

  /** Stops everything within 5 s. Never rejects. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.sweeper.stop();
    this.stateSweeper.stop();
    const programs = this.live;
    const ended = Promise.all(programs.map((program) => program.stop()));
    await withTimeout(CLOSE_MS, ended, undefined);
    for (const program of programs) if (!program.isGone) program.instance?.kill();
    await withTimeout(CLOSE_BY_FORCE_MS, ended, undefined);
    this.watchdog.close();
    await this.dependencies.runDirs.close();
  }

  private launch(owner: OwnerVersions, ref: ProgramRef): LiveProgram {
    if (this.isClosing) throw stopping();
    const { backoff } = owner;
    const restMs = backoff.restMs(performance.now());
    if (restMs > 0) throw resting(backoff.crashes, restMs, backoff.lastWords);
    const { env, limits, programs, engineOf, runDirs } = this.dependencies;
    const program = new LiveProgram(
      ref,
      {
        limits,
        stallMs: env.runtimeStallMs,
        programs,
        engine: engineOf(ref.engine),
        runDirs,
        stateDir: this.stateDirOf(ref.ownerId),
        admit: (program) => this.admit(program),
        starts: this.starts,
        counts: this.counts,
        watch: (watched) => this.watchdog.watch(watched),
        hasCrashedLately: () => owner.hasCrashedLately(performance.now()),
        answered: () => backoff.answered(),
        crashed: (lastWords) => {
          owner.noteCrash(performance.now());
          backoff.crashed(performance.now(), lastWords);
        },
      },
      this.freePlace(owner, ref),
    );
    this.add(owner, program);
    return program;
  }

  /** Registers the program until its exit; when it is ready, the one it replaces is drained. */
  private add(owner: OwnerVersions, program: LiveProgram): void {
    this.programs.add(program);
    owner.programs.add(program);
    void program.settled.then(() => this.drainOthers(owner, program));
    void program.gone.then(() => {
      this.programs.delete(program);
      owner.programs.delete(program);
    });
  }

  private drainOthers(owner: OwnerVersions, successor: LiveProgram): void {
    if (owner.current.id !== successor.ref.id) {
      if (successor.acceptsCalls) void successor.drain(this.dependencies.limits.wallMs);
      return;
    }
    for (const program of owner.accepting)
      if (program !== successor) void program.drain(this.dependencies.limits.wallMs);
  }

  /**
   * Resolves when the version may start. A stateful one waits until all others have exited: two must never write to its
   * data. Others wait while the owner has two programs. Without a predecessor, a new program may need a place: the
   * longest idle program is evicted, those with open streams last. Draining programs need no place. The same applies while
   * memory is short.
   *
   * @throws HostingUnavailableError, HostAwayError when no program can be evicted
   */
  private freePlace(owner: OwnerVersions, { isStateful }: ProgramRef): Promise<unknown> {
    const { env, limits } = this.dependencies;
    const others = [...owner.programs];
    const hasPlace = owner.accepting.length > 0;
    const drainMs = Math.min(limits.wallMs, AWAITED_MS_MAX);
    const awaited = others.slice(0, isStateful ? undefined : -1).map((program) => program.drain(drainMs));
    const accepting = this.live.filter((program) => program.acceptsCalls);
    const isFull = accepting.length >= env.runtimeLiveMax;
    if (hasPlace || (!isFull && !this.isMemoryShort(STARTED_MB))) return Promise.all(awaited);
    const victim = idleLongest(accepting);
    if (!victim) throw isFull ? noFreePlace() : noMemory();
    return Promise.all([...awaited, victim.stop()]);
  }

  /**
   * Counts a program for its account. At the limit, the account's longest idle program is stopped. A new version needs no
   * place beside the one it replaces.
   *
   * @throws ProgramBusyError when none is idle
   */
  private async admit(program: LiveProgram): Promise<void> {
    const { ref } = program;
    const quota = await this.dependencies.programs.of(ref.kind).quotaOf(ref);
    if (!quota) return;
    // eslint-disable-next-line no-restricted-syntax -- A limit of an account.
    const counted = this.live.filter((other) => other.acceptsCalls && other.accountId === quota.accountId);
    // eslint-disable-next-line no-restricted-syntax -- The owner is a release or a connection.
    const others = counted.filter((other) => other.ref.ownerId !== ref.ownerId);
    const victim = idleLongest(others);
    if (others.length >= quota.max && !victim) throw overQuota(quota.max);
    program.accountId = quota.accountId;
    if (others.length >= quota.max) await victim?.stop();
  }

  private stateDirOf(ownerId: string): string {
    return join(this.stateRoot, ownerId);
  }

  private async sweepState(): Promise<void> {
    const isRunning = (ownerId: string) => (this.owners.get(ownerId)?.programs.size ?? 0) > 0;
    await removeUnusedState(this.stateRoot, isRunning).catch((error: unknown) => {
      this.logger.warn({ msg: 'unused session data was not removed', err: error });
    });
  }

  /** Memory of all programs in MB, where the system provides it. */
  memoryMb(): number {
    return this.live.reduce((sum, { figures }) => sum + (figures?.anonMb() ?? 0), 0);
  }

  /** @param moreMb memory that is about to be used */
  private isMemoryShort(moreMb = 0): boolean {
    const { memory } = this.dependencies;
    return memory.own() + (this.memoryMb() + moreMb) * 1_048_576 > memory.total * MEMORY_SHARE_MAX;
  }

  /** Ends the longest idle program while memory is short, one after the other. */
  private relieveMemory(): void {
    const now = performance.now();
    if (now - this.memoryCheckedAt < MEMORY_LOOK_MS || this.evicted) return;
    this.memoryCheckedAt = now;
    if (!this.isMemoryShort()) return;
    const victim = idleLongest(this.live.filter(({ acceptsCalls }) => acceptsCalls));
    if (!victim) return;
    this.evicted = victim;
    this.logger.warn({
      msg: 'an idle program was ended, because hosted programs and the service use more than 85 % of the memory',
      programsMb: Math.round(this.memoryMb()),
      totalMb: Math.round(this.dependencies.memory.total / 1_048_576),
    });
    void victim.gone.then(() => (this.evicted = null));
    victim
      .stop()
      .catch((error: unknown) => this.logger.error({ msg: 'an idle program could not be stopped', err: error }));
  }

  private sweep(): void {
    this.relieveMemory();
    const now = performance.now();
    for (const program of this.programs) {
      if (!program.isIdle) continue;
      if (!program.hasStreams && now - program.idleSince >= this.dependencies.env.runtimeIdleMs) {
        program
          .stop()
          .catch((error: unknown) => this.logger.error({ msg: 'an idle program could not be stopped', err: error }));
      } else this.watchdog.followIfActive(program);
    }
    for (const [id, owner] of this.owners) if (owner.isForgettable(now)) this.owners.delete(id);
  }
}

/** The longest idle program without requests in flight, those with streams last. */
export function idleLongest<T extends Pick<LiveProgram, 'isIdle' | 'hasStreams' | 'idleSince'>>(
  programs: readonly T[],
): T | undefined {
  return programs
    .filter(({ isIdle }) => isIdle)
    .sort((a, b) => Number(a.hasStreams) - Number(b.hasStreams) || a.idleSince - b.idleSince)[0];
}
