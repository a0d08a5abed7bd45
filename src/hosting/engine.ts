import type { Dispatcher } from 'undici';
import { HostingUnavailableError } from './hosting.errors.js';
import type { EngineName, Program, ProgramLimits, Trace } from './hosting.types.js';

export interface InstanceExit {
  /** `stopped`: on request; `memory`: over the memory limit; `crashed`: otherwise. */
  reason: 'stopped' | 'memory' | 'crashed';
  /** Last output, without secrets, for the owner only. */
  detail: string;
}

export interface Instance {
  /** Process id for `schedstat` and signals; null without a single process. */
  readonly pid: number | null;
  /** Sends requests to the program; the origin of a request is ignored. */
  readonly dispatcher: Dispatcher;
  /** Resolves on exit for any reason. Never rejects. */
  readonly exited: Promise<InstanceExit>;
  /** @throws when the event loop does not respond within `timeoutMs` */
  ping(timeoutMs: number): Promise<void>;
  /** Kills the program after `graceMs`. Resolves on exit. The promise never rejects. */
  stop(graceMs: number): Promise<void>;
  kill(): void;
}

/** Writes a log line, and never throws. */
export type ProgramLog = (level: 'debug' | 'warn' | 'error', entry: { msg: string; err?: unknown }) => void;

export interface EngineContext {
  limits: ProgramLimits;
  /** Empty folder for this start, mode 0700; its creator removes it after the exit. */
  runDir: string;
  /** Folder for the owner's session data, across versions and restarts. Created on demand. */
  stateDir: string;
  log: ProgramLog;
  /** Blanks the secrets of the program in its output: call it before a string is cut. */
  redact: (text: string) => string;
  /** Receives lines and exceptions of the code, already redacted. Must not throw. */
  onTrace(trace: Trace): void;
}

/** A runtime of programs. Containers or Cloudflare would be other implementations. */
export abstract class Engine {
  abstract readonly name: EngineName;

  /**
   * Starts a program; resolves when it accepts requests.
   *
   * @throws ProgramStartError with its output, without secrets
   */
  abstract start(program: Program, context: EngineContext): Promise<Instance>;

  /** Returns null if programs can run on this machine; otherwise the reason and a remedy for the operator. */
  whyNot(): Promise<string | null> {
    return Promise.resolve(null);
  }
}

const NO_BUNDLES = 'This service runs no bundles: its operator allows them with RUNTIME_BUNDLES.';

/** The available engines, of which only that of bundles can be absent. */
export class Engines {
  constructor(readonly all: readonly Engine[]) {}

  /** @throws HostingUnavailableError without this engine */
  requireEngine(name: EngineName): Engine {
    const engine = this.all.find((candidate) => candidate.name === name);
    if (!engine) throw new HostingUnavailableError(NO_BUNDLES);
    return engine;
  }

  async whyNot(name: EngineName): Promise<string | null> {
    const engine = this.all.find((candidate) => candidate.name === name);
    return engine ? engine.whyNot() : NO_BUNDLES;
  }
}
