import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModuleRef } from '@nestjs/core';
import type { Dispatcher } from 'undici';
import { loadEnv } from '../../../src/config/env.js';
import { Tuning } from '../../../src/config/tuning.js';
import { Engines, type Engine } from '../../../src/hosting/engine.js';
import type { LogNames } from '../../../src/platform/telemetry/log-names.repository.js';
import { ProgramOwners, type Hosting, type ProgramOwner } from '../../../src/hosting/hosting.js';
import { ProgramStartError } from '../../../src/hosting/hosting.errors.js';
import {
  INVOCATION_HEADER,
  type HostedRequest,
  type Program,
  type ProgramQuota,
  type ProgramRef,
  type ProgramValues,
  type Trace,
} from '../../../src/hosting/hosting.types.js';
import { Runtime } from '../../../src/hosting/runtime/runtime.js';
import { Sandbox } from '../../../src/hosting/sandbox/sandbox.js';
import { WorkerdEngine } from '../../../src/hosting/worker/workerd-engine.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { until } from '../until.js';

/** Runs modules as the service does with this value of `HOSTING_ISOLATION`. */
export function workerdEngine(isolation = 'auto'): WorkerdEngine {
  return new WorkerdEngine(new Sandbox(loadEnv({ HOSTING_ISOLATION: isolation })));
}

/** Answer to a request to a program. */
export interface HostedAnswer {
  status: number;
  headers: Record<string, unknown>;
  body: string;
  /** Null when the answer came whole. */
  error: (Error & { outcome?: string }) | null;
  invocationId: string;
}

/** A request on its way. */
export interface HostedExchange {
  answer: Promise<HostedAnswer>;
  /** Resolves when the head of the answer is there, or the request ended without one. */
  head: Promise<void>;
  /** The caller leaves. */
  leave(): void;
  /** The part of the answer that has arrived. */
  soFar(): string;
}

/** Sends one request; `given` replaces what it is made of. */
export function hostedRequest(
  hosting: Hosting,
  ref: ProgramRef,
  path = '/',
  options: Partial<HostedRequest> & { handler?: Dispatcher.DispatchHandler } = {},
): HostedExchange {
  const invocationId = uuidV7();
  let controller: Dispatcher.DispatchController | undefined;
  let hasLeft = false;
  let body = '';
  const seen = { status: 0, headers: {} as Record<string, unknown> };
  let gotHead: () => void = () => undefined;
  const head = new Promise<void>((resolve) => (gotHead = resolve));
  const answer = new Promise<HostedAnswer>((resolve) => {
    const done = (error: Error | null) => {
      gotHead();
      resolve({ ...seen, body, error, invocationId });
    };
    hosting.dispatch(
      ref,
      {
        method: 'GET',
        path,
        isStream: false,
        ...options,
        headers: { host: 'program', [INVOCATION_HEADER]: invocationId, ...options.headers },
      },
      {
        onRequestStart: (given_) => {
          controller = given_;
          if (hasLeft) controller.abort(new Error('left'));
        },
        onResponseStart: (_, status, headers) => {
          Object.assign(seen, { status, headers });
          gotHead();
        },
        onResponseData: (_, chunk) => void (body += chunk.toString()),
        onResponseEnd: () => done(null),
        onResponseError: (_, error) => done(error),
        ...options.handler,
      },
    );
  });
  const leave = () => {
    hasLeft = true;
    controller?.abort(new Error('left'));
  };
  return { answer, head, leave, soFar: () => body };
}

/** A runtime of its own with an owner of programs whose code is given as text. */
export class HostedRuntime implements ProgramOwner {
  readonly traces: Trace[] = [];
  readonly runtime: Runtime;
  /** Secrets of programs that start from now on. */
  secrets: Record<string, string> = {};
  /** Error in place of the secrets. */
  failing: Error | null = null;
  /** The memory that the runtime believes to have. */
  readonly memory = { total: Infinity, own: () => process.memoryUsage.rss() };
  /** Number of reads of the secrets. */
  asked = 0;
  /** Quotas by owner; others are not limited. */
  readonly quotas = new Map<string, ProgramQuota>();
  private readonly files = new Map<string, string>();

