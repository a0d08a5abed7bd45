import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { Queue } from 'bullmq';
import { jobOptions } from '../../platform/queue/job-options.js';
import { QueueMetrics } from '../../platform/queue/queue-metrics.js';
import { ApiKeysService } from './api-keys.service.js';
import { AUTH_QUEUE, PURGE_EXPIRED_KEYS, PURGE_INTERVAL_MS } from './auth.queue.js';

/** Runs the daily clean-up of API keys; however many workers there are, it runs once a day. */
@Processor(AUTH_QUEUE)
export class AuthProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly keys: ApiKeysService,
    @InjectQueue(AUTH_QUEUE) private readonly queue: Queue,
    figures: QueueMetrics,
  ) {
    super();
    figures.watch(queue);
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
