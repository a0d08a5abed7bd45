import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { Queue } from 'bullmq';
import { QueueMetrics } from '../../platform/queue/queue-metrics.js';
import { jobOptions } from '../../platform/queue/register-queue.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';

/** Upkeep of the authorization server: one job an hour. */
export const AUTHORIZATION_SERVER_QUEUE = 'authorization-server';

const SWEEP = 'sweep-logins';
const SWEEP_INTERVAL_MS = 60 * 60 * 1000;

/** Removes what is over, once an hour for all workers together. The job has no payload and is idempotent. */
@Processor(AUTHORIZATION_SERVER_QUEUE)
export class AuthorizationServerProcessor extends WorkerHost implements OnApplicationBootstrap {
  constructor(
    private readonly rows: AuthorizationServerRepository,
    @InjectQueue(AUTHORIZATION_SERVER_QUEUE) private readonly queue: Queue,
    metrics: QueueMetrics,
  ) {
    super();
    metrics.watch(queue);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.queue.upsertJobScheduler(SWEEP, { every: SWEEP_INTERVAL_MS }, { name: SWEEP, opts: jobOptions });
  }

  async process(): Promise<number> {
    return this.rows.sweep();
  }
}
