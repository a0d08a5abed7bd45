import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { InvocationStore } from '../store/invocation-store.js';
import { LOGS_QUEUE, type KeepInvocationsJob } from './logs.queue.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';

/** While one job waits for the database the next one is read. */
const CONCURRENCY = 2;

/** A job whose worker does not renew its lock for this long runs in another worker. One run takes about 50 ms. */
const LOCK_MS = 6_000;

/** High, because a worker that dies is not the fault of the job. */
const RECOVERIES_MAX = 1_000;

const options = {
  concurrency: CONCURRENCY,
  lockDuration: LOCK_MS,
  stalledInterval: LOCK_MS / 2,
  maxStalledCount: RECOVERIES_MAX,
};

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published after each batch of invocations of servers was stored, at most 100 servers per message. */
    'logs.ingested': { serverIds: string[] };
  }
}

/** Maximum number of servers per message: a NOTIFY of Postgres holds 8,000 bytes. */
const SERVERS_MAX = 100;

/** Stores the rows of a job. Idempotent: a job may run again after its worker died. */
@Processor(LOGS_QUEUE, options)
export class LogsProcessor extends WorkerHost {
  constructor(
    private readonly store: InvocationStore,
    private readonly pubSub: PubSub,
  ) {
    super();
  }

  async process({ data: { job, rows } }: Job<KeepInvocationsJob>): Promise<void> {
    await this.store.keep(rows, job);
    const serverIds = [...new Set(rows.map(({ serverId }) => serverId))];
    for (let first = 0; first < serverIds.length; first += SERVERS_MAX) {
      this.pubSub.publish('logs.ingested', { serverIds: serverIds.slice(first, first + SERVERS_MAX) });
    }
  }
}
