import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { InvocationStore } from '../store/invocation-store.js';
import { LOGS_QUEUE, type KeepInvocationsJob } from './logs.queue.js';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
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
    /** Published after invocations of servers were stored, at most 100 servers per message. */
    'logs.ingested': { serverIds: string[] };
  }
}

/** Interval between messages, and maximum number of servers per message: a NOTIFY of Postgres holds 8,000 bytes. */
const PUBLISH_EVERY_MS = 250;
const SERVERS_MAX = 100;

/** Publishes which servers have new invocations, with a delay of a quarter of a second, for open log streams. */
@Injectable()
export class IngestNotifier implements OnApplicationShutdown {
  private readonly waiting = new Set<string>();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly pubSub: PubSub) {}

  add(serverIds: Iterable<string>): void {
    for (const id of serverIds) this.waiting.add(id);
    this.timer ??= setTimeout(() => this.publish(), PUBLISH_EVERY_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.timer) clearTimeout(this.timer);
  }

  private publish(): void {
    this.timer = null;
    const serverIds = [...this.waiting];
    this.waiting.clear();
    for (let first = 0; first < serverIds.length; first += SERVERS_MAX) {
      this.pubSub.publish('logs.ingested', { serverIds: serverIds.slice(first, first + SERVERS_MAX) });
    }
  }
}

/** Stores the rows of a job. Idempotent: a job may run again after its worker died. */
@Processor(LOGS_QUEUE, options)
export class LogsProcessor extends WorkerHost {
  constructor(
    private readonly store: InvocationStore,
    private readonly notifier: IngestNotifier,
  ) {
    super();
  }

  async process({ data: { job, rows } }: Job<KeepInvocationsJob>): Promise<void> {
    await this.store.keep(rows, job);
    this.notifier.add(rows.map(({ serverId }) => serverId));
  }
}
