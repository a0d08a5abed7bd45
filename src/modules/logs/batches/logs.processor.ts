import { randomInt } from 'node:crypto';
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationStore } from '../store/invocation-store.js';
import { LogBatchesRepository } from './log-batches.repository.js';
import { publishIngested } from '../store/ingested.js';
import { LOGS_QUEUE } from './logs.queue.js';

/** Number of concurrent writers; Postgres does most of the work. */
const WRITERS = 2;

/**
 * Writes the batches that are waiting when the job starts, each in its own transaction, and announces their servers together. A record that
 * the database rejects is left out and counted; the others are written.
 */
@Injectable()
@Processor(LOGS_QUEUE)
export class LogsProcessor extends WorkerHost {
  private written = 0;
  private repeated = 0;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly logBatchesRepository: LogBatchesRepository,
    private readonly invocationStore: InvocationStore,
    private readonly pubSub: PubSub,
    metrics: Metrics,
  ) {
    super();
    metrics.counter(
      'slipway_log_batches_written_total',
      'Requests with records that this worker wrote.',
      () => this.written,
    );
    metrics.counter(
      'slipway_log_batches_repeated_total',
      'Batches that another job wrote, or is writing, or that were deleted with their server.',
      () => this.repeated,
    );
  }

  /** @throws AggregateError of the failed batches, so that the queue retries */
  async process(): Promise<void> {
    const ids = await this.logBatchesRepository.oldest();
    const serverIds = new Set<string>();
    const errors: unknown[] = [];
    const write = async () => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        try {
          const serverId = await this.write(id);
          if (serverId !== null) serverIds.add(serverId);
        } catch (error) {
          errors.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, write));
    publishIngested(this.pubSub, serverIds);
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} batches of records wait for the database`);
  }

  /** @returns the server of the batch; null if the batch no longer exists or is being written elsewhere */
  private async write(id: string): Promise<string | null> {
    const outcome = await this.database.transaction(async (tx) => {
      const batch = await this.logBatchesRepository.remove(id, tx);
      if (batch === null) return null;
      return { ...batch, result: await this.invocationStore.write(batch.invocations, randomInt(2 ** 31), tx) };
    });
    if (outcome === null) {
      this.repeated += 1;
      return null;
    }
    this.written += 1;
    this.invocationStore.conclude(outcome.result);
    return outcome.serverId;
  }
}
