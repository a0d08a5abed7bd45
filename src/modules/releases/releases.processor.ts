import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DelayedError, type Job } from 'bullmq';
import { boundClose } from '../../platform/queue/bounded-close.js';
import { ReleasePipeline } from './release-pipeline.js';
import { RELEASES_QUEUE, type RunReleaseJob } from './releases.queue.js';

/** Releases wait for upstreams most of the time, so one worker runs several. */
const CONCURRENCY = 8;

/** A process that stops still fetches jobs for a moment; by then another one looks at them. */
const LEFT_TO_OTHERS_MS = 100;

/** Runs the pipeline of one release per job. */
@Processor(RELEASES_QUEUE, { concurrency: CONCURRENCY })
export class ReleasesProcessor extends WorkerHost implements OnApplicationBootstrap {
  private readonly logger = new Logger('releases');

  constructor(private readonly pipeline: ReleasePipeline) {
    super();
  }

  onApplicationBootstrap(): void {
    boundClose(this.worker);
    this.worker.on('failed', (job, error) => this.logger.error({ msg: `job ${job?.id} failed`, err: error }));
    this.worker.on('error', (error) => this.logger.warn({ msg: 'the queue does not answer', err: error }));
  }

  async process(job: Job<RunReleaseJob>, token?: string): Promise<void> {
    if (this.pipeline.isStopping) {
      await job.moveToDelayed(Date.now() + LEFT_TO_OTHERS_MS, token);
      throw new DelayedError();
    }
    await this.pipeline.run(job.data.releaseId, job.data.attempt);
  }
}
