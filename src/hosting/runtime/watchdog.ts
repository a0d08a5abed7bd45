import { Logger } from '@nestjs/common';
import type { HostedCall } from './hosted-call.js';
import type { LiveProgram } from './live-program.js';
import type { CpuFigures } from './process-figures.js';

const TICK_MS = 250;

/** After its last request a program is looked after for so long, and on while it uses more than a tenth of a core. */
const AFTER_MS = 3_000;
const AWAKE_SHARE = 0.1;

/** What a program takes besides what its code allocates: 22 MB with an MCP server loaded, and room for collections. */
const MEMORY_BASE_MB = 96;

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

  watch(program: LiveProgram): void {
    if (!this.watches.has(program)) this.watches.set(program, new Watch(program));
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref();
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
    const { meter, figures, limits } = program;
    if (!program.instance || !program.isAtWork || !meter) return false;
    const share = meter.settle();
    const over = [...program.calls].find(([, account]) => account && account.used() > limits.cpuMs);
    if (over) program.kill('cpu', over[0]);
    else if (meter.besideMs > limits.cpuMs) program.kill('cpu', null);
    else if ((figures?.anonMb() ?? 0) > limits.memoryMb + MEMORY_BASE_MB) program.kill('memory', null);
    else if (!this.isAsking) void this.ask(program.instance.ping.bind(program.instance));
    const isQuiet = program.inFlight === 0 && performance.now() - program.idleSince > AFTER_MS;
    return !isQuiet || this.silence !== null || this.isAsking || share > AWAKE_SHARE;
  }

  private async ask(ping: (timeoutMs: number) => Promise<void>): Promise<void> {
    this.isAsking = true;
    const { program } = this;
    const asked: Silence = { since: performance.now(), cpu: program.figures?.cpu() ?? null };
    try {
      await ping(program.stallMs);
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
    const calls = [...this.program.calls.keys()];
    const lastSign = Math.max(this.lastSign, this.program.lastAnswerAt);
    return calls.find((call) => call.sentAt > lastSign) ?? calls[calls.length - 1] ?? null;
  }
}
