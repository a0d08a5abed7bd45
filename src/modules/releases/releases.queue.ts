import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../platform/queue/job-options.js';
import { QueueMetrics } from '../../platform/queue/queue-metrics.js';

export const RELEASES_QUEUE = 'releases';

/** Ids only: job data lies in the queue's store in clear text. */
export interface RunReleaseJob {
  releaseId: string;
  attempt: number;
}

/** Hands releases to the workers. */
@Injectable()
export class ReleasesQueue {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectQueue(RELEASES_QUEUE) private readonly queue: Queue<RunReleaseJob>,
    figures: QueueMetrics,
  ) {
    figures.watch(queue);
  }

  /**
   * Asks for a run of the pipeline. Neither waits nor fails: the release is in the database, and the sweeper asks again
   * for what no worker took.
   */
  enqueue(job: RunReleaseJob): void {
    // The attempt belongs to the id: BullMQ ignores a job whose id it still remembers.
    const jobId = `release-${job.releaseId}-${job.attempt}`;
    this.queue.add('run', job, { ...jobOptions, jobId }).catch((error: unknown) => {
      this.logger.warn({ msg: `release ${job.releaseId} waits for the queue`, err: error });
    });
  }
}
