import { Logger } from '@nestjs/common';
import { NoSlotError } from '../../platform/limits/fair-semaphore.js';
import type { Engine, Instance, InstanceExit } from '../engine.js';
import { HostedFailure, HostingUnavailableError } from '../hosting.errors.js';
import type { ProgramLimits, ProgramRef } from '../hosting.types.js';
import type { Programs } from '../programs.js';
import { CpuMeter } from './cpu-meter.js';
import { bystander, culprit, noRoom, notLoaded, overMemory, stopping, whenGone } from './termination-errors.js';
import type { KillReason, RefusalReason } from './termination-errors.js';
import type { HostedCall } from './hosted-call.js';
import { ProcessMetrics } from './process-metrics.js';
import { ProgramCalls } from './program-calls.js';
import { ProgramTraces } from './program-traces.js';
import { digestOf } from './restart-coalescer.js';
import type { RunDirs } from './run-dirs.js';
import type { StartSemaphore } from './start-semaphore.js';

/** How long a program may take to end in order. workerd takes 65 ms. */
const STOP_GRACE_MS = 2_000;

/** What became of a program in numbers, for all of one process. */
export interface RuntimeCounts {
  starts: number;
  crashes: number;
  kills: Record<KillReason, number>;
  /** Requests that no program was given. */
  refused: Record<RefusalReason, number>;
  /** CPU time of requests that are over. */
  cpuMs: number;
  /** Pieces of what programs said that were not kept. */
  dropped: number;
}

/** What a program needs around it. */
export interface ProgramSetting {
  limits: ProgramLimits;
  stallMs: number;
  programs: Programs;
  engine: Engine;
  runDirs: RunDirs;
  stateDir: string;
  /** Lets so many start at once. */
  starts: StartSemaphore;
  counts: RuntimeCounts;
  /** It has work: look after it. */
  watch(program: LiveProgram): void;
  hasCrashedLately(): boolean;
  /** It gave a whole answer. */
  answered(): void;
  /** It did not start, or ended otherwise than asked to. */
  crashed(lastWords: string): void;
}

type State = 'starting' | 'ready' | 'stopping' | 'gone';

/** One version of a program in this process, from its start to its end. */
export class LiveProgram {
  private readonly logger = new Logger('hosting');
  readonly calls: ProgramCalls;
  private readonly traces: ProgramTraces;
  private state: State = 'starting';
  private isKilled = false;
  private resolveGone: () => void = () => undefined;
  /** Resolves when nothing of it is left. */
  readonly gone = new Promise<void>((resolve) => (this.resolveGone = resolve));
  /** Resolves when it takes requests, or never will. */
  readonly settled: Promise<void>;
  private runDir: string | null = null;
  instance: Instance | null = null;
  figures: ProcessMetrics | null = null;
  /** Of the values it was started with; null before. */
  given: string | null = null;

  /** @param after resolves when there is room for it */
  constructor(
    readonly ref: ProgramRef,
    private readonly setting: ProgramSetting,
    after: Promise<unknown>,
  ) {
    this.calls = new ProgramCalls(setting.limits.concurrency);
    this.traces = new ProgramTraces(setting.programs, ref, () => this.calls.all.map((call) => call.invocationId));
    this.settled = this.start(after).catch((error: unknown) => this.notStarted(error));
  }

  get limits(): ProgramLimits {
    return this.setting.limits;
  }

  get stallMs(): number {
    return this.setting.stallMs;
  }

  get isStarting(): boolean {
    return this.state === 'starting';
  }

  /** False once it is being stopped: nothing is sent there any more. */
  get takesCalls(): boolean {
    return this.state === 'starting' || this.state === 'ready';
  }

  /** Streams do not count: their clients come back. */
  get isIdle(): boolean {
    return this.state === 'ready' && this.calls.count === 0;
  }

  get hasStreams(): boolean {
    return this.calls.streamCount > 0;
  }

  get idleSince(): number {
    return this.calls.idleSince;
  }

  /** It works on requests, or may still do so on the last one's behalf. */
  get isAtWork(): boolean {
    return this.state === 'ready' || (this.state === 'stopping' && !this.isKilled && this.calls.count > 0);
  }

  get isGone(): boolean {
    return this.state === 'gone';
  }

  /** Works on a request as soon as it runs, or ends it with the reason why not. */
  take(call: HostedCall): void {
    if (this.calls.admit(call) && this.state === 'ready') this.send(call);
  }

  /** Its part at the end of a request; see `CallHost`. */
  left(call: HostedCall, isWhole: boolean): number {
    if (isWhole) this.setting.answered();
    return this.calls.left(call, isWhole);
  }

