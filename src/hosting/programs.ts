import { Injectable } from '@nestjs/common';
import type { Program, ProgramKind, ProgramRef, ProgramValues, Trace } from './hosting.types.js';

/** What a module that owns programs does for those who run them. */
export interface ProgramOwner {
  /**
   * Hands a program over while `use` runs: its file is there so long.
   *
   * @throws ProgramStartError when there is none any more
   */
  withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T>;
  /** What it would be given now. @throws ProgramStartError when there is none any more */
  valuesOf(ref: ProgramRef): Promise<ProgramValues>;
  /** Hears what the runtime saw. On the way of calls: must be short, must not throw. */
  traced(trace: Trace): void;
}

/** Whose programs there are: one owner for each kind, who says so at start. */
@Injectable()
export class Programs {
  private readonly owners = new Map<ProgramKind, ProgramOwner>();

  register(kind: ProgramKind, owner: ProgramOwner): void {
    this.owners.set(kind, owner);
  }

  /** @throws Error when no module of this process owns such programs: a mistake in how it was put together */
  of(kind: ProgramKind): ProgramOwner {
    const owner = this.owners.get(kind);
    if (!owner) throw new Error(`Nobody in this process owns programs of the kind ${kind}`);
    return owner;
  }
}
