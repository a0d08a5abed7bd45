import { Processor, WorkerHost } from '@nestjs/bullmq';
import { DelayedError, type Job } from 'bullmq';
import { ReleasePipeline } from './release-pipeline.js';
import { RELEASES_QUEUE, type RunReleaseJob } from '../releases.queue.js';

/** Releases wait for upstreams most of the time, so one worker runs several. */
const CONCURRENCY = 8;

/** Delay of a job that a stopping process fetched, so that another process takes it. */
const HANDOVER_MS = 100;

/** Runs the pipeline of one release per job. */
@Processor(RELEASES_QUEUE, { concurrency: CONCURRENCY })
export class ReleasesProcessor extends WorkerHost {
  constructor(private readonly pipeline: ReleasePipeline) {
    super();
  }

  async process(job: Job<RunReleaseJob>, token?: string): Promise<void> {
    if (this.pipeline.isStopping) {
      await job.moveToDelayed(Date.now() + HANDOVER_MS, token);
      throw new DelayedError();
    }
    await this.pipeline.run(job.data.releaseId, job.data.attempt);
  }
}
