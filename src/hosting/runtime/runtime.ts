import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { memoryBytes, type Env } from '../../config/env.js';
import type { Tuning } from '../../config/tuning.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { Engines } from '../engine.js';
import { LocalHosting, type ProgramOwners } from '../hosting.js';
import { HostedFailure } from '../hosting.errors.js';
import type { EngineName, HostedRequest, ProgramLimits, ProgramRef } from '../hosting.types.js';
import { notLoaded } from './termination-errors.js';
import { LivePrograms, type Memory } from './live-programs.js';
import { ProgramPool } from './program-pool.js';
import { HostedCall, type CallHost } from './hosted-call.js';
import { STARTS_WAIT_MS_MAX, type LiveProgram, type RuntimeCounts } from './live-program.js';
import { ProgramTraces } from './program-traces.js';
import { digestOf, RestartCoalescer } from './restart-coalescer.js';
import { RunDirs } from './run-dirs.js';
import { Watchdog } from './watchdog.js';

/**
 * One start takes a core for about 80 ms, and more starts than cores delay each other; at least two, since a start also
 * waits for files.
 */
const STARTS_MAX = Math.max(2, availableParallelism());

const RECHECK_LEASES = 4;

export interface RuntimeStats extends RuntimeCounts {
  live: number;
  starting: number;
  /** Requests in flight, including open event streams. */
  inFlight: number;
}

export interface RuntimeOptions {
  env: Env;
  tuning: Tuning;
  owners: ProgramOwners;
  engines: Engines;
  /** Null if nothing was deleted. */
  deletionTime: () => Promise<Date | null>;
  memory?: Memory;
}

export class Runtime extends LocalHosting implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('hosting');
  private readonly renewals = new RestartCoalescer();
  private readonly rechecks: Repeat;
  private rechecking: Promise<void> | null = null;

  static create({ env, tuning, owners, engines, deletionTime, memory = memoryOf(env) }: RuntimeOptions): Runtime {
    const limits: ProgramLimits = {
      cpuMs: env.runtimeCpuMs,
      wallMs: env.runtimeWallMs,
      memoryMb: env.runtimeMemoryMb,
      responseBytes: tuning.runtimeResponseBytes,
      logBytes: tuning.runtimeLogBytes,
      concurrency: tuning.runtimeConcurrency,
    };
    const population = new LivePrograms(owners, memory);
    const counts: RuntimeCounts = {
      ...{ starts: 0, crashes: 0, cpuMs: 0, dropped: 0 },
      kills: { cpu: 0, stall: 0, memory: 0 },
      refused: { busy: 0, resting: 0, start: 0, unavailable: 0 },
    };
    const pool = new ProgramPool({
      ...{ env, tuning, limits, owners, engines, population, counts, deletionTime },
      runDirs: new RunDirs(),
      stateRoot: join(env.dataDir, 'hosting', 'state'),
      starts: KeyedLimiter.fair(STARTS_MAX, Math.min(limits.wallMs, STARTS_WAIT_MS_MAX)),
      watchdog: new Watchdog(population),
    });
    return new Runtime(pool);
  }

  constructor(private readonly pool: ProgramPool) {
    super();
    this.rechecks = repeat(pool.services.tuning.runtimeLeaseMs * RECHECK_LEASES, () => {
      this.rechecking ??= this.recheck().finally(() => (this.rechecking = null));
    });
  }

  onApplicationBootstrap(): void {
    void this.pool.services.runDirs.removeStale();
  }

  async onApplicationShutdown(): Promise<void> {
    this.rechecks.stop();
    await this.pool.close();
  }

  dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void {
    const { counts, owners, limits } = this.pool.services;
    const host = new Host(counts, owners, ref);
    const call = new HostedCall(request, handler, limits, host);
    try {
      const program = this.pool.programFor(ref);
      host.program = program;
      program.acceptCall(call);
    } catch (error) {
      call.fail(this.failureOf(error, ref));
    }
  }

  whyNot(engine: EngineName): Promise<string | null> {
    return this.pool.services.engines.whyNot(engine);
  }

  async forget(ownerId: string): Promise<void> {
    await this.pool
      .forget(ownerId)
      .catch((error: unknown) =>
        this.logger.error({ msg: `the state of ${ownerId} could not be removed`, err: error }),
      );
  }

  async current(ref: ProgramRef): Promise<void> {
    try {
      await this.pool.swap(ref);
    } catch (error) {
      this.failureOf(error, ref);
    }
  }

  renew(ownerId: string): Promise<void> {
    return this.renewals.run(ownerId, () =>
      this.pool.renew(ownerId).catch((error: unknown) => void this.failureOf(error, null)),
    );
  }

  async endStateful(graceMs: number): Promise<void> {
    await this.pool.endStateful(graceMs);
  }

  ownersWithState(): Promise<string[]> {
    return this.pool.ownersWithState();
  }

  livePrograms(): Record<string, number> {
    return this.pool.services.population.byAccount();
  }

  stats(): RuntimeStats {
    const { population, counts } = this.pool.services;
    const { all } = population;
    const starting = all.filter(({ isStarting }) => isStarting).length;
    const inFlight = all.reduce((sum, { calls }) => sum + calls.count + calls.streamCount, 0);
    const copied = { ...counts, kills: { ...counts.kills }, refused: { ...counts.refused } };
    return { live: all.length - starting, starting, inFlight, ...copied };
  }

  memoryMb(): number {
    return this.pool.services.population.memoryMb();
  }

  /**
   * Compares the values of running programs with the current ones, in case a message was lost: a program that is never
   * idle would otherwise use a revoked secret indefinitely. One program after the other, to spread the queries.
   * Programs continue while the database is unavailable, since no change is known.
   */
  private async recheck(): Promise<void> {
    const { owners, population } = this.pool.services;
    for (const { valuesDigest, ref, acceptsCalls } of population.all) {
      if (valuesDigest === null || !acceptsCalls) continue;
      try {
        const values = await owners.ownerOf(ref.kind).valuesOf(ref);
        if (digestOf(values) !== valuesDigest) await this.renew(ref.ownerId);
      } catch (error) {
        owners.log(ref, 'debug', { msg: 'the current values of a program could not be read', err: error });
      }
    }
  }

  private failureOf(error: unknown, ref: ProgramRef | null): HostedFailure {
    if (error instanceof HostedFailure) return error;
    const entry = { msg: 'a program could not be started', err: error };
    if (ref) this.pool.services.owners.log(ref, 'error', entry);
    else this.logger.error(entry);
    return notLoaded();
  }
}

function memoryOf({ workers }: Env): Memory {
  return { total: memoryBytes(), own: () => workers * process.memoryUsage.rss() };
}

class Host implements CallHost {
  program: LiveProgram | null = null;

  constructor(
    private readonly counts: RuntimeCounts,
    private readonly owners: ProgramOwners,
    private readonly ref: ProgramRef,
  ) {}

  finishCall(call: HostedCall, isWhole: boolean): number {
    return this.program?.finishCall(call, isWhole) ?? 0;
  }

  countRefusal(error: HostedFailure): void {
    this.counts.refused[error.refusal ?? 'unavailable'] += 1;
  }

  reportOutcome(trace: Parameters<CallHost['reportOutcome']>[0]): void {
    this.counts.cpuMs += trace.cpuMs ?? 0;
    if (this.program) this.program.reportOutcome(trace);
    else new ProgramTraces(this.owners, this.ref, null).reportOutcome(trace);
  }
}
