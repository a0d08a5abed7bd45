import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Queue } from 'bullmq';
import { boundClose } from '../../platform/queue/bounded-close.js';
import { jobOptions } from '../../platform/queue/job-options.js';
import { QueueFigures } from '../../platform/queue/queue-figures.js';
import { ApiKeysService } from './api-keys.service.js';
import { AUTH_QUEUE, PURGE_EXPIRED_KEYS, PURGE_INTERVAL_MS } from './auth.queue.js';

/** Runs the daily clean-up of API keys; however many workers there are, it runs once a day. */
@Processor(AUTH_QUEUE)
export class AuthProcessor extends WorkerHost implements OnApplicationBootstrap {
  private readonly logger = new Logger('auth');

  constructor(
    private readonly keys: ApiKeysService,
    @InjectQueue(AUTH_QUEUE) private readonly queue: Queue,
    figures: QueueFigures,
  ) {
    super();
    figures.watch(queue);
    // Without a listener BullMQ prints the error on its own, past the log and its redaction.
    this.queue.on('error', (error) => this.complain(error));
  }

  async onApplicationBootstrap(): Promise<void> {
    boundClose(this.worker);
    this.worker.on('failed', (job, error) => this.logger.error({ msg: `job ${job?.name} failed`, err: error }));
    this.worker.on('error', (error) => this.complain(error));
    await this.queue.upsertJobScheduler(
      PURGE_EXPIRED_KEYS,
      { every: PURGE_INTERVAL_MS },
      { name: PURGE_EXPIRED_KEYS, opts: jobOptions },
    );
  }

  async process(): Promise<number> {
    return this.keys.purgeExpired();
  }

  private complain(error: Error): void {
    this.logger.warn({ msg: 'the queue does not answer', err: error });
  }
}
