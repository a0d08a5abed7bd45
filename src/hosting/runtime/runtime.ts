import {
  Inject,
  Injectable,
  Logger,
  Optional,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { Env, memoryBytes } from '../../config/env.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import { Engine } from '../engine.js';
import { LocalHosting, ProgramOwners } from '../hosting.js';
import { HostedFailure, HostingUnavailableError } from '../hosting.errors.js';
import type { EngineName, HostedRequest, ProgramLimits, ProgramRef } from '../hosting.types.js';
import { notLoaded, reasonOf } from './termination-errors.js';
import { ProgramPool, type Memory } from './program-pool.js';
import { HostedCall, type CallHost } from './hosted-call.js';
import type { LiveProgram, RuntimeCounts } from './live-program.js';
import { ProgramTraces } from './program-traces.js';
import { digestOf, RestartCoalescer } from './restart-coalescer.js';
import { RunDirs } from './run-dirs.js';

/** Provides the engines of this process: a list of {@link Engine}. Only that of bundles can be absent. */
export const ENGINES = Symbol('engines');

const NO_BUNDLES = 'This service runs no bundles: its operator allows them with RUNTIME_BUNDLES.';

/** Interval of checks for outdated programs, in leases; 60 s by default. */
const RECHECK_LEASES = 4;

/** Current programs of this process and its counters. */
export interface RuntimeStats extends RuntimeCounts {
  /** Running programs. */
  live: number;
  /** Starting programs. */
  starting: number;
  /** Requests in flight, including open event streams. */
  inFlight: number;
  /** Programs that the watchdog follows: active ones, and those active in the last seconds. */
  watched: number;
}

/** Runs programs in this process. */
@Injectable()
export class Runtime extends LocalHosting implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('hosting');
  private readonly limits: ProgramLimits;
  private readonly runDirs = new RunDirs();
  private readonly pool: ProgramPool;
  private readonly renewals = new RestartCoalescer();
  private readonly rechecks: Repeat;
  private rechecking: Promise<void> | null = null;

  constructor(
    env: Env,
    private readonly programs: ProgramOwners,
    @Inject(ENGINES) private readonly engines: readonly Engine[],
    @Optional() memory: Memory = { total: memoryBytes(), own: () => process.memoryUsage.rss() },
  ) {
    super();
    this.limits = limitsOf(env);
    this.pool = new ProgramPool({
      env,
      memory,
      limits: this.limits,
      programs,
      engineOf: (name) => this.engineOf(name),
      runDirs: this.runDirs,
    });
    this.rechecks = repeat(env.runtimeLeaseMs * RECHECK_LEASES, () => {
      this.rechecking ??= this.recheck().finally(() => (this.rechecking = null));
    });
  }

  onApplicationBootstrap(): void {
    void this.runDirs.removeStale();
  }

  async onApplicationShutdown(): Promise<void> {
    this.rechecks.stop();
    await this.pool.close();
  }

  dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void {
    const host = new Host(this.pool.counts, this.programs, ref);
    const call = new HostedCall(request, handler, this.limits, host);
    try {
      const program = this.pool.programFor(ref);
      host.program = program;
      program.take(call);
    } catch (error) {
      call.fail(this.failureOf(error, ref));
    }
  }

  async whyNot(engine: EngineName): Promise<string | null> {
    const found = this.engines.find(({ name }) => name === engine);
    return found ? found.whyNot() : NO_BUNDLES;
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
    return this.pool.liveByAccount();
  }

  stats(): RuntimeStats {
    const { live, counts, watched } = this.pool;
    const starting = live.filter(({ isStarting }) => isStarting).length;
    const inFlight = live.reduce((sum, { calls }) => sum + calls.count + calls.streamCount, 0);
    const copied = { ...counts, kills: { ...counts.kills }, refused: { ...counts.refused } };
    return { live: live.length - starting, starting, inFlight, watched, ...copied };
  }

  /** Anonymous memory of all programs in MB, where the system provides it: 30 µs per program. */
  memoryMb(): number {
    return this.pool.memoryMb();
  }

  /**
   * Compares the values of running programs with the current ones, in case a message was lost: a program that is never
   * idle would otherwise use a revoked secret without end. One program after the other, to spread the queries. Programs
   * continue while the database does not answer, since no change is known.
   */
  private async recheck(): Promise<void> {
    for (const { valuesDigest, ref, acceptsCalls } of this.pool.live) {
      if (valuesDigest === null || !acceptsCalls) continue;
      try {
        const values = await this.programs.of(ref.kind).valuesOf(ref);
        if (digestOf(values) !== valuesDigest) await this.renew(ref.ownerId);
      } catch (error) {
        this.programs.log(ref, 'debug', { msg: 'the current values of a program could not be read', err: error });
      }
    }
  }

  private engineOf(name: EngineName): Engine {
    const engine = this.engines.find((candidate) => candidate.name === name);
    if (!engine) throw new HostingUnavailableError(NO_BUNDLES);
    return engine;
  }

  /** Converts unexpected errors to a generic failure and logs them. */
  private failureOf(error: unknown, ref: ProgramRef | null): HostedFailure {
    if (error instanceof HostedFailure) return error;
    const entry = { msg: 'a program could not be started', err: error };
    if (ref) this.programs.log(ref, 'error', entry);
    else this.logger.error(entry);
    return notLoaded();
  }
}

/** Owner of a call, before and after a program received it. */
class Host implements CallHost {
  program: LiveProgram | null = null;

  constructor(
    private readonly counts: RuntimeCounts,
    private readonly programs: ProgramOwners,
    private readonly ref: ProgramRef,
  ) {}

  left(call: HostedCall, isWhole: boolean): number {
    return this.program?.left(call, isWhole) ?? 0;
  }

  refused(error: HostedFailure): void {
    this.counts.refused[reasonOf(error)] += 1;
  }

  ended(trace: Parameters<CallHost['ended']>[0]): void {
    this.counts.cpuMs += trace.cpuMs ?? 0;
    if (this.program) this.program.ended(trace);
    else new ProgramTraces(this.programs, this.ref, () => []).ended(trace);
  }
}

function limitsOf(env: Env): ProgramLimits {
  return {
    cpuMs: env.runtimeCpuMs,
    wallMs: env.runtimeWallMs,
    memoryMb: env.runtimeMemoryMb,
    responseBytes: env.runtimeResponseMb * 1_048_576,
    logBytes: env.runtimeLogKb * 1_024,
    concurrency: env.runtimeConcurrency,
  };
}
