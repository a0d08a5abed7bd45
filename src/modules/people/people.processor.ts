import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../platform/queue/register-queue.js';
import { QueueMetrics } from '../../platform/queue/queue-metrics.js';
import { PeopleRepository } from './people.repository.js';

/** Upkeep of sessions and invitations: one job a day. */
export const PEOPLE_QUEUE = 'people';

/** Removes expired sessions and invitations. The job has no payload and is idempotent. */
const PURGE_EXPIRED = 'purge-expired';

const PURGE_INTERVAL_MS = 24 * 60 * 60 * 1000;

/** Runs the daily clean-up of sessions and invitations, once a day for all workers together. */
@Processor(PEOPLE_QUEUE)
export class PeopleProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly rows: PeopleRepository,
    @InjectQueue(PEOPLE_QUEUE) private readonly queue: Queue,
    metrics: QueueMetrics,
  ) {
    super();
    metrics.watch(queue);
  }

  async onApplicationBootstrap(): Promise<void> {
    const repeated = { every: PURGE_INTERVAL_MS };
    await this.queue.upsertJobScheduler(PURGE_EXPIRED, repeated, { name: PURGE_EXPIRED, opts: jobOptions });
  }

  async process(): Promise<number> {
    return this.rows.purgeExpired();
  }
}
