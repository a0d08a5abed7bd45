/**
 * Runs programs: uploaded modules and bundles of releases, and the TypeScript sources of connections. This file is the
 * interface; `runtime/` runs programs in this process, `cluster/` finds the process, `worker/` and `bundle/` are the
 * two engines, `egress/` is the programs' way out, `sandbox/` their isolation.
 *
 * A module that owns programs provides a `ProgramOwner` for its kind. Callers know `Hosting` only: `dispatch` sends one
 * HTTP request to a program somewhere in the service and starts it when needed.
 *
 * Failures arrive at the handler as HostedFailures, which state whether the request might have run; nothing is thrown.
 * A deleted owner is forgotten with its state, and a new version replaces the old one when it is ready.
 */
import type { Dispatcher } from 'undici';
import type { LogNames } from '../platform/telemetry/log-names.repository.js';
import type {
  EngineName,
  HostedRequest,
  ProgramRef,
  Program,
  ProgramKind,
  ProgramQuota,
  ProgramValues,
  Trace,
} from './hosting.types.js';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { partsOf } from '../platform/parts.js';

export interface ProgramOwner {
  /**
   * Provides a program while `use` runs; its file exists only meanwhile.
   *
   * @throws ProgramStartError when it no longer exists
   */
  withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T>;
  /** @throws ProgramStartError when the program no longer exists */
  valuesOf(ref: ProgramRef): Promise<ProgramValues>;
  /**
   * Returns the account of a program, and how many of the account's programs may run in one process; null when the
   * program no longer exists.
   */
  quotaOf(ref: ProgramRef): Promise<ProgramQuota | null>;
  /** Returns names for a log line. The promise never rejects. */
  namesOf(ref: ProgramRef): Promise<LogNames>;
  /** Receives observations of the runtime. Called during calls: must be fast and must not throw. */
  recordTrace(trace: Trace): void;
}

/** Tokens of the program owners, which modules of processes with the role `host` provide. */
export const programOwners = { release: Symbol('ProgramOwner of releases'), source: Symbol('ProgramOwner of sources') };

@Injectable()
export class ProgramOwners implements OnModuleInit {
  private readonly logger = new Logger('hosting');
  private owners!: Record<ProgramKind, ProgramOwner>;

  constructor(private readonly moduleRef: ModuleRef) {}

  onModuleInit(): void {
    this.owners = partsOf(this.moduleRef, programOwners);
  }

  ownerOf(kind: ProgramKind): ProgramOwner {
    return this.owners[kind];
  }

  /** Returns the ids of a program and the names of its server or connection, for a rare log line. Never rejects. */
  async namesOf(ref: ProgramRef): Promise<object> {
    const names = await this.ownerOf(ref.kind).namesOf(ref);
    return { programId: ref.id, ownerId: ref.ownerId, ...names };
  }

  /** Writes a log line about a program, with its names. Never throws. */
  log(ref: ProgramRef, level: 'debug' | 'warn' | 'error', entry: { msg: string; err?: unknown }): void {
    void this.namesOf(ref).then((names) => this.logger[level]({ ...entry, ...names }));
  }
}

/** Sends requests to hosted programs anywhere in the service. Starts programs on demand and enforces limits. */
export abstract class Hosting {
  /**
   * Sends a request to a program. Failures go to the handler as a HostedFailure, or as an undici error when the response breaks; never throws. Starts
   * the program if it is not running.
   */
  abstract dispatch(ref: ProgramRef, request: HostedRequest, handler: Dispatcher.DispatchHandler): void;

  abstract whyNot(engine: EngineName): Promise<string | null>;

  /** Stops the programs of an owner and removes their state. The promise never rejects. */
  abstract forget(ownerId: string): Promise<void>;

  /** Starts this version; older versions stop after their requests. The promise never rejects. */
  abstract current(ref: ProgramRef): Promise<void>;

  /**
   * Restarts an owner's program if its secrets or egress rules changed since the start; the old instance stops after
   * its requests. Resets the back-off after crashes. The promise never rejects.
   */
  abstract renew(ownerId: string): Promise<void>;
}

/** Programs in this process. {@link Hosting} is for programs in any process. */
export abstract class LocalHosting extends Hosting {
  /**
   * Stops stateful programs, so that another host can start them: running requests get `graceMs`, then the process is killed. The caller sends
   * no more requests meanwhile; later requests start the programs again. Resolves when no such process is left. Never
   * rejects.
   */
  abstract endStateful(graceMs: number): Promise<void>;

  /** @throws file system errors */
  abstract ownersWithState(): Promise<string[]>;

  abstract livePrograms(): Record<string, number>;
}

export function passingTo(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  };
}

/**
 * A request that is forwarded, possibly in several attempts. The caller controls it through the controller of the current attempt. The raw headers are hidden, since they include
 * hop-by-hop ones.
 */
export abstract class ForwardedRequest implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly rawHeaders = null;
  readonly rawTrailers = null;
  protected inner: Dispatcher.DispatchController | null = null;

  /** Aborts the request because its caller disconnected. Idempotent. */
  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onAbort(reason);
  }

  pause(): void {
    this.paused = true;
    this.inner?.pause();
  }

  resume(): void {
    this.paused = false;
    this.inner?.resume();
  }

  protected abstract onAbort(reason: Error): void;
}
