import type { Dispatcher } from 'undici';
import type { EngineName, HostedRequest, ProgramRef } from './hosting.types.js';

/**
 * The way to running programs, wherever in the service they run: starts them when they are needed, holds them to their
 * limits, and tells their owners what became of every request.
 */
export abstract class Hosting {
  /**
   * Sends one request. Whatever fails on the way goes to the handler as a HostedFailure, or as an error of undici when the
   * answer breaks; nothing is thrown. A program that is not running is started first.
   */
  abstract dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void;

  /** Null: programs of this engine run. Otherwise a sentence: why not, and what the operator can do. */
  abstract whyNot(engine: EngineName): Promise<string | null>;

  /** An owner is gone, with all its versions and its state. Never rejects. */
  abstract forget(ownerId: string): Promise<void>;

  /** Another version of this owner is current: older ones end when their requests have. Never rejects. */
  abstract current(ref: ProgramRef): Promise<void>;

  /**
   * What an owner's programs are given may be others' values now: a running one that was started with others is started
   * anew, takes new requests, and the one before ends when its requests have. One that was not is left alone, and one that
   * rests after crashes may start at once. Never rejects.
   */
  abstract renew(ownerId: string): Promise<void>;
}

/** Programs of this very process. Who calls what runs elsewhere goes through {@link Hosting}. */
export abstract class LocalHosting extends Hosting {
  /**
   * Ends every program that keeps state, since another host may start it: requests under way get `graceMs`, then their
   * process is killed. The caller sends no more of them meanwhile; programs that are wanted again later are started anew.
   * Resolves when no such process is left. Never rejects.
   */
  abstract endStateful(graceMs: number): Promise<void>;

  /** The owners whose state lies in this process' data folder, running or not. @throws what the file system says */
  abstract ownersWithState(): Promise<string[]>;
}
