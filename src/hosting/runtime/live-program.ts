import { Logger } from '@nestjs/common';
import type { Slots } from '../../platform/limits/slots.js';
import { NoSlotError } from '../../platform/limits/slots.js';
import type { Engine, Instance, InstanceExit } from '../engine.js';
import { HostedFailure, HostingUnavailableError } from '../hosting.errors.js';
import type { ProgramLimits, ProgramRef } from '../hosting.types.js';
import type { Programs } from '../programs.js';
import { CpuMeter, type CpuAccount } from './cpu-meter.js';
import {
  busy,
  bystander,
  culprit,
  noRoom,
  notLoaded,
  overMemory,
  stopping,
  tooManyStreams,
  whenGone,
  type KillReason,
} from './endings.js';
import type { HostedCall } from './hosted-call.js';
import { ProcessFigures } from './process-figures.js';
import { ProgramTraces } from './program-traces.js';
import type { RunDirs } from './run-dirs.js';

/** Open event streams of one program; each holds two sockets. */
const STREAMS_MAX = 256;

/** For so long after its answer, a request may be blamed for the end of its program: workerd lets `waitUntil` take 30 s. */
const BLAME_MS = 35_000;

/** How long a program may take to end in order. workerd takes 65 ms. */
const STOP_GRACE_MS = 2_000;

/** What became of a program in numbers, for all of one process. */
export interface RuntimeCounts {
  starts: number;
  crashes: number;
  kills: Record<KillReason, number>;
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
  starts: Slots;
  counts: RuntimeCounts;
  /** It has work: look after it. */
  watch(program: LiveProgram): void;
  /** It gave a whole answer. */
  answered(): void;
  /** It did not start, or ended otherwise than asked to. */
  crashed(lastWords: string): void;
}

type State = 'starting' | 'ready' | 'stopping' | 'gone';

/** One version of a program in this process, from its start to its end. */
export class LiveProgram {
  private readonly logger = new Logger('hosting');
  /** Requests in flight, the oldest first. */
  readonly calls = new Map<HostedCall, CpuAccount | null>();
  private readonly streams = new Set<HostedCall>();
  private readonly traces: ProgramTraces;
  private state: State = 'starting';
  private resolveGone: () => void = () => undefined;
  /** Resolves when nothing of it is left. */
  readonly gone = new Promise<void>((resolve) => (this.resolveGone = resolve));
  /** Resolves when it takes requests, or never will. */
  readonly settled: Promise<void>;
  private runDir: string | null = null;
  instance: Instance | null = null;
  figures: ProcessFigures | null = null;
  meter: CpuMeter | null = null;
  /** By `performance.now()`: the last begin or end of a request. */
  idleSince = performance.now();
  /** By `performance.now()`: the end of the last whole answer, which shows that its event loop turns. */
  lastAnswerAt = 0;
  private isKilled = false;
  /** The request that ended last. */
  private lastEnded: HostedCall | null = null;
  private drained: (() => void) | null = null;

  /** @param after resolves when there is room for it */
  constructor(
    readonly ref: ProgramRef,
    private readonly setting: ProgramSetting,
    after: Promise<unknown>,
  ) {
    this.traces = new ProgramTraces(setting.programs, ref, () =>
      [...this.calls.keys()].map((call) => call.invocationId),
    );
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
    return this.state === 'ready' && this.calls.size === 0;
  }

  get hasStreams(): boolean {
    return this.streams.size > 0;
  }

  get inFlight(): number {
    return this.calls.size + this.streams.size;
  }

  /** It works on requests, or may still do so on the last one's behalf. */
  get isAtWork(): boolean {
    return this.state === 'ready' || (this.state === 'stopping' && !this.isKilled && this.calls.size > 0);
  }

  get isGone(): boolean {
    return this.state === 'gone';
  }

  /** True when it works although no request asked it to. */
  isAwake(): boolean {
    return (this.meter?.settle() ?? 0) > 0.1;
  }

  /** Works on a request as soon as it runs, or ends it with the reason why not. */
  take(call: HostedCall): void {
    const { concurrency } = this.limits;
    if (call.request.isStream) {
      if (this.streams.size >= STREAMS_MAX) return call.fail(tooManyStreams(STREAMS_MAX));
      this.streams.add(call);
    } else {
      if (this.calls.size >= concurrency) return call.fail(busy(concurrency));
      this.calls.set(call, null);
    }
    this.idleSince = performance.now();
    if (this.state === 'ready') this.send(call);
  }

  /** Its part at the end of a request; see {@link CallHost}. */
  left(call: HostedCall, isWhole: boolean): number {
    const account = this.calls.get(call);
    this.streams.delete(call);
    if (!this.calls.delete(call)) return 0;
    this.lastEnded = call;
    this.idleSince = performance.now();
    if (isWhole) {
      this.lastAnswerAt = this.idleSince;
      this.setting.answered();
    }
    if (this.calls.size === 0) this.drained?.();
    return account && this.meter ? this.meter.end(account) : 0;
  }

  ended(trace: Parameters<ProgramTraces['ended']>[0]): void {
    this.traces.ended(trace);
  }

