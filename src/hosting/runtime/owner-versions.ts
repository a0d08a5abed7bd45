import type { ProgramRef } from '../hosting.types.js';
import { Backoff } from './backoff.js';
import type { LiveProgram } from './live-program.js';

export class OwnerVersions {
  /** Ids of versions that have been replaced; bounded by the limit of an account's releases. */
  private readonly past = new Set<string>();
  /** Back-off of the current version; another version starts without one. */
  backoff = new Backoff();
  readonly programs = new Set<LiveProgram>();

  constructor(public current: ProgramRef) {}

  get accepting(): LiveProgram[] {
    return [...this.programs].filter((program) => program.acceptsCalls);
  }

  acceptingOf({ id }: ProgramRef): LiveProgram | undefined {
    return this.accepting.findLast((program) => program.ref.id === id);
  }

  /** Returns the current version in place of a past one, unless the past one still accepts requests. */
  versionFor(ref: ProgramRef): ProgramRef {
    if (!this.past.has(ref.id)) return this.follow(ref);
    return this.accepting.some((program) => program.ref.id === ref.id) ? ref : this.current;
  }

  follow(ref: ProgramRef): ProgramRef {
    if (ref.id === this.current.id) return this.current;
    this.past.delete(ref.id);
    this.past.add(this.current.id);
    this.current = ref;
    this.backoff = new Backoff();
    return ref;
  }

  endRest(): void {
    this.backoff = new Backoff();
  }

  /** Returns true when no version runs and no crash must be remembered. */
  isForgettable(now: number): boolean {
    return this.programs.size === 0 && this.backoff.isOver(now);
  }
}
