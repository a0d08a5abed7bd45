import { InjectQueue } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../../platform/queue/job-options.js';
import { QueueMetrics } from '../../../platform/queue/queue-metrics.js';
import type { InvocationRow } from '../store/invocation-row.js';

export const LOGS_QUEUE = 'log-ingestion';

/** Invocations one job carries at most. */
export const JOB_ROWS_MAX = 1_000;

/** Characters one job carries at most, unless a single invocation has more. */
export const JOB_CHARS_MAX = 512 * 1024;

/** Jobs that wait at most while no worker keeps up: 256 MB at most. */
const JOBS_WAITING_MAX = 500;

/** From here on only full jobs are handed over, so that a day of little traffic does not use up the places. */
const JOBS_WAITING_MANY = 20;

/** 14 hours, in which the database may be away. */
const RETRIES = { attempts: 10_000, backoff: { type: 'fixed', delay: 5_000 } } as const;

/** How old the known length of the queue may be. */
const LENGTH_AGE_MAX_MS = 1_000;

/** Rows to keep. Credentials are blanked in them: job data lies in the queue's store in clear text. */
export interface KeepInvocationsJob {
  /** A random number from 0 to 2^31 - 1 that tells this job from others, also when it runs again. */
  job: number;
  rows: InvocationRow[];
}

/** Hands invocations to the workers. */
@Injectable()
export class LogsQueue {
  private length = 0;
  private lengthReadAt = -Infinity;

  constructor(
    @InjectQueue(LOGS_QUEUE) private readonly queue: Queue<KeepInvocationsJob>,
    figures: QueueMetrics,
  ) {
    figures.watch(queue);
  }

  /** How many rows a job must have to be taken now: 1, 1,000 while many wait, Infinity while too many do. */
  async rowsWanted(): Promise<number> {
    if (performance.now() - this.lengthReadAt > LENGTH_AGE_MAX_MS) {
      this.length = await this.queue.getJobCountByTypes('waiting', 'delayed');
      this.lengthReadAt = performance.now();
    }
    if (this.length >= JOBS_WAITING_MAX) return Infinity;
    return this.length >= JOBS_WAITING_MANY ? JOB_ROWS_MAX : 1;
  }

  /** @throws what the queue's client says; the same job may be handed over again then */
  async add(job: KeepInvocationsJob): Promise<void> {
    const options = { ...jobOptions, ...RETRIES, removeOnComplete: true, jobId: `log-${job.job}` };
    await this.queue.add('keep', job, options);
    this.length += 1;
  }
}
