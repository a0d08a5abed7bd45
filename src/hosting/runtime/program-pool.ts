import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { namesIn } from '../../platform/files/files.js';
import { withTimeout } from '../../platform/limits/with-timeout.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { ProgramRef } from '../hosting.types.js';
import { LiveProgram, STARTS_WAIT_MS_MAX, type ProgramServices } from './live-program.js';
import { idleLongest, type LivePrograms } from './live-programs.js';
import { OwnerVersions } from './owner-versions.js';
import { isOutdated } from './restart-coalescer.js';
import { noFreePlace, noMemory, restingError, stopping } from './termination-errors.js';
import { removeUnusedState } from './unused-state.js';
import type { Watchdog } from './watchdog.js';

const SWEEP_MS = 5_000;

const STATE_SWEEP_MS = 3_600_000;

const CLOSE_MS = 4_000;
const CLOSE_BY_FORCE_MS = 1_000;

const STARTED_MB = 30;

export interface PoolServices extends ProgramServices {
  watchdog: Watchdog;
  population: LivePrograms;
  /** Returns the time that decides what is old; null while the clocks differ. */
  deletionTime: () => Promise<Date | null>;
}

export class ProgramPool {
  private readonly logger = new Logger('hosting');
  private readonly owners = new Map<string, OwnerVersions>();
  private readonly sweeper: Repeat;
  private readonly stateSweeper: Repeat;
  private isClosing = false;

  constructor(readonly services: PoolServices) {
    this.sweeper = repeat(Math.min(SWEEP_MS, services.tuning.runtimeIdleMs / 2), () => this.sweep());
    this.stateSweeper = repeat(STATE_SWEEP_MS, () => void this.sweepState());
    void this.sweepState();
  }

  /** @throws HostedFailure during a back-off, without a free slot, or while the service stops */
  programFor(requestedRef: ProgramRef): LiveProgram {
    let owner = this.owners.get(requestedRef.ownerId);
    if (!owner) this.owners.set(requestedRef.ownerId, (owner = new OwnerVersions(requestedRef)));
    const ref = owner.versionFor(requestedRef);
    return owner.acceptingOf(ref) ?? this.launch(owner, ref);
  }

  /**
   * Resolves when the version accepts requests or has failed. Older ones then stop after their requests.
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
   * See {@link Hosting.renew}. Resolves when the program accepts requests or has failed.
   *
   * @throws HostedFailure as {@link programFor}
   */
  async renew(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    if (!owner) return;
    owner.endRest();
    const program = owner.acceptingOf(owner.current);
    await program?.settled;
    if (!program || !(await isOutdated(this.services.owners, program.ref, program.valuesDigest))) return;
    // A program started meanwhile has the current values.
    if (owner.acceptingOf(owner.current) === program) await this.launch(owner, program.ref).settled;
  }

  async forget(ownerId: string): Promise<void> {
    const owner = this.owners.get(ownerId);
    await Promise.all([...(owner?.programs ?? [])].map((program) => program.stop()));
    if (owner?.programs.size === 0) this.owners.delete(ownerId);
    await rm(join(this.services.stateRoot, ownerId), { recursive: true, force: true, maxRetries: 3 });
  }

  /** See {@link LocalHosting.endStateful}. The promise never rejects. */
  async endStateful(graceMs: number): Promise<void> {
    const programs = this.services.population.all.filter(({ ref }) => ref.isStateful);
    await Promise.all(programs.map((program) => (graceMs > 0 ? program.drain(graceMs) : program.stop(0))));
  }

  /** @throws file system errors */
  async ownersWithState(): Promise<string[]> {
    return (await namesIn(this.services.stateRoot)).filter((name) => isUUID(name));
  }

  /** Takes at most 5 s. The promise never rejects. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.sweeper.stop();
    this.stateSweeper.stop();
    const programs = this.services.population.all;
    const ended = Promise.all(programs.map((program) => program.stop()));
    await withTimeout(CLOSE_MS, ended, undefined);
    for (const program of programs) if (!program.isGone) program.instance?.kill();
    await withTimeout(CLOSE_BY_FORCE_MS, ended, undefined);
    this.services.watchdog.close();
    await this.services.runDirs.close();
  }

  private launch(owner: OwnerVersions, ref: ProgramRef): LiveProgram {
    if (this.isClosing) throw stopping();
    const { backoff } = owner;
    const restMs = backoff.restMs(performance.now());
    if (restMs > 0) throw restingError(backoff.crashes, restMs);
    const program = new LiveProgram(ref, this.services, backoff, this.freePlace(owner, ref));
    this.services.population.add(program);
    owner.programs.add(program);
    void program.settled.then(() => this.drainOthers(owner, program));
    void program.gone.then(() => owner.programs.delete(program));
    return program;
  }

  private drainOthers(owner: OwnerVersions, successor: LiveProgram): void {
    const { wallMs } = this.services.limits;
    if (owner.current.id !== successor.ref.id) {
      if (successor.acceptsCalls) void successor.drain(wallMs);
      return;
    }
    for (const program of owner.accepting) if (program !== successor) void program.drain(wallMs);
  }

  /**
   * Resolves when the version can start. A stateful one waits until all others have exited, since two must never write
   * to its data. Others wait while the owner has two programs. Without a predecessor, or while memory is short, the
   * program may need a slot: the longest idle program is stopped, those with open streams last.
   *
   * @throws HostingUnavailableError, HostAwayError when no program can be stopped
   */
  private freePlace(owner: OwnerVersions, { isStateful }: ProgramRef): Promise<unknown> {
    const { env, limits, population } = this.services;
    const hasPlace = owner.accepting.length > 0;
    const drainMs = Math.min(limits.wallMs, STARTS_WAIT_MS_MAX);
    const oldPrograms = [...owner.programs].slice(0, isStateful ? undefined : -1);
    const awaited = oldPrograms.map((program) => program.drain(drainMs));
    const { accepting } = population;
    const isFull = accepting.length >= env.runtimeLiveMax;
    if (hasPlace || (!isFull && !population.isMemoryShort(STARTED_MB))) return Promise.all(awaited);
    const victim = idleLongest(accepting);
    if (!victim) throw isFull ? noFreePlace() : noMemory();
    return Promise.all([...awaited, victim.stop()]);
  }

  private async sweepState(): Promise<void> {
    const isRunning = (ownerId: string) => (this.owners.get(ownerId)?.programs.size ?? 0) > 0;
    const { deletionTime, stateRoot } = this.services;
    try {
      const now = await deletionTime();
      if (now) await removeUnusedState(stateRoot, isRunning, now);
    } catch (error) {
      this.logger.warn({ msg: 'unused session data was not removed', err: error });
    }
  }

  private sweep(): void {
    const { tuning, population, watchdog } = this.services;
    population.relieveMemory();
    const now = performance.now();
    for (const program of population.all) {
      if (!program.isIdle) continue;
      if (!program.hasStreams && now - program.idleSince >= tuning.runtimeIdleMs) void program.stop();
      else watchdog.followIfActive(program);
    }
    for (const [id, owner] of this.owners) if (owner.isForgettable(now)) this.owners.delete(id);
  }
}
