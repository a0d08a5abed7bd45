import { InjectQueue } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../../platform/queue/register-queue.js';
import { QueueMetrics } from '../../../platform/queue/queue-metrics.js';
import type { Invocation } from '../invocation.types.js';

export const LOGS_QUEUE = 'log-ingestion';

/** Maximum number of invocations of one job. */
export const JOB_ROWS_MAX = 1_000;

/** Maximum number of characters of one job, unless a single invocation has more. */
export const JOB_CHARS_MAX = 512 * 1024;

/** Maximum number of jobs that wait while the workers are slower than the requests: 256 MB. */
const JOBS_WAITING_MAX = 500;

/** From this many waiting jobs on only full jobs are sent, so that small jobs do not use up the limit. */
const JOBS_WAITING_MANY = 20;

/** Retries for 14 hours: the database may be unavailable that long. */
const RETRIES = { attempts: 10_000, backoff: { type: 'fixed', delay: 5_000 } } as const;

/** Maximum age of the cached queue length. */
const LENGTH_AGE_MAX_MS = 1_000;

/** Invocations to store, without credentials: the queue's store holds job data in clear text. */
export interface KeepInvocationsJob {
  /** A random number from 0 to 2^31 - 1, the same each time the job runs. */
  job: number;
  rows: Invocation[];
}

/** Sends invocations to the workers. */
@Injectable()
export class LogsQueue {
  private length = 0;
  private lengthReadAt = -Infinity;

  constructor(
    @InjectQueue(LOGS_QUEUE) private readonly queue: Queue<KeepInvocationsJob>,
    metrics: QueueMetrics,
  ) {
    metrics.watch(queue);
  }

  /** The minimum number of rows of the next job: 1; 1,000 while many jobs wait; Infinity while too many wait. */
  async rowsWanted(): Promise<number> {
    if (performance.now() - this.lengthReadAt > LENGTH_AGE_MAX_MS) {
      this.length = await this.queue.getJobCountByTypes('waiting', 'delayed');
      this.lengthReadAt = performance.now();
    }
    if (this.length >= JOBS_WAITING_MAX) return Infinity;
    return this.length >= JOBS_WAITING_MANY ? JOB_ROWS_MAX : 1;
  }

  /** @throws the error of the queue's client; the same job may be added again */
  async add(job: KeepInvocationsJob): Promise<void> {
    const options = { ...jobOptions, ...RETRIES, removeOnComplete: true, jobId: `log-${job.job}` };
    await this.queue.add('keep', job, options);
    this.length += 1;
  }
}
