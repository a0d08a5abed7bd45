import { Injectable } from '@nestjs/common';
import type { Program, ProgramKind, ProgramRef, ProgramValues, Trace } from './hosting.types.js';

/** Implemented by a module that owns programs, for the runtime. */
export interface ProgramOwner {
  /**
   * Provides a program while `use` runs; its file exists only meanwhile.
   *
   * @throws ProgramStartError when it no longer exists
   */
  withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T>;
  /** Current values of a program. @throws ProgramStartError when it no longer exists */
  valuesOf(ref: ProgramRef): Promise<ProgramValues>;
  /** Receives observations of the runtime. On the path of calls: must be fast and must not throw. */
  traced(trace: Trace): void;
}

/** Registry of program owners, one per kind, which register at start. */
@Injectable()
export class Programs {
  private readonly owners = new Map<ProgramKind, ProgramOwner>();

  register(kind: ProgramKind, owner: ProgramOwner): void {
    this.owners.set(kind, owner);
  }

  /** @throws Error when no module of this process owns this kind: a wiring mistake */
  of(kind: ProgramKind): ProgramOwner {
    const owner = this.owners.get(kind);
    if (!owner) throw new Error(`Nobody in this process owns programs of the kind ${kind}`);
    return owner;
  }
}
