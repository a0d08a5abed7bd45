import { LRUCache } from 'lru-cache';
import type { ProgramRef } from '../hosting.types.js';
import type { LiveProgram } from './live-program.js';

/** Limit of remembered past versions of one owner. */
const PAST_MAX = 16;

/** Time for which crashes are remembered. */
const REMEMBER_MS = 600_000;

/** Back-off after the second crash in a row, doubled by each further one. */
const FIRST_REST_MS = 1_000;

const REST_MS_MAX = 60_000;

/**
 * Back-off of a version that keeps crashing. The first crash has none: one bad request must not lock out all others.
 * From the second in a row it is 1 s, doubling to 60 s. An answer resets it.
 */
export class Backoff {
  /** Crashes in a row. */
  crashes = 0;
  private restsUntil = 0;
  private crashedAt = -Infinity;
  lastWords = '';

  /** @param lastWords last output of the program */
  crashed(now: number, lastWords: string): void {
    this.crashes += 1;
    this.crashedAt = now;
    this.lastWords = lastWords;
    const doublings = this.crashes - 2;
    this.restsUntil = doublings < 0 ? now : now + Math.min(REST_MS_MAX, FIRST_REST_MS * 2 ** doublings);
  }

  /** Resets the back-off after a complete answer. */
  answered(): void {
    this.crashes = 0;
  }

  /** True when no crash must be remembered. */
  isOver(now: number): boolean {
    return now - this.crashedAt > REMEMBER_MS;
  }

  /** Rest of the back-off in milliseconds; 0 when the version may be started. */
  restMs(now: number): number {
    return this.crashes === 0 ? 0 : Math.max(0, this.restsUntil - now);
  }
}

/** Programs of one owner: the active version, and during a swap one that is draining. */
export class OwnerVersions {
  /** Ids of versions that have been replaced. */
  private readonly past = new LRUCache<string, true>({ max: PAST_MAX });
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

  /** Makes this version current. */
  follow(ref: ProgramRef): ProgramRef {
    if (ref.id === this.current.id) return this.current;
    this.past.delete(ref.id);
    this.past.set(this.current.id, true);
    this.current = ref;
    this.backoff = new Backoff();
    return ref;
  }

  /** Ends the back-off, since the cause of the crashes may be fixed. */
  endRest(): void {
    this.backoff = new Backoff();
  }

  /** True when nothing of it runs or must be remembered. */
  isForgettable(now: number): boolean {
    return this.programs.size === 0 && this.backoff.isOver(now);
  }
}
