import { Worker } from 'node:worker_threads';
import { compiledRoot } from '../child-process/run-in-child-process.js';
import { NoSlotError } from '../limits/keyed-limiter.js';
import type { ThreadMessage, ThreadRequest } from './fair-thread.worker.js';

const JOB_MS_MAX = 1_500;

const HEAP_MB_MAX = 256;

const WAITING_EACH_MAX = 100;

/** A job was stopped because it took too long or too much memory, together with its thread. */
export class ThreadJobEndedError extends Error {
  constructor(reason: 'time' | 'memory') {
    super(`A job of the thread was stopped: too much ${reason}`);
  }
}

interface Job {
  request: ThreadRequest;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

/**
 * For short synchronous work whose CPU time a tenant decides, such as compiling JSON Schemas. It starts with the first
 * job and runs one job after the other. Namespaces with waiting jobs take turns. A job that runs longer than 1.5 s is
 * stopped with the thread; the waiting jobs run in a new one.
 */
export class FairThread {
  private worker: Worker | null = null;
  private running: Job | null = null;
  private timer: NodeJS.Timeout | undefined;
  private readonly waiting = new Map<string, Job[]>();

  constructor(private readonly jobMsMax = JOB_MS_MAX) {}

  /**
   * Runs a job in a thread; input and result are copies.
   *
   * @param file under `src`, compiled, which exports the function `job`
   * @throws ThreadJobEndedError above the limits; NoSlotError when 100 jobs of the namespace wait; errors of the job
   */
  run<Work extends (input: never) => unknown>(
    namespaceId: string,
    file: string,
    input: Parameters<Work>[0],
  ): Promise<ReturnType<Work>> {
    return new Promise((resolve, reject) => {
      const jobs = this.waiting.get(namespaceId) ?? [];
      if (jobs.length >= WAITING_EACH_MAX) throw new NoSlotError();
      jobs.push({ request: { file, input }, resolve: resolve as Job['resolve'], reject });
      this.waiting.set(namespaceId, jobs);
      if (!this.running) this.startNext();
    });
  }

  private startNext(): void {
    const [next] = this.waiting;
    if (!next) return;
    const [namespaceId, jobs] = next;
    const [job, ...rest] = jobs;
    // Its other jobs wait behind those of all other namespaces.
    this.waiting.delete(namespaceId);
    if (rest.length > 0) this.waiting.set(namespaceId, rest);
    this.running = job;
    this.worker ??= this.startedWorker();
    try {
      this.worker.postMessage(job.request);
    } catch (error) {
      this.settle(() => job.reject(error as Error));
    }
  }

  private startedWorker(): Worker {
    const worker = new Worker(`${compiledRoot}platform/threads/fair-thread.worker.js`, {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    });
    worker.unref();
    let failure: Error | null = null;
    worker.on('message', (message: ThreadMessage) => {
      if (worker === this.worker) this.received(message);
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      failure = error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new ThreadJobEndedError('memory') : error;
    });
    worker.on('exit', (code) => {
      if (worker === this.worker) this.handleExit(failure ?? new Error(`The thread ended with ${code}`));
    });
    return worker;
  }

  private received(message: ThreadMessage): void {
    if (message === 'started') {
      const job = this.running;
      // A response that arrived while this process was busy is received before the check.
      const interrupt = () => {
        if (job !== this.running) return;
        void this.worker?.terminate();
        this.handleExit(new ThreadJobEndedError('time'));
      };
      this.timer = setTimeout(() => setImmediate(interrupt), this.jobMsMax);
      return;
    }
    this.settle((job) => ('error' in message ? job.reject(message.error) : job.resolve(message.result)));
  }

  private handleExit(error: Error): void {
    this.worker = null;
    this.settle((job) => job.reject(error));
  }

  private settle(answer: (job: Job) => void): void {
    clearTimeout(this.timer);
    const job = this.running;
    this.running = null;
    if (job) answer(job);
    this.startNext();
  }
}

export const tenantThread = new FairThread();
