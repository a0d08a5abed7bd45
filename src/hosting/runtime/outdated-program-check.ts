import { Logger } from '@nestjs/common';
import type { Programs } from '../programs.js';
import type { LiveProgram } from './live-program.js';
import { digestOf } from './restart-coalescer.js';

/** How many times in its period programs are looked for whose turn it is. */
const TICKS = 4;

/** What rechecks need. */
export interface RecheckSetting {
  /** How long a program may go on with values that are others by now and that nobody told it of. */
  everyMs: number;
  live(): readonly LiveProgram[];
  programs: Programs;
  /** See {@link Hosting.renew}. */
  renew(ownerId: string): Promise<void>;
}

/**
 * Compares what programs run with to what they would be given now, for the message that was lost: a program that is never
 * idle would keep a secret that was taken away for as long as it is called. One program after the other, so that 100 of
 * them are a query now and then.
 */
export class OutdatedProgramCheck {
  private readonly logger = new Logger('hosting');
  private readonly timer: NodeJS.Timeout;
  /** By `performance.now()`: when a program was last compared, or seen first. */
  private readonly checkedAt = new WeakMap<LiveProgram, number>();
  private isRunning = false;

  constructor(private readonly setting: RecheckSetting) {
    this.timer = setInterval(() => void this.run(), setting.everyMs / TICKS).unref();
  }

  close(): void {
    clearInterval(this.timer);
  }

  private async run(): Promise<void> {
    if (this.isRunning) return;
    this.isRunning = true;
    for (const program of this.setting.live()) if (this.isDue(program)) await this.check(program);
    this.isRunning = false;
  }

  private isDue(program: LiveProgram): boolean {
    const now = performance.now();
    const checkedAt = this.checkedAt.get(program) ?? now;
    const isDue = now - checkedAt >= this.setting.everyMs;
    this.checkedAt.set(program, isDue ? now : checkedAt);
    return isDue;
  }

  /** Nobody can say while the database is away: then all goes on, since nothing is known to have changed. */
  private async check(program: LiveProgram): Promise<void> {
    const { given, ref } = program;
    if (given === null || !program.takesCalls) return;
    try {
      const values = await this.setting.programs.of(ref.kind).valuesOf(ref);
      if (digestOf(values) !== given) await this.setting.renew(ref.ownerId);
    } catch (error) {
      this.logger.debug({ msg: `what a program of ${ref.ownerId} is given now cannot be told`, err: error });
    }
  }
}
