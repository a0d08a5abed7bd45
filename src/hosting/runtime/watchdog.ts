import { Logger } from '@nestjs/common';
import type { Instance } from '../engine.js';
import type { HostedCall } from './hosted-call.js';
import type { LiveProgram } from './live-program.js';
import type { CpuFigures } from './process-metrics.js';

const TICK_MS = 250;

/** After its last request a program is looked after for so long, and on while it uses more than a tenth of a core. */
const AFTER_MS = 3_000;
const AWAKE_SHARE = 0.1;

/** What a program may take besides what its code allocates: 18 MB at rest, garbage and buffers of workerd under load. */
const MEMORY_BASE_MB = 128;

/** Code that lets nothing run is ended after so many times the patience, however little CPU it got meanwhile. */
const PATIENCE_MAX = 3;

/**
 * Looks after programs that have work, every 250 ms: whether one lets nothing else run, and what it takes of CPU and
 * memory. Idle ones cost nothing.
 */
export class Watchdog {
  private readonly logger = new Logger('hosting');
  private readonly watches = new Map<LiveProgram, Watch>();
  private timer: NodeJS.Timeout | undefined;

  /** How many programs it looks after. */
  get count(): number {
    return this.watches.size;
  }

  watch(program: LiveProgram): void {
    if (!this.watches.has(program)) this.watches.set(program, new Watch(program));
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref();
  }

  /** An idle program: it is looked after when it works although no request asked it to. */
  glance(program: LiveProgram): void {
    if ((program.calls.meter?.settle() ?? 0) > AWAKE_SHARE) this.watch(program);
  }

  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.watches.clear();
  }

  private tick(): void {
    for (const [program, watch] of this.watches) {
      try {
        if (!watch.look()) this.watches.delete(program);
      } catch (error) {
        this.logger.error({ msg: 'a program could not be looked after', err: error });
      }
    }
    if (this.watches.size === 0) this.close();
  }
}

/** The time since which a program has answered nothing. */
interface Silence {
  since: number;
  cpu: CpuFigures | null;
}

/** Looks after one program. */
class Watch {
  private silence: Silence | null = null;
  private isAsking = false;
  /** By `performance.now()`: when it last showed that its event loop turns. */
  private lastSign = performance.now();

  constructor(private readonly program: LiveProgram) {}

  /** False when there is nothing to look after any more. */
  look(): boolean {
    const { program } = this;
    const { calls, figures, limits, instance } = program;
    if (!instance || !program.isAtWork || !calls.meter) return false;
    const share = calls.meter.settle();
    const isQuiet = calls.count === 0 && performance.now() - calls.idleSince > AFTER_MS && share < AWAKE_SHARE;
    if (isQuiet && this.silence === null) return this.isAsking;
    const over = calls.over(limits.cpuMs);
    if (over || calls.meter.besideMs > limits.cpuMs) program.kill('cpu', over);
    else if ((figures?.anonMb() ?? 0) > limits.memoryMb + MEMORY_BASE_MB) program.kill('memory', null);
    else if (!this.isAsking) void this.ask(instance);
    return true;
  }

  private async ask(instance: Instance): Promise<void> {
    this.isAsking = true;
    const { program } = this;
    const asked: Silence = { since: performance.now(), cpu: program.figures?.cpu() ?? null };
    try {
      await instance.ping(program.stallMs);
      this.silence = null;
      this.lastSign = asked.since;
    } catch {
      this.silence ??= asked;
      if (program.isAtWork && this.isStalled(this.silence, asked.since)) program.kill('stall', this.mostLikely());
    } finally {
      this.isAsking = false;
    }
  }

  /**
   * Not while it is this process that was held up, or the program that waited for a core: time in which it could not run is
   * not held against it.
   */
  private isStalled({ since, cpu }: Silence, askedAt: number): boolean {
    const now = performance.now();
    const { stallMs, figures } = this.program;
    if (now - askedAt > stallMs + TICK_MS) return false;
    const after = figures?.cpu();
    const waitedMs = cpu && after ? after.waitedMs - cpu.waitedMs : 0;
    return now - since - waitedMs >= stallMs * 0.9 || now - since > stallMs * PATIENCE_MAX;
  }

  /**
   * The request that most likely holds the program up: the only one in flight, else the first that came after the last sign
   * of life, because those behind it were not begun; else the newest.
   */
  private mostLikely(): HostedCall | null {
    const { all, lastAnswerAt } = this.program.calls;
    const lastSign = Math.max(this.lastSign, lastAnswerAt);
    return all.find((call) => call.sentAt > lastSign) ?? all[all.length - 1] ?? null;
  }
}
