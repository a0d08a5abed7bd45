/**
 * One version of a program in this process, from start to exit. A stopped program never returns; its successor is
 * another object.
 *
 * Requests that arrive during the start wait. Stop: reject new requests, wait for running ones up to a limit, ask the
 * process to exit, and kill it after 2 s.
 *
 * A program killed for a limit (`cpu`, `stall`, `memory`) fails the request that caused it with that limit, and the
 * others with a retryable error; for memory all fail alike, since all used it. A failed start or an unexpected exit
 * counts as a crash, after which the owner's starts back off for growing times.
 */
import { join } from 'node:path';
import type { Env } from '../../config/env.js';
import type { Tuning } from '../../config/tuning.js';
import { valueRedactor } from '../../platform/telemetry/redact-values.js';
import { NoSlotError, type KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import type { Engines, Instance, InstanceExit, ProgramLog } from '../engine.js';
import { HostedFailure, HostingUnavailableError, messageForOwner, type RefusalReason } from '../hosting.errors.js';
import type { ProgramLimits, ProgramRef, Trace } from '../hosting.types.js';
import type { ProgramOwners } from '../hosting.js';
import { CpuMeter, ProcessMetrics } from './process-metrics.js';
import {
  collateralError,
  limitError,
  noFreePlace,
  notLoaded,
  overMemory,
  stopping,
  whenGone,
  type KillReason,
} from './termination-errors.js';
import type { HostedCall } from './hosted-call.js';
import type { Backoff } from './backoff.js';
import { ProgramCalls } from './program-calls.js';
import { ProgramTraces } from './program-traces.js';
import { digestOf } from './restart-coalescer.js';
import type { RunDirs } from './run-dirs.js';

/** Time for an orderly exit. workerd takes 65 ms. */
const STOP_GRACE_MS = 2_000;

/** Time after which a start releases its slot: a module that never finishes loading must not block other starts. */
const START_SLOT_MS = 5_000;

/** Longest wait of a start: for its slot, and for older versions with requests in flight. */
export const STARTS_WAIT_MS_MAX = 60_000;

export interface RuntimeCounts {
  starts: number;
  crashes: number;
  kills: Record<KillReason, number>;
  /** Number of requests rejected before a program received them. */
  refused: Record<RefusalReason, number>;
  /** CPU time of finished requests. */
  cpuMs: number;
  dropped: number;
}

export interface ProgramServices {
  env: Env;
  tuning: Tuning;
  limits: ProgramLimits;
  owners: ProgramOwners;
  engines: Engines;
  runDirs: RunDirs;
  stateRoot: string;
  starts: KeyedLimiter;
  counts: RuntimeCounts;
  watchdog: { watch(program: LiveProgram): void };
  /** @throws ProgramBusyError */
  population: { admit(program: LiveProgram): Promise<void> };
}

type State = 'starting' | 'ready' | 'stopping' | 'gone';

export class LiveProgram {
  readonly calls: ProgramCalls;
  private readonly traces: ProgramTraces;
  private state: State = 'starting';
  private isKilled = false;
  private resolveGone: () => void = () => undefined;
  /** Resolves after the exit and the cleanup. */
  readonly gone = new Promise<void>((resolve) => (this.resolveGone = resolve));
  readonly settled: Promise<void>;
  private runDir: string | null = null;
  instance: Instance | null = null;
  figures: ProcessMetrics | null = null;
  /** Null until the program counts for its account. */
  accountId: string | null = null;
  valuesDigest: string | null = null;

  /** @param after resolves when the program may start */
  constructor(
    readonly ref: ProgramRef,
    private readonly services: ProgramServices,
    private readonly backoff: Backoff,
    after: Promise<unknown>,
  ) {
    this.calls = new ProgramCalls(services.limits.concurrency);
    this.traces = new ProgramTraces(services.owners, ref, this.calls);
    this.settled = this.start(after).catch((error: unknown) => this.notStarted(error));
  }

  get limits(): ProgramLimits {
    return this.services.limits;
  }

  get stallMs(): number {
    return this.services.tuning.runtimeStallMs;
  }

  get isStarting(): boolean {
    return this.state === 'starting';
  }

  get acceptsCalls(): boolean {
    return this.state === 'starting' || this.state === 'ready';
  }

  /** True without running requests. Streams are ignored, since their clients reconnect. */
  get isIdle(): boolean {
    return this.state === 'ready' && this.calls.count === 0;
  }

  get hasStreams(): boolean {
    return this.calls.streamCount > 0;
  }

  get idleSince(): number {
    return this.calls.idleSince;
  }

  /** True with requests in flight, or shortly after the last one, whose work may continue. */
  get isAtWork(): boolean {
    return this.state === 'ready' || (this.state === 'stopping' && !this.isKilled && this.calls.count > 0);
  }

  get isGone(): boolean {
    return this.state === 'gone';
  }

  acceptCall(call: HostedCall): void {
    if (this.calls.admit(call) && this.state === 'ready') this.send(call);
  }

  finishCall(call: HostedCall, isWhole: boolean): number {
    if (isWhole) this.backoff.reset();
    return this.calls.removeCall(call, isWhole);
  }

  reportOutcome(trace: Parameters<ProgramTraces['reportOutcome']>[0]): void {
    this.traces.reportOutcome(trace);
  }

  /** Stops the program after its requests. Another call can shorten the wait. The promise never rejects. */
  async drain(withinMs: number): Promise<void> {
    await this.settled;
    if (!this.acceptsCalls) {
      this.calls.shortenWait(withinMs);
      return this.gone;
    }
    this.state = 'stopping';
    await this.calls.drained(withinMs);
    return this.stop();
  }

  /** Kills the program after `graceMs`. The promise never rejects. */
  async stop(graceMs = STOP_GRACE_MS): Promise<void> {
    if (this.state === 'gone') return;
    this.state = 'stopping';
    if (!this.instance) {
      this.calls.fail(stopping);
      return this.gone;
    }
    this.calls.closeStreams();
    await this.instance.stop(graceMs).catch((error: unknown) => this.report('could not be stopped', error));
    return this.gone;
  }

  /** Kills the program. The request that caused this fails with the exceeded limit, the others with a retryable error. */
  kill(reason: KillReason, guilty: HostedCall | null): void {
    if (this.state === 'gone' || this.isKilled) return;
    this.isKilled = true;
    this.state = 'stopping';
    this.services.counts.kills[reason] += 1;
    this.log('warn', { msg: `a program was killed: ${reason}` });
    this.instance?.kill();
    const verdict = limitError(reason, this.limits, this.stallMs);
    this.backoff.crashed(performance.now());
    this.attribute(this.calls.likelyCause(guilty), verdict);
    const otherError = reason === 'memory' ? overMemory(this.limits.memoryMb) : collateralError();
    this.calls.fail((call) => (call === guilty ? verdict : otherError));
  }

  private attribute(call: HostedCall | null, { outcome, name, message }: HostedFailure): void {
    this.traces.attribute(call?.invocationId ?? null);
    if (!call?.isEnded) return;
    const exceptions = [{ at: Date.now(), name, message }];
    this.traces.reportOutcome({ invocationId: call.invocationId, outcome, lines: [], exceptions });
  }

  private send(call: HostedCall): void {
    if (!this.instance || call.isEnded) return;
    this.calls.openAccount(call);
    this.services.watchdog.watch(this);
    call.send(this.instance);
  }

  private async start(after: Promise<unknown>): Promise<void> {
    await after;
    await this.services.starts.run(this.ref.ownerId, () => this.startNow(), START_SLOT_MS);
  }

  private async startNow(): Promise<void> {
    const { owners, engines, runDirs, stateRoot, limits, counts, population } = this.services;
    if (this.state !== 'starting') throw stopping();
    const engine = engines.requireEngine(this.ref.engine);
    const whyNot = await engine.whyNot();
    if (whyNot !== null) throw new HostingUnavailableError(whyNot);
    await population.admit(this);
    const runDir = await runDirs.make();
    this.runDir = runDir;
    counts.starts += 1;
    const stateDir = join(stateRoot, this.ref.ownerId);
    const instance = await owners.ownerOf(this.ref.kind).withProgram(this.ref, (program) => {
      this.valuesDigest = digestOf(program);
      const redact = valueRedactor(Object.values(program.secrets));
      const onTrace = (trace: Trace) => this.traces.receiveTrace(redacted(trace, redact));
      return engine.start(program, { limits, runDir, stateDir, onTrace, redact, log: this.log });
    });
    this.instance = instance;
    void instance.exited.then((exit) => this.exited(exit)).catch((error: unknown) => this.report('ended badly', error));
    if (this.state !== 'starting') return instance.stop(STOP_GRACE_MS);
    this.figures = ProcessMetrics.open(instance.pid);
    this.calls.meter = new CpuMeter(() => this.figures?.cpu() ?? null);
    this.state = 'ready';
    this.traces.reportStart();
    this.calls.sendAll((call) => this.send(call));
  }

  private async notStarted(error: unknown): Promise<void> {
    let failure: HostedFailure;
    if (error instanceof HostedFailure) failure = error;
    else if (error instanceof NoSlotError) failure = noFreePlace();
    else {
      this.report('could not be loaded', error);
      failure = notLoaded();
    }
    if (failure.kind === 'upstream') {
      this.noteCrash();
      this.tellOwner(failure.name, messageForOwner(failure));
    }
    this.traces.reportStart();
    await this.finish(failure);
  }

  private async exited(exit: InstanceExit): Promise<void> {
    const failure = whenGone(exit, this.limits);
    if (this.state !== 'stopping') {
      this.noteCrash();
      this.attribute(this.calls.likelyCause(), failure);
      if (exit.reason === 'crashed') this.tellOwner(failure.name, exit.detail);
    }
    await this.finish(failure);
  }

  private noteCrash(): void {
    this.services.counts.crashes += 1;
    this.backoff.crashed(performance.now());
  }

  /** Reports the last output, which callers cannot read, to the log of the owner. */
  private tellOwner(name: string, message: string): void {
    const exceptions = [{ at: Date.now(), name, message }];
    this.traces.receiveTrace({ ref: this.ref, invocationId: '', lines: [], exceptions });
  }

  private readonly log: ProgramLog = (level, entry) => this.services.owners.log(this.ref, level, entry);

  private report(event: string, error: unknown): void {
    this.log('error', { msg: `a program ${event}`, err: error });
  }

  private async finish(failure: HostedFailure): Promise<void> {
    this.state = 'gone';
    this.figures?.close();
    this.services.counts.dropped += this.traces.dropped;
    this.calls.fail(() => failure);
    if (this.runDir) await this.services.runDirs.remove(this.runDir);
    this.resolveGone();
  }
}

function redacted(trace: Trace, redact: (text: string) => string): Trace {
  const lines = trace.lines.map((line) => ({ ...line, message: redact(line.message) }));
  const exceptions = trace.exceptions.map(({ name, message, stack, ...rest }) => ({
    ...{ ...rest, name: redact(name), message: redact(message) },
    ...(stack === undefined ? {} : { stack: redact(stack) }),
  }));
  return { ...trace, lines, exceptions };
}
