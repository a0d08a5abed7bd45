import { BullModule } from '@nestjs/bullmq';
import { Logger, type DynamicModule } from '@nestjs/common';
import { Queue, Worker, type JobsOptions, type Processor, type WorkerOptions } from 'bullmq';
import { withTimeout } from '../limits/with-timeout.js';
import { tracing } from '../telemetry/tracing.js';
import { CLOSE_MS_MAX } from './queue-backend.js';

/** Options of every job. Finished jobs slow down claims on Postgres, so few are retained. @stability preview */
export const jobOptions = {
  attempts: 5,
  backoff: { type: 'exponential', delay: 1_000 },
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1_000 },
} as const satisfies JobsOptions;

/**
 * Logs the errors of the store's client from the start: BullMQ prints errors without a listener itself, without redaction.
 * At debug, since the caller that adds a job receives the error too.
 */
class LoggedQueue extends Queue {
  constructor(...args: ConstructorParameters<typeof Queue>) {
    super(...args);
    const logger = new Logger(this.name);
    this.on('error', (error) => logger.debug({ msg: 'the queue does not answer', err: error }));
  }
}

/** A worker that logs why jobs fail, and that the queue does not respond. @stability preview */
export class JobWorker extends Worker {
  constructor(name: string, processor: ConstructorParameters<typeof Worker>[1], options?: WorkerOptions) {
    // Each job runs in its own span if traces are sent.
    const runTraced: Processor = (job, ...rest) => {
      const attributes = { 'messaging.destination.name': job.queueName, 'messaging.message.id': job.id };
      const run = () => (processor as Processor)(job, ...rest);
      return tracing()?.run(`process ${job.queueName}`, 'internal', attributes, run) ?? run();
    };
    super(name, typeof processor === 'function' ? runTraced : processor, options);
    const logger = new Logger(this.name);
    this.on('error', (error) => logger.warn({ msg: 'the queue does not answer', err: error }));
    this.on('failed', (job, error) => {
      if (job && job.finishedOn === undefined) logger.warn({ msg: `job ${job.id} is tried again`, err: error });
      else logger.error({ msg: `job ${job?.id} failed`, err: error });
    });
  }

  /**
   * Finishes within 5 s: another worker repeats an interrupted job. After an outage of the database, BullMQ 6.7 on
   * Postgres sometimes never finishes, and would block the shutdown.
   */
  override close(force?: boolean): Promise<void> {
    return withTimeout(CLOSE_MS_MAX, super.close(force), undefined);
  }
}

BullModule.queueClass = LoggedQueue;
BullModule.workerClass = JobWorker;

/** Registers the queue of this name for the `@InjectQueue` and `@Processor` that name it, and for the metrics. @stability preview */
export function registerQueue(name: string): DynamicModule {
  return BullModule.registerQueue({ name });
}
