import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Job } from 'bullmq';
import { boundClose } from '../../platform/queue/bounded-close.js';
import { ReleasePipeline } from './release-pipeline.js';
import { RELEASES_QUEUE, type RunReleaseJob } from './releases.queue.js';

/** Releases wait for upstreams most of the time, so one worker runs several. */
const CONCURRENCY = 8;

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

  process({ data }: Job<RunReleaseJob>): Promise<void> {
    return this.pipeline.run(data.releaseId, data.attempt);
  }
}