  private constructor(
    private readonly folder: string,
    engine: Engine,
    settings: NodeJS.ProcessEnv,
    tuning: Partial<Tuning>,
  ) {
    const programs = new ProgramOwners({ get: () => this } as unknown as ModuleRef);
    programs.onModuleInit();
    const env = loadEnv({ DATA_DIR: folder, ...settings });
    const now = () => Promise.resolve(new Date());
    this.runtime = Runtime.create({
      env,
      tuning: new Tuning(tuning),
      owners: programs,
      engines: new Engines([engine]),
      deletionTime: now,
      memory: this.memory,
    });
  }

  static async start(
    engine: Engine,
    settings: NodeJS.ProcessEnv = {},
    tuning: Partial<Tuning> = {},
  ): Promise<HostedRuntime> {
    return new HostedRuntime(await mkdtemp(join(tmpdir(), 'slipway-hosted-')), engine, settings, tuning);
  }

  /** Folder of stored sessions. */
  get stateRoot(): string {
    return join(this.folder, 'hosting', 'state');
  }

  /** A version of a program; with `of`, the next one of the same owner. */
  async add(
    code: string,
    { of, isStateful = false }: { of?: ProgramRef; isStateful?: boolean } = {},
  ): Promise<ProgramRef> {
    const id = randomUUID();
    const file = join(this.folder, `${id}.mjs`);
    await writeFile(file, code);
    this.files.set(id, file);
    return { kind: 'release', id, ownerId: of?.ownerId ?? randomUUID(), engine: 'worker', isStateful };
  }

  request(ref: ProgramRef, path?: string, given?: Parameters<typeof hostedRequest>[3]): HostedExchange {
    return hostedRequest(this.runtime, ref, path, given);
  }

  /** The whole answer to one request. */
  ask(ref: ProgramRef, path?: string, given?: Parameters<typeof hostedRequest>[3]): Promise<HostedAnswer> {
    return this.request(ref, path, given).answer;
  }

  quotaOf(ref: ProgramRef): Promise<ProgramQuota> {
    return Promise.resolve(this.quotas.get(ref.ownerId) ?? { accountId: 'an-account', max: 1_000 });
  }

  namesOf(): Promise<LogNames> {
    return Promise.resolve({ server: 'acme/weather', account: 'an-account' });
  }

  /** All trace events of one request, joined as in its record. */
  told(invocationId: string): Trace | undefined {
    const pieces = this.traces.filter((trace) => trace.invocationId === invocationId);
    if (pieces.length === 0) return undefined;
    const lines = pieces.flatMap((piece) => piece.lines);
    const exceptions = pieces.flatMap((piece) => piece.exceptions);
    return Object.assign({}, ...pieces, { lines, exceptions }) as Trace;
  }

  /** The same, as soon as it ended in this way. */
  toldOutcome(invocationId: string, outcome: Trace['outcome']): Promise<Trace> {
    const isTold = () => {
      const told = this.told(invocationId);
      return told?.outcome === outcome ? told : undefined;
    };
    return until(isTold, `the request's outcome is ${outcome}`);
  }

  async withProgram<T>(ref: ProgramRef, use: (program: Program) => Promise<T>): Promise<T> {
    const file = this.files.get(ref.id);
    if (!file) throw new ProgramStartError('There is no such program any more.');
    return use({ ref, file, configSchema: null, ...(await this.valuesOf()) });
  }

  valuesOf(): Promise<ProgramValues> {
    this.asked += 1;
    if (this.failing) return Promise.reject(this.failing);
    return Promise.resolve({ secrets: this.secrets, egressAllow: null });
  }

  recordTrace(trace: Trace): void {
    this.traces.push(trace);
  }

  async close(): Promise<void> {
    await this.runtime.onApplicationShutdown();
    await rm(this.folder, { recursive: true, force: true });
  }
}
