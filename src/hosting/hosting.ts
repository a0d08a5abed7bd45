import type { Dispatcher } from 'undici';
import type { EngineName, HostedRequest, ProgramRef } from './hosting.types.js';

/**
 * Sends requests to hosted programs anywhere in the service. Starts programs on demand, enforces limits, and reports
 * the outcome of each request to the program's owner.
 */
export abstract class Hosting {
  /**
   * Sends one request. Failures go to the handler as a HostedFailure, or as an undici error when the answer breaks;
   * never throws. Starts the program if it is not running.
   */
  abstract dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void;

  /** Null if programs of this engine run; otherwise the reason and a remedy for the operator. */
  abstract whyNot(engine: EngineName): Promise<string | null>;

  /** Stops all versions of a deleted owner and removes its state. Never rejects. */
  abstract forget(ownerId: string): Promise<void>;

  /** Makes another version of this owner current: older ones stop after their requests. Never rejects. */
  abstract current(ref: ProgramRef): Promise<void>;

  /**
   * Restarts an owner's program if its secrets or egress rules changed since the start; the old instance stops after
   * its requests. Unchanged programs continue. Ends the back-off after crashes. Never rejects.
   */
  abstract renew(ownerId: string): Promise<void>;
}

/** Programs of this process. Callers use {@link Hosting} for programs anywhere. */
export abstract class LocalHosting extends Hosting {
  /**
   * Stops every stateful program, since another host may start it: running requests get `graceMs`, then the process is
   * killed. The caller sends no more requests meanwhile; later requests start the programs again. Resolves when no such
   * process is left. Never rejects.
   */
  abstract endStateful(graceMs: number): Promise<void>;

  /** Owners with state in this process' data folder. @throws file system errors */
  abstract ownersWithState(): Promise<string[]>;
}
