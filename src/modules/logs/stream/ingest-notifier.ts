import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { PubSub } from '../../../platform/queue/pub-sub.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published after invocations of servers were stored, at most 100 servers per message. */
    'logs.ingested': { serverIds: string[] };
  }
}

/** Interval between messages, and maximum number of servers per message: a NOTIFY of Postgres holds 8,000 bytes. */
const PUBLISH_EVERY_MS = 250;
const SERVERS_MAX = 100;
const MESSAGES_MAX = 10;

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
    const serverIds = [...this.waiting].slice(0, SERVERS_MAX * MESSAGES_MAX);
    for (let first = 0; first < serverIds.length; first += SERVERS_MAX) {
      this.pubSub.publish('logs.ingested', { serverIds: serverIds.slice(first, first + SERVERS_MAX) });
    }
    for (const id of serverIds) this.waiting.delete(id);
    if (this.waiting.size > 0) this.add([]);
  }
}
