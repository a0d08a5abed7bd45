import type { ProgramRef } from '../hosting.types.js';
import { Backoff } from './backoff.js';
import type { LiveProgram } from './live-program.js';

/** Programs of one owner: the active version, and during a swap one that is draining. */
export class OwnerVersions {
  /** Ids of versions that have been replaced; bounded by the limit of an account's releases. */
  private readonly past = new Set<string>();
  /** Back-off of the current version; another version starts without one. */
  backoff = new Backoff();
  readonly programs = new Set<LiveProgram>();

  constructor(public current: ProgramRef) {}

  /** Programs that accept requests: of the current version, or of the previous one until it has started. */
  get accepting(): LiveProgram[] {
    return [...this.programs].filter((program) => program.acceptsCalls);
  }

  /** Program of a version that accepts requests: the last one started, if an older one is draining. */
  acceptingOf({ id }: ProgramRef): LiveProgram | undefined {
    return this.accepting.findLast((program) => program.ref.id === id);
  }

  /** Version for a request: the current one in place of a past one, unless that still accepts requests. */
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

  /** Resets the back-off, since the cause of the crashes might be fixed. */
  endRest(): void {
    this.backoff = new Backoff();
  }

  /** True when nothing of it runs or must be remembered. */
  isForgettable(now: number): boolean {
    return this.programs.size === 0 && this.backoff.isOver(now);
  }
}
