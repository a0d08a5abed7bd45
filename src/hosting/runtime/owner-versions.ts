import type { ProgramRef } from '../hosting.types.js';
import { Backoff } from './backoff.js';
import type { LiveProgram } from './live-program.js';

/** Versions of one owner that are known to be old. */
const PAST_MAX = 16;

/** Crashes are remembered for so long after the last one. */
const REMEMBER_MS = 600_000;

/** What runs here of one owner: a version that takes requests, and while they swap one that only ends its own. */
export class OwnerVersions {
  private newest: ProgramRef;
  /** Ids of versions that another one followed. */
  private readonly past = new Set<string>();
  private rest = new Backoff();
  private lastCrashAt = -Infinity;
  readonly programs = new Set<LiveProgram>();

  constructor(ref: ProgramRef) {
    this.newest = ref;
  }

  get current(): ProgramRef {
    return this.newest;
  }

  /** Of the current version: another one begins anew. */
  get backoff(): Backoff {
    return this.rest;
  }

  /** What takes requests: of the current version, or of the one before as long as the current one starts. */
  get taking(): LiveProgram[] {
    return [...this.programs].filter((program) => program.takesCalls);
  }

  /** What takes requests of a version: the last one started, while one before has some to end. */
  takingOf({ id }: ProgramRef): LiveProgram | undefined {
    return this.taking.findLast((program) => program.ref.id === id);
  }

  /** The version a request is for: a past one means the current one, unless it still takes requests. */
  meant(ref: ProgramRef): ProgramRef {
    if (!this.past.has(ref.id)) return this.follow(ref);
    return this.taking.some((program) => program.ref.id === ref.id) ? ref : this.newest;
  }

  /** From now on this version is current. */
  follow(ref: ProgramRef): ProgramRef {
    if (ref.id === this.newest.id) return this.newest;
    this.past.delete(ref.id);
    this.past.add(this.newest.id);
    const [oldest] = this.past;
    if (this.past.size > PAST_MAX && oldest !== undefined) this.past.delete(oldest);
    this.newest = ref;
    this.rest = new Backoff();
    return ref;
  }

  /** What made it crash may be set right: it need not rest. */
  endRest(): void {
    this.rest = new Backoff();
  }

  noteCrash(now: number): void {
    this.lastCrashAt = now;
  }

  /** True while its programs yield to those of owners that behave: what they do to a machine is worth waiting for others. */
  hasCrashedLately(now: number): boolean {
    return now - this.lastCrashAt <= REMEMBER_MS;
  }

  /** True when nothing of it runs, and nothing of it must be remembered. */
  isForgettable(now: number): boolean {
    return this.programs.size === 0 && !this.hasCrashedLately(now);
  }
}
