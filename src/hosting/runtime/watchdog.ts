/**
 * Watches the programs that work, every 250 ms: CPU of each request, memory, and whether the event loop responds to a
 * ping. Idle programs are not watched and cost nothing.
 *
 * Kills: `cpu` when one request, or work outside of requests, exceeds the CPU limit; `memory` by anonymous memory;
 * `stall` when no ping got a response for the stall limit. Delays of this process do not count as a stall, nor does
 * waiting for a core, up to three times the limit.
 *
 * The request that is blamed for a stall is the only one, otherwise the first that was sent after the last sign of
 * life, since later ones have not begun.
 */
import { Logger } from '@nestjs/common';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { Instance } from '../engine.js';
import { MEMORY_BASE_MB } from '../hosting.types.js';
import type { LiveProgram } from './live-program.js';
import type { CpuFigures } from './process-metrics.js';

const TICK_MS = 250;

/** Time after its last request for which a program is followed, longer while it uses more than a tenth of a core. */
const AFTER_MS = 3_000;
const AWAKE_SHARE = 0.1;

/** Blocking code is killed after this multiple of the stall limit, however little CPU it got in that time. */
const PATIENCE_MAX = 3;

export class Watchdog {
  private readonly logger = new Logger('hosting');
  private readonly watches = new Map<LiveProgram, Watch>();
  private timer: Repeat | undefined;

  /** @param population frees memory after the checks */
  constructor(private readonly population: { relieveMemory(): void }) {}

  watch(program: LiveProgram): void {
    if (!this.watches.has(program)) this.watches.set(program, new Watch(program));
    this.timer ??= repeat(TICK_MS, () => this.tick());
  }

  /** Follows an idle program if it uses CPU without a request. */
  followIfActive(program: LiveProgram): void {
    if ((program.calls.meter?.settle() ?? 0) > AWAKE_SHARE) this.watch(program);
  }

  close(): void {
    this.timer?.stop();
    this.timer = undefined;
    this.watches.clear();
  }

  private tick(): void {
    for (const [program, watch] of this.watches) {
      try {
        if (!watch.check()) this.watches.delete(program);
      } catch (error) {
        this.logger.error({ msg: 'the watchdog failed to check a program', err: error });
      }
    }
    if (this.watches.size === 0) this.close();
    this.population.relieveMemory();
  }
}

interface Silence {
  since: number;
  cpu: CpuFigures | null;
}

class Watch {
  private silence: Silence | null = null;
  private isAsking = false;
  private lastSign = performance.now();

  constructor(private readonly program: LiveProgram) {}

  /** Checks the limits. Returns false when the program no longer needs watching. */
  check(): boolean {
    const { program } = this;
    const { calls, figures, limits, instance } = program;
    if (!instance || !program.isAtWork || !calls.meter) return false;
    const share = calls.meter.settle();
    const isQuiet = calls.count === 0 && performance.now() - calls.idleSince > AFTER_MS && share < AWAKE_SHARE;
    if (isQuiet && this.silence === null) return this.isAsking;
    const over = calls.findOverLimit(limits.cpuMs);
    if (over || calls.meter.besideMs > limits.cpuMs) program.kill('cpu', over);
    else if ((figures?.anonMb() ?? 0) > limits.memoryMb + MEMORY_BASE_MB) program.kill('memory', null);
    else if (!this.isAsking) void this.pingProgram(instance);
    return true;
  }

  private async pingProgram(instance: Instance): Promise<void> {
    this.isAsking = true;
    const { program } = this;
    const attempt: Silence = { since: performance.now(), cpu: program.figures?.cpu() ?? null };
    try {
      await instance.ping(program.stallMs);
      this.silence = null;
      this.lastSign = attempt.since;
    } catch {
      this.silence ??= attempt;
      if (!program.isAtWork || !this.isStalled(this.silence, attempt.since)) return;
      const { all, lastAnswerAt } = program.calls;
      const lastSign = Math.max(this.lastSign, lastAnswerAt);
      program.kill('stall', all.find((call) => call.sentAt > lastSign) ?? all[all.length - 1] ?? null);
    } finally {
      this.isAsking = false;
    }
  }

  /** Returns true for a stalled program, excluding delays of this process and time in which the program waited for a core. */
  private isStalled({ since, cpu }: Silence, askedAt: number): boolean {
    const now = performance.now();
    const { stallMs, figures } = this.program;
    if (now - askedAt > stallMs + TICK_MS) return false;
    const after = figures?.cpu();
    const waitedMs = cpu && after ? after.waitedMs - cpu.waitedMs : 0;
    return now - since - waitedMs >= stallMs * 0.9 || now - since > stallMs * PATIENCE_MAX;
  }
}
