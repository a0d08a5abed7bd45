import { Logger } from '@nestjs/common';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { Programs } from '../hosting.js';
import type { LiveProgram } from './live-program.js';
import { digestOf } from './restart-coalescer.js';

/** Ticks per period; each checks the programs that are due. */
const TICKS = 4;

/** Dependencies of the check. */
export interface RecheckSetting {
  /** Maximum time that a program runs with outdated values after a lost message. */
  everyMs: number;
  live(): readonly LiveProgram[];
  programs: Programs;
  /** See {@link Hosting.renew}. */
  renew(ownerId: string): Promise<void>;
}

/**
 * Compares the values of running programs with the current ones, in case a message was lost: a program that is never
 * idle would otherwise use a revoked secret without end. Checks programs one after the other to spread the queries.
 */
export class OutdatedProgramCheck {
  private readonly logger = new Logger('hosting');
  private readonly timer: Repeat;
  /** Time of the last check or first sight, by `performance.now()`. */
  private readonly checkedAt = new WeakMap<LiveProgram, number>();
  private isRunning = false;

  constructor(private readonly setting: RecheckSetting) {
    this.timer = repeat(setting.everyMs / TICKS, () => void this.run());
  }

  close(): void {
    this.timer.stop();
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

  /** Checks one program. During a database failure it continues, since no change is known. */
  private async check(program: LiveProgram): Promise<void> {
    const { given, ref } = program;
    if (given === null || !program.takesCalls) return;
    try {
      const values = await this.setting.programs.of(ref.kind).valuesOf(ref);
      if (digestOf(values) !== given) await this.setting.renew(ref.ownerId);
    } catch (error) {
      this.logger.debug({ msg: `the current values of a program of ${ref.ownerId} could not be read`, err: error });
    }
  }
}
