import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../platform/queue/register-queue.js';
import { QueueMetrics } from '../../platform/queue/queue-metrics.js';
import { ApiKeysService } from './api-keys.service.js';

/** Upkeep of API keys: one job a day. */
export const AUTH_QUEUE = 'auth';

/** Removes keys that expired long ago. The job has no payload and is idempotent. */
const PURGE_EXPIRED_KEYS = 'purge-expired-keys';

const PURGE_INTERVAL_MS = 24 * 60 * 60 * 1000;

/** Runs the daily clean-up of API keys, once a day for all workers together. */
@Processor(AUTH_QUEUE)
export class AuthProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly keys: ApiKeysService,
    @InjectQueue(AUTH_QUEUE) private readonly queue: Queue,
    metrics: QueueMetrics,
  ) {
    super();
    metrics.watch(queue);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.queue.upsertJobScheduler(
      PURGE_EXPIRED_KEYS,
      { every: PURGE_INTERVAL_MS },
      { name: PURGE_EXPIRED_KEYS, opts: jobOptions },
    );
  }

  async process(): Promise<number> {
    return this.keys.purgeExpired();
  }
}
