/**
 * Engine for ES modules: each program is a workerd process in the sandbox, connected by unix sockets only (requests,
 * health, egress, trace).
 *
 * workerd gets folders as open descriptors, because its account cannot pass the folders above them, and its files are
 * removed once it has read them. A stateful program has its sessions as SQLite files in the owner's state folder, at
 * most 1 GB.
 *
 * Fails: a module that does not load in 30 s, or exits before, is a ProgramStartError with its output, or with the
 * memory limit. One that the machine killed (SIGKILL) is started a second time.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { Engine, type EngineContext, type Instance, type InstanceExit } from '../engine.js';
import { openEgress } from '../egress/egress-proxy.js';
import type { InternalRoutes } from '../egress/internal-routes.js';
import { ProgramStartError } from '../hosting.errors.js';
import type { Program } from '../hosting.types.js';
import { HeldFiles, Sandbox } from '../sandbox/sandbox.js';
import { InFlight } from './in-flight-requests.js';
import { ProgramLog } from './program-log.js';
import { makeSessionsDir, removeRunFiles, writeRunFiles } from './run-files.js';
import { trimSessions, watchSessions } from './session-disk.js';
import { openTraceSink } from './trace-sink.js';
import { FILES, SOCKETS } from './workerd-config.js';
import { WorkerdProcess } from './workerd-process.js';
import { Pool, type Dispatcher } from 'undici';
import { connectorOf } from '../../platform/egress/early-close.js';

/**
 * An ordinary one takes a tenth of a second, and about ten seconds when a hundred start concurrently on two busy cores.
 */
const START_MS_MAX = 30_000;

/** Length limit of the output of a module that does not load. */
const OUTPUT_CHARS_MAX = 8_000;

/** First free descriptor after the standard streams and workerd's control channel. */
const FIRST_HELD = 4;

const ORIGIN = 'http://program';

class WorkerdInstance implements Instance {
  readonly pid: number | null;
  readonly dispatcher: Dispatcher;
  readonly exited: Promise<InstanceExit>;
  private readonly requests: Pool;
  private readonly health: Pool;
  private isAsked = false;
  private killReason: string | null = null;

  /** @param cleanUp called after the exit; must not reject */
  constructor(
    private readonly process: WorkerdProcess,
    inFlight: InFlight,
    runDir: string,
    cleanUp: () => Promise<void>,
  ) {
    this.pid = process.pid;
    this.requests = pool(path.join(runDir, SOCKETS.requests));
    this.health = pool(path.join(runDir, SOCKETS.health));
    this.dispatcher = inFlight.watch(this.requests);
    this.exited = this.awaitExit(cleanUp);
  }

  async ping(timeoutMs: number): Promise<void> {
    const { body } = await this.health.request({ path: '/', method: 'GET', signal: AbortSignal.timeout(timeoutMs) });
    await body.dump();
  }

  async stop(graceMs: number): Promise<void> {
    this.isAsked = true;
    this.process.signal('SIGTERM');
    const timer = setTimeout(() => this.process.signal('SIGKILL'), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.isAsked = true;
    this.process.signal('SIGKILL');
  }

  killFor(reason: string): void {
    this.killReason ??= reason;
    this.process.signal('SIGKILL');
  }

  private async awaitExit(cleanUp: () => Promise<void>): Promise<InstanceExit> {
    const { by, hasRunOutOfMemory, lastWords } = await this.process.ended;
    await Promise.all([this.requests.destroy(), this.health.destroy()]);
    await cleanUp();
    if (this.killReason !== null) return { reason: 'crashed', detail: this.killReason };
    if (hasRunOutOfMemory) return { reason: 'memory', detail: 'It exceeded its memory limit.' };
    if (this.isAsked) return { reason: 'stopped', detail: '' };
    return { reason: 'crashed', detail: [...lastWords, `The process ended with ${by}.`].join('\n') };
  }
}

@Injectable()
export class WorkerdEngine extends Engine {
  readonly name = 'worker';

  /** @param proxy `EGRESS_PROXY`, for requests of programs @param internalRoutes addresses that are not public and open to them */
  constructor(
    private readonly sandbox: Sandbox,
    private readonly proxy: string | null = null,
    private readonly internalRoutes: InternalRoutes | null = null,
  ) {
    super();
  }

  override whyNot(): Promise<string | null> {
    return this.sandbox.whyNot();
  }

