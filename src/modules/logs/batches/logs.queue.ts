import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import { RowCache } from '../../../platform/database/row-cache.js';
import { jobOptions } from '../../../platform/queue/register-queue.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { LogBatchesRepository } from './log-batches.repository.js';

export const LOGS_QUEUE = 'logs';

export const SWEEP_EVERY_MS = 5_000;

/** Period whose batches one job of this process writes. */
const WINDOW_MS = 500;

/**
 * Enqueues a job for the workers at the end of each half second with new batches. A lost job loses no data: the sweep
 * enqueues more until all are written.
 */
@Injectable()
export class LogsQueue {
  private readonly logger = new Logger('logs');
  private window = 0;

  constructor(
    @InjectQueue(LOGS_QUEUE) private readonly queue: Queue,
    private readonly logBatchesRepository: LogBatchesRepository,
    metrics: Metrics,
  ) {
    // Frequent scrapes cost the database at most one query in 5 s.
    const waiting = new RowCache(() => this.logBatchesRepository.waiting());
    metrics.gauge(
      'slipway_log_batches_waiting',
      'Requests with records that no worker has written yet, of the whole service.',
      async () => (await waiting.get(''))?.batches ?? 0,
      'max',
    );
    metrics.gauge(
      'slipway_log_batches_oldest_seconds',
      'Age of the oldest request with records that no worker has written yet; 0 without one.',
      async () => (await waiting.get(''))?.oldestSeconds ?? 0,
      'max',
    );
  }

  /** Enqueues a job at the end of this half second, in the background. Never fails. */
  enqueue(): void {
    const now = Date.now();
    const window = Math.floor(now / WINDOW_MS) + 1;
    if (window === this.window) return;
    this.window = window;
    this.queue
      .add('write', {}, { ...jobOptions, delay: window * WINDOW_MS - now })
      .catch((error: unknown) => this.logger.debug({ msg: 'batches of records wait for the queue', err: error }));
  }

  async sweep(): Promise<void> {
    if (await this.logBatchesRepository.hasOverdue()) this.enqueue();
  }
}
