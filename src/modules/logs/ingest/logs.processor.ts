import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { IngestNotifier } from '../stream/ingest-notifier.js';
import { InvocationStore } from '../store/invocation-store.js';
import { LOGS_QUEUE, type KeepInvocationsJob } from './logs.queue.js';

/** While one job waits for the database the next one is read. */
const CONCURRENCY = 2;

/** After this long without a sign of life of its worker a job is given to another one. Writing one takes some 50 ms. */
const LOCK_MS = 6_000;

/** A worker that dies does so for reasons of its own, so a job is tried again however often that happens. */
const RECOVERIES_MAX = 1_000;

const options = {
  concurrency: CONCURRENCY,
  lockDuration: LOCK_MS,
  stalledInterval: LOCK_MS / 2,
  maxStalledCount: RECOVERIES_MAX,
};

/** Writes the rows of a job. A job that runs again, because its worker died in the middle, changes nothing twice. */
@Processor(LOGS_QUEUE, options)
export class LogsProcessor extends WorkerHost {
  constructor(
    private readonly store: InvocationStore,
    private readonly hints: IngestNotifier,
  ) {
    super();
  }

  async process({ data: { job, rows } }: Job<KeepInvocationsJob>): Promise<void> {
    await this.store.keep(rows, job);
    this.hints.add(rows.map(({ serverId }) => serverId));
  }
}
