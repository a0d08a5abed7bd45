import type { ProgramRef } from '../hosting.types.js';
import { Backoff } from './backoff.js';
import type { LiveProgram } from './live-program.js';

/** Limit of remembered past versions of one owner. */
const PAST_MAX = 16;

/** Time for which crashes are remembered. */
const REMEMBER_MS = 600_000;

/** Programs of one owner: the active version, and during a swap one that is draining. */
export class OwnerVersions {
  private newest: ProgramRef;
  /** Ids of versions that have been replaced. */
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

  /** Back-off of the current version; another version starts without one. */
  get backoff(): Backoff {
    return this.rest;
  }

  /** Programs that accept requests: of the current version, or of the previous one until it has started. */
  get taking(): LiveProgram[] {
    return [...this.programs].filter((program) => program.takesCalls);
  }

  /** Program of a version that accepts requests: the last one started, if an older one is draining. */
  takingOf({ id }: ProgramRef): LiveProgram | undefined {
    return this.taking.findLast((program) => program.ref.id === id);
  }

  /** Version for a request: the current one in place of a past one, unless that still accepts requests. */
  meant(ref: ProgramRef): ProgramRef {
    if (!this.past.has(ref.id)) return this.follow(ref);
    return this.taking.some((program) => program.ref.id === ref.id) ? ref : this.newest;
  }

  /** Makes this version current. */
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

  /** Ends the back-off, since the cause of the crashes may be fixed. */
  endRest(): void {
    this.rest = new Backoff();
  }

  noteCrash(now: number): void {
    this.lastCrashAt = now;
  }

  /** True while its programs run with lower priority than those of other owners, after crashes. */
  hasCrashedLately(now: number): boolean {
    return now - this.lastCrashAt <= REMEMBER_MS;
  }

  /** True when nothing of it runs or must be remembered. */
  isForgettable(now: number): boolean {
    return this.programs.size === 0 && !this.hasCrashedLately(now);
  }
}
