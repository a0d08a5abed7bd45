import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import { DataSource } from 'typeorm';
import { jobOptions } from '../../platform/queue/register-queue.js';
import { LogNamesRepository } from '../../platform/telemetry/log-names.repository.js';

export const RELEASES_QUEUE = 'releases';

/** Job of a release, with ids only: the queue stores job data in clear. */
export interface RunReleaseJob {
  releaseId: string;
  attempt: number;
}

@Injectable()
export class ReleasesQueue {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectQueue(RELEASES_QUEUE) private readonly queue: Queue<RunReleaseJob>,
    private readonly database: DataSource,
  ) {}

  /** Runs in the background. Never fails: the sweeper enqueues a release again if no worker claims it. */
  enqueue(job: RunReleaseJob): void {
    // The id contains the attempt, because BullMQ ignores a job whose id it still remembers.
    const jobId = `release-${job.releaseId}-${job.attempt}`;
    this.queue.add('run', job, { ...jobOptions, jobId }).catch((error: unknown) => {
      void LogNamesRepository.find(this.database, 'release', job.releaseId).then((names) => {
        this.logger.warn({ msg: 'a release waits for the queue', releaseId: job.releaseId, ...names, err: error });
      });
    });
  }
}