  /** Takes no new requests, lets those in flight end as they began, for so long at most, and stops. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    if (!this.takesCalls) return this.gone;
    await this.settled;
    if (!this.takesCalls) return this.gone;
    this.state = 'stopping';
    if (this.calls.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.drained = () => {
          clearTimeout(timer);
          resolve();
        };
        void this.gone.then(this.drained);
      });
    }
    return this.stop();
  }

  /** Ends it now, in order as far as it follows. Never rejects. */
  async stop(graceMs = STOP_GRACE_MS): Promise<void> {
    if (this.state === 'gone') return;
    this.state = 'stopping';
    if (!this.instance) {
      for (const call of [...this.calls.keys(), ...this.streams]) call.fail(stopping());
      return this.gone;
    }
    for (const stream of this.streams) stream.close();
    await this.instance.stop(graceMs).catch((error: unknown) => this.report('could not be stopped', error));
    return this.gone;
  }

  /** Ends it by force. The request that it is ended for hears that, the others that they may try again. */
  kill(reason: KillReason, guilty: HostedCall | null): void {
    if (this.state === 'gone' || this.isKilled) return;
    this.isKilled = true;
    this.state = 'stopping';
    this.setting.counts.kills[reason] += 1;
    const blamed = guilty ?? this.justEnded();
    const verdict = culprit(reason, this.limits, this.stallMs);
    this.logger.warn(`a program of ${this.ref.ownerId} was ended: ${reason}`);
    this.instance?.kill();
    this.setting.crashed(verdict.message);
    this.traces.blame(blamed?.invocationId ?? null);
    if (blamed?.isEnded) this.blameLate(blamed, verdict);
    const ofAll = reason === 'memory' ? () => overMemory(this.limits.memoryMb) : bystander;
    for (const call of [...this.calls.keys(), ...this.streams]) {
      call.fail(call === guilty ? verdict : ofAll());
    }
  }

  /** What it does goes on after its answer did: the record is there already and learns how it ended. */
  private blameLate(call: HostedCall, { outcome, name, message }: HostedFailure): void {
    const exceptions = [{ at: new Date(), name, message }];
    this.traces.ended({ invocationId: call.invocationId, outcome, lines: [], exceptions });
  }

  /** With no request in flight, what happens is most likely the work of the one that ended last, in `waitUntil`. */
  private justEnded(): HostedCall | null {
    return performance.now() - this.idleSince < BLAME_MS ? this.lastEnded : null;
  }

  private send(call: HostedCall): void {
    if (!this.instance || call.isEnded) return;
    if (!call.request.isStream && this.meter) this.calls.set(call, this.meter.begin());
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
    const runDir = await runDirs.make();
    this.runDir = runDir;
    const whyNot = await engine.whyNot();
    if (whyNot !== null) throw new HostingUnavailableError(whyNot);
    counts.starts += 1;
    const onTrace = this.traces.told.bind(this.traces);
    const instance = await programs
      .of(this.ref.kind)
      .withProgram(this.ref, (program) => engine.start(program, { limits, runDir, stateDir, onTrace }));
    this.instance = instance;
    void instance.exited.then((exit) => this.exited(exit)).catch((error: unknown) => this.report('ended badly', error));
    if (this.state !== 'starting') return instance.stop(STOP_GRACE_MS);
    this.figures = ProcessFigures.of(instance.pid);
    this.meter = new CpuMeter(() => this.figures?.cpu() ?? null);
    this.state = 'ready';
    this.traces.started();
    for (const call of [...this.calls.keys(), ...this.streams]) this.send(call);
  }

  private async notStarted(error: unknown): Promise<void> {
    let failure: HostedFailure;
    if (error instanceof HostedFailure) failure = error;
    else if (error instanceof NoSlotError) failure = noRoom();
    else {
      this.report('could not be loaded', error);
      failure = notLoaded();
    }
    if (failure.kind === 'upstream') {
      this.setting.counts.crashes += 1;
      this.setting.crashed(failure.message);
    }
    this.traces.started();
    await this.leave(failure);
  }

  private async exited(exit: InstanceExit): Promise<void> {
    const failure = whenGone(exit, this.limits);
    if (this.state !== 'stopping') {
      this.setting.counts.crashes += 1;
      this.setting.crashed(exit.detail);
      const [only] = this.calls.size === 1 ? this.calls.keys() : [];
      const blamed = this.calls.size === 0 ? this.justEnded() : only;
      this.traces.blame(blamed?.invocationId ?? null);
      if (blamed?.isEnded) this.blameLate(blamed, failure);
    }
    await this.leave(failure);
  }

  private report(what: string, error: unknown): void {
    this.logger.error({ msg: `a program of ${this.ref.ownerId} ${what}`, err: error });
  }

  private async leave(failure: HostedFailure): Promise<void> {
    this.state = 'gone';
    this.figures?.close();
    this.setting.counts.dropped += this.traces.dropped;
    for (const call of [...this.calls.keys(), ...this.streams]) call.fail(failure);
    if (this.runDir) await this.setting.runDirs.remove(this.runDir);
    this.resolveGone();
  }
}
