import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Engine } from '../engine.js';
import type { EngineName, ProgramLimits, ProgramRef } from '../hosting.types.js';
import type { Programs } from '../programs.js';
import { noRoom, resting, stopping } from './termination-errors.js';
import { LiveProgram, type RuntimeCounts } from './live-program.js';
import { OwnerVersions } from './owner-versions.js';
import { isOutdated } from './restart-coalescer.js';
import type { RunDirs } from './run-dirs.js';
import { StartSemaphore } from './start-semaphore.js';
import { Watchdog } from './watchdog.js';

/** How often idle programs are looked for. */
const SWEEP_MS = 5_000;

/** How long programs have to end in order when the service does, and then to be gone by force. */
const CLOSE_MS = 4_000;
const CLOSE_BY_FORCE_MS = 1_000;

/** What a fleet is made with. */
export interface FleetSetting {
  limits: ProgramLimits;
  stallMs: number;
  liveMax: number;
  idleMs: number;
  programs: Programs;
  engineOf: (name: EngineName) => Engine;
  runDirs: RunDirs;
  /** Below it each owner's sessions have a folder. */
  stateRoot: string;
}

/** All programs of this process: which of them run, and which make room. */
export class Fleet {
  private readonly logger = new Logger('hosting');
  private readonly owners = new Map<string, OwnerVersions>();
  private readonly programs = new Set<LiveProgram>();
  private readonly watchdog = new Watchdog();
  private readonly starts: StartSemaphore;
  private readonly sweeper: NodeJS.Timeout;
  private isClosing = false;
  readonly counts: RuntimeCounts = {
    starts: 0,
    crashes: 0,
    kills: { cpu: 0, stall: 0, memory: 0 },
    refused: { busy: 0, resting: 0, start: 0, unavailable: 0 },
    cpuMs: 0,
    dropped: 0,
  };

  constructor(private readonly setting: FleetSetting) {
    this.starts = new StartSemaphore(setting.limits.wallMs);
    this.sweeper = setInterval(() => this.sweep(), Math.min(SWEEP_MS, setting.idleMs / 2));
    this.sweeper.unref();
  }

  get live(): readonly LiveProgram[] {
    return [...this.programs];
  }

  /** How many programs are looked after: those at work, and those that were just now. */
  get watched(): number {
    return this.watchdog.count;
  }

  /**
   * The program for a request, started if it does not run.
   *
   * @throws HostedFailure when it must rest, there is no room, or the service stops
   */
  programFor(asked: ProgramRef): LiveProgram {
    const owner = this.ownerOf(asked);
    const ref = owner.meant(asked);
    return owner.takingOf(ref) ?? this.launch(owner, ref);
  }

  /**
   * Brings another version of an owner into service; nothing is started of one that does not run. Resolves when it takes
   * requests, or cannot. Either way the older ones end when their requests have.
   *
   * @throws HostedFailure as {@link programFor}
   */
  async swap(ref: ProgramRef): Promise<void> {
    const owner = this.owners.get(ref.ownerId);
    if (!owner) return;
    owner.follow(ref);
    if (owner.taking.length > 0) await this.programFor(ref).settled;
  }

  /**
   * Starts the current version of an owner anew if it runs with other values than it is given now; see
   * {@link Hosting.renew}. Resolves when it takes requests, or cannot.
   *
   * @throws HostedFailure as {@link programFor}
   */
  async renew(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    if (!owner) return;
    owner.endRest();
    const program = owner.takingOf(owner.current);
    await program?.settled;
    if (!program || !(await isOutdated(this.setting.programs, program.ref, program.given))) return;
    // What was started meanwhile was started with the values of now.
    if (owner.takingOf(owner.current) === program) await this.launch(owner, program.ref).settled;
  }

  /** Ends all versions of an owner and removes what its sessions stored. */
  async forget(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    await Promise.all([...(owner?.programs ?? [])].map((program) => program.stop()));
    if (owner?.programs.size === 0) this.owners.delete(ownerId);
    await rm(this.stateDirOf(ownerId), { recursive: true, force: true, maxRetries: 3 });
  }

  /** Ends what keeps state, see {@link LocalHosting.endStateful}. Never rejects. */
  async endStateful(graceMs: number): Promise<void> {
    const programs = this.live.filter(({ ref }) => ref.isStateful);
    await Promise.all(programs.map((program) => (graceMs > 0 ? program.drain(graceMs) : program.stop(0))));
  }