  async start(program: Program, context: EngineContext): Promise<Instance> {
    const inFlight = new InFlight();
    const log = new ProgramLog(program.ref, inFlight, context.limits.logBytes, (trace) => context.onTrace(trace));
    const opened: (() => Promise<void>)[] = [async () => log.close()];
    const cleanUp = async () => {
      for (const close of opened.splice(0).reverse()) await close();
    };
    try {
      const closeSink = await openTraceSink(path.join(context.runDir, SOCKETS.sink), (items) => log.report(items));
      opened.push(closeSink);
      const egress = await openEgress(
        path.join(context.runDir, SOCKETS.egress),
        { allow: program.egressAllow, onRefused: (line) => log.add(line) },
        this.proxy,
        this.internalRoutes,
      );
      opened.push(() => egress.close());
      const stateDir = program.ref.isStateful ? await makeSessionsDir(context.stateDir) : null;
      const process = await this.launch(program, context, stateDir, log);
      const instance = new WorkerdInstance(process, inFlight, context.runDir, cleanUp);
      if (stateDir !== null) {
        const stop = watchSessions(stateDir, () => instance.killFor(TOO_MUCH_DISK));
        opened.push(async () => stop());
      }
      return instance;
    } catch (error) {
      await cleanUp();
      throw error;
    }
  }

  private async launch(
    program: Program,
    context: EngineContext,
    stateDir: string | null,
    log: ProgramLog,
  ): Promise<WorkerdProcess> {
    const { runDir, limits } = context;
    const openFiles = new HeldFiles(FIRST_HELD);
    try {
      // The package's binary; throws if not installed for this platform.
      const binary = createRequire(import.meta.url)('workerd') as { default: string };
      const workerd = await openFiles.holdOpen(binary.default);
      const config = path.join(await openFiles.holdOpen(runDir), FILES.config);
      if (stateDir !== null) await trimSessions(stateDir);
      const state = stateDir === null ? null : await openFiles.holdOpen(stateDir);
      await writeRunFiles(program, context, state);
      const launch = await this.sandbox.command(workerd, ['serve', '--control-fd=3', config], {
        memoryMb: limits.memoryMb,
        ownerId: program.ref.ownerId,
        runDir,
        folders: stateDir === null ? [] : [stateDir],
      });
      const sockets = ['requests', 'health'];
      const process = await listening(
        () => new WorkerdProcess(launch, openFiles, sockets, context.redact, (line) => log.print(line)),
      );
      log.reportLoad();
      return process;
    } finally {
      await openFiles.release();
      await removeRunFiles(program, runDir);
    }
  }
}

const TOO_MUCH_DISK = 'Its sessions exceeded their disk limit (1 GB, or 40,000 files): the oldest are removed.';

const KILLED =
  'The machine killed the module twice while it was loaded (SIGKILL), as it does when its own memory runs out. Try again ' +
  'later; the operator of this service has the log of the kernel.';

/**
 * Waits until the process listens. A process that was killed from outside, as Linux does when memory runs out, is spawned a second time.
 *
 * @throws ProgramStartError with its output, when it exits before or on timeout
 */
async function listening(spawn: () => WorkerdProcess, isLast = false): Promise<WorkerdProcess> {
  const process = spawn();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.signal('SIGKILL');
  }, START_MS_MAX);
  const isReady = await process.ready();
  clearTimeout(timer);
  if (isReady) return process;
  const { by, hasRunOutOfMemory, lastWords, detail } = await process.ended;
  const isKilled = by === 'SIGKILL' && !isLate && !hasRunOutOfMemory;
  if (isKilled && !isLast) return listening(spawn, true);
  let message = `The module could not be started (${by}).`;
  if (isKilled) message = KILLED;
  if (hasRunOutOfMemory) message = 'The module exceeded its memory limit while it was loaded.';
  if (isLate) message = `The module did not finish loading within ${START_MS_MAX / 1_000} seconds.`;
  throw new ProgramStartError(
    message,
    detail,
    isKilled || hasRunOutOfMemory || isLate ? '' : lastWords.join('\n').slice(0, OUTPUT_CHARS_MAX),
  );
}

function pool(socketPath: string): Pool {
  return new Pool(ORIGIN, { connect: connectorOf({ socketPath }), headersTimeout: 0, bodyTimeout: 0 });
}
