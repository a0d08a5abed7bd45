import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { LogsIngested } from '../logs.types.js';

/** How often servers are named, and how many at a time: a NOTIFY of Postgres holds 8,000 bytes. */
const PUBLISH_EVERY_MS = 250;
const SERVERS_MAX = 100;
const MESSAGES_MAX = 10;

/** Tells who follows logs which servers have new rows, a quarter of a second later at least. */
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
    const serverIds = [...this.waiting].slice(0, SERVERS_MAX * MESSAGES_MAX);
    for (let first = 0; first < serverIds.length; first += SERVERS_MAX) {
      const some = serverIds.slice(first, first + SERVERS_MAX);
      this.pubSub.publish('logs.ingested', { serverIds: some } satisfies LogsIngested);
    }
    for (const id of serverIds) this.waiting.delete(id);
    if (this.waiting.size > 0) this.add([]);
  }
}