  /** Whose sessions stored something here. @throws what the file system says */
  async ownersWithState(): Promise<string[]> {
    const names = await readdir(this.setting.stateRoot).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => isUUID(name));
  }

  /** Ends everything, within 5 s. Never rejects. */
  async close(): Promise<void> {
    this.isClosing = true;
    clearInterval(this.sweeper);
    const programs = this.live;
    const ended = Promise.all(programs.map((program) => program.stop()));
    const patience = new AbortController();
    await Promise.race([ended, wait(CLOSE_MS, undefined, { signal: patience.signal }).catch(() => undefined)]);
    for (const program of programs) if (!program.isGone) program.instance?.kill();
    await Promise.race([ended, wait(CLOSE_BY_FORCE_MS, undefined, { signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
    this.watchdog.close();
    await this.setting.runDirs.close();
  }

  private ownerOf(ref: ProgramRef): OwnerVersions {
    let owner = this.owners.get(ref.ownerId);
    if (!owner) this.owners.set(ref.ownerId, (owner = new OwnerVersions(ref)));
    return owner;
  }

  private launch(owner: OwnerVersions, ref: ProgramRef): LiveProgram {
    if (this.isClosing) throw stopping();
    const { backoff } = owner;
    const restMs = backoff.restMs(performance.now());
    if (restMs > 0) throw resting(backoff.crashes, restMs, backoff.lastWords);
    const { limits, stallMs, programs, engineOf, runDirs } = this.setting;
    const program = new LiveProgram(
      ref,
      {
        limits,
        stallMs,
        programs,
        engine: engineOf(ref.engine),
        runDirs,
        stateDir: this.stateDirOf(ref.ownerId),
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
      this.roomFor(owner, ref),
    );
    this.add(owner, program);
    return program;
  }

  /** Keeps it while it lives; what it replaces goes when it is ready. */
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
      if (successor.takesCalls) void successor.drain(this.setting.limits.wallMs);
      return;
    }
    for (const program of owner.taking) if (program !== successor) void program.drain(this.setting.limits.wallMs);
  }

  /**
   * Resolves when the version may start. One that keeps sessions on disk waits until every other is gone: two must never
   * write there. Others wait while two of the owner are there, and without a predecessor for a place: the one that was idle
   * longest makes room, those with open streams last. A version that only ends its requests takes no place.
   *
   * @throws HostingUnavailableError when nobody can make room
   */
  private roomFor(owner: OwnerVersions, { isStateful }: ProgramRef): Promise<unknown> {
    const { limits, liveMax } = this.setting;
    const others = [...owner.programs];
    const hasPlace = owner.taking.length > 0;
    const awaited = isStateful
      ? others.map((program) => program.drain(limits.wallMs))
      : others.slice(0, Math.max(0, others.length - 1)).map((program) => program.drain(limits.wallMs));
    const taking = this.live.filter((program) => program.takesCalls);
    if (hasPlace || taking.length < liveMax) return Promise.all(awaited);
    const victim = idleLongest(taking);
    if (!victim) throw noRoom();
    return Promise.all([...awaited, victim.stop()]);
  }

  private stateDirOf(ownerId: string): string {
    return join(this.setting.stateRoot, ownerId);
  }

  private sweep(): void {
    const now = performance.now();
    for (const program of this.programs) {
      if (!program.isIdle) continue;
      if (!program.hasStreams && now - program.idleSince >= this.setting.idleMs) {
        program
          .stop()
          .catch((error: unknown) => this.logger.error({ msg: 'an idle program did not stop', err: error }));
      } else this.watchdog.glance(program);
    }
    for (const [id, owner] of this.owners) if (owner.isForgettable(now)) this.owners.delete(id);
  }
}

/** Of those without a request in flight: the one without streams that waits longest, else the one with them. */
export function idleLongest<T extends Pick<LiveProgram, 'isIdle' | 'hasStreams' | 'idleSince'>>(
  programs: readonly T[],
): T | undefined {
  return programs
    .filter(({ isIdle }) => isIdle)
    .sort((a, b) => Number(a.hasStreams) - Number(b.hasStreams) || a.idleSince - b.idleSince)[0];
}