  ended(trace: Parameters<ProgramTraces['ended']>[0]): void {
    this.traces.ended(trace);
  }

  /** Takes no new requests, lets those in flight end as they began, for so long at most, and stops. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    await this.settled;
    if (!this.takesCalls) return this.gone;
    this.state = 'stopping';
    await this.calls.drained(withinMs);
    return this.stop();
  }

  /** Ends it now, in order as far as it follows. Never rejects. */
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

  /** Ends it by force. The request that it is ended for hears that, the others that they may try again. */
  kill(reason: KillReason, guilty: HostedCall | null): void {
    if (this.state === 'gone' || this.isKilled) return;
    this.isKilled = true;
    this.state = 'stopping';
    this.setting.counts.kills[reason] += 1;
    this.logger.warn(`a program of ${this.ref.ownerId} was ended: ${reason}`);
    this.instance?.kill();
    const verdict = culprit(reason, this.limits, this.stallMs);
    this.setting.crashed(verdict.message);
    this.blame(this.calls.likely(guilty), verdict);
    const others = reason === 'memory' ? overMemory(this.limits.memoryMb) : bystander();
    this.calls.fail((call) => (call === guilty ? verdict : others));
  }

  /** What it still says belongs to this request. Its record may be there already: then it learns how it really ended. */
  private blame(call: HostedCall | null, { outcome, name, message }: HostedFailure): void {
    this.traces.blame(call?.invocationId ?? null);
    if (!call?.isEnded) return;
    const exceptions = [{ at: Date.now(), name, message }];
    this.traces.ended({ invocationId: call.invocationId, outcome, lines: [], exceptions });
  }

  private send(call: HostedCall): void {
    if (!this.instance || call.isEnded) return;
    this.calls.sent(call);
    this.setting.watch(this);
    call.send(this.instance);
  }

  private async start(after: Promise<unknown>): Promise<void> {
    await after;
    await this.setting.starts.run(this.ref.ownerId, () => this.startNow());
  }

  private async startNow(): Promise<void> {
    const { programs, engine, runDirs, stateDir, limits, counts } = this.setting;
    if (this.state !== 'starting') throw stopping();
    const whyNot = await engine.whyNot();
    if (whyNot !== null) throw new HostingUnavailableError(whyNot);
    const runDir = await runDirs.make();
    this.runDir = runDir;
    counts.starts += 1;
    const onTrace = this.traces.told.bind(this.traces);
    const instance = await programs.of(this.ref.kind).withProgram(this.ref, (program) => {
      this.given = digestOf(program);
      const hasCrashedLately = this.setting.hasCrashedLately();
      return engine.start(program, { limits, runDir, stateDir, hasCrashedLately, onTrace });
    });
    this.instance = instance;
    void instance.exited.then((exit) => this.exited(exit)).catch((error: unknown) => this.report('ended badly', error));
    if (this.state !== 'starting') return instance.stop(STOP_GRACE_MS);
    this.figures = ProcessMetrics.of(instance.pid);
    this.calls.meter = new CpuMeter(() => this.figures?.cpu() ?? null);
    this.state = 'ready';
    this.traces.started();
    this.calls.each((call) => this.send(call));
  }

  private async notStarted(error: unknown): Promise<void> {
    let failure: HostedFailure;
    if (error instanceof HostedFailure) failure = error;
    else if (error instanceof NoSlotError) failure = noRoom();
    else {
      this.report('could not be loaded', error);
      failure = notLoaded();
    }
    if (failure.kind === 'upstream') this.noteCrash(failure.message);
    this.traces.started();
    await this.leave(failure);
  }

  private async exited(exit: InstanceExit): Promise<void> {
    const failure = whenGone(exit, this.limits);
    if (this.state !== 'stopping') {
      this.noteCrash(exit.detail);
      this.blame(this.calls.likely(), failure);
    }
    await this.leave(failure);
  }

  private noteCrash(lastWords: string): void {
    this.setting.counts.crashes += 1;
    this.setting.crashed(lastWords);
  }

  private report(what: string, error: unknown): void {
    this.logger.error({ msg: `a program of ${this.ref.ownerId} ${what}`, err: error });
  }

  private async leave(failure: HostedFailure): Promise<void> {
    this.state = 'gone';
    this.figures?.close();
    this.setting.counts.dropped += this.traces.dropped;
    this.calls.fail(() => failure);
    if (this.runDir) await this.setting.runDirs.remove(this.runDir);
    this.resolveGone();
  }
}
