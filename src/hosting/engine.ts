import type { Dispatcher } from 'undici';
import type { EngineName, Program, ProgramLimits, Trace } from './hosting.types.js';

/** Why an instance is gone. */
export interface InstanceExit {
  /** `stopped`: it was asked to; `memory`: it took more than it may; `crashed`: anything else. */
  reason: 'stopped' | 'memory' | 'crashed';
  /** What it said last, for its author. */
  detail: string;
}

/** One running program. */
export interface Instance {
  /** Null when it is no single process. Its own pid: what `schedstat` and signals are for. */
  readonly pid: number | null;
  /** Sends requests to it; the origin of a request is not looked at. */
  readonly dispatcher: Dispatcher;
  /** Resolves when it is gone, however it went. Never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** Resolves when its event loop turned. @throws when it does not answer within `timeoutMs` */
  ping(timeoutMs: number): Promise<void>;
  /** Ends it in order, by force after `graceMs`. Resolves when it is gone. Never rejects. */
  stop(graceMs: number): Promise<void>;
  /** Ends it now. */
  kill(): void;
}

/** What an engine is given besides the program. */
export interface EngineContext {
  limits: ProgramLimits;
  /** A folder of its own for this start, empty, 0700; removed by whoever made it when the instance is gone. */
  runDir: string;
  /** Keeps what the program's owner's sessions store, across versions and restarts. Made when it is needed. */
  stateDir: string;
  /** It crashed, or was ended for what it took, in the last minutes: it yields to those that did not. */
  hasCrashedLately: boolean;
  /** Hears lines and exceptions as the code makes them. Must not throw. */
  onTrace(trace: Trace): void;
}

/** Runs programs of one kind. Another runtime (containers, Cloudflare) is another implementation of this. */
export abstract class Engine {
  abstract readonly name: EngineName;

  /**
   * Starts a program; resolves when it takes requests.
   *
   * @throws ProgramStartError with what it said
   */
  abstract start(program: Program, context: EngineContext): Promise<Instance>;

  /** Null: it may run programs on this machine. Otherwise a sentence: why not, and what the operator can do. */
  whyNot(): Promise<string | null> {
    return Promise.resolve(null);
  }
}
