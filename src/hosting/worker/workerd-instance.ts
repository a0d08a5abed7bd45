import { Pool, type Dispatcher } from 'undici';
import path from 'node:path';
import type { Instance, InstanceExit } from '../engine.js';
import type { InFlight } from './in-flight-requests.js';
import type { ProcessEnd, WorkerdProcess } from './workerd-process.js';
import { SOCKETS } from './workerd-config.js';

/** Any host does: the socket is the address. */
const ORIGIN = 'http://program';

/** A running workerd. */
export class WorkerdInstance implements Instance {
  readonly pid: number | null;
  readonly dispatcher: Dispatcher;
  readonly exited: Promise<InstanceExit>;
  private readonly requests: Pool;
  private readonly health: Pool;
  private isAsked = false;
  private why: string | null = null;

  /** @param cleanUp what is to be closed when the process is gone; must not reject */
  constructor(
    private readonly process: WorkerdProcess,
    inFlight: InFlight,
    sockets: string,
    cleanUp: () => Promise<void>,
  ) {
    this.pid = process.pid;
    this.requests = pool(path.join(sockets, SOCKETS.requests));
    this.health = pool(path.join(sockets, SOCKETS.health));
    this.dispatcher = inFlight.watch(this.requests);
    this.exited = this.over(cleanUp);
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

  /** Ends it now, for a reason its author is told. */
  end(reason: string): void {
    this.why ??= reason;
    this.process.signal('SIGKILL');
  }

  private async over(cleanUp: () => Promise<void>): Promise<InstanceExit> {
    const end = await this.process.ended;
    await Promise.all([this.requests.destroy(), this.health.destroy()]);
    await cleanUp();
    return this.why === null ? exitOf(end, this.isAsked) : { reason: 'crashed', detail: this.why };
  }
}

function pool(socketPath: string): Pool {
  // Deadlines are the caller's: an event stream may be silent for hours.
  return new Pool(ORIGIN, { socketPath, headersTimeout: 0, bodyTimeout: 0 });
}

function exitOf({ by, hasRunOutOfMemory, lastWords }: ProcessEnd, isAsked: boolean): InstanceExit {
  if (hasRunOutOfMemory) return { reason: 'memory', detail: 'It took more memory than it may.' };
  if (isAsked) return { reason: 'stopped', detail: '' };
  return { reason: 'crashed', detail: [...lastWords, `The process ended with ${by}.`].join('\n') };
}
