import type { PubSub } from '../../../platform/queue/pub-sub.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published after invocations of servers were stored, at most 100 servers per message. */
    'logs.ingested': { serverIds: string[] };
  }
}

/** Maximum number of servers per message: a NOTIFY of Postgres has at most 8,000 bytes. */
const SERVERS_MAX = 100;

/** Announces new invocations of servers to the live streams of their logs in all processes. */
export function publishIngested(pubSub: PubSub, servers: Iterable<string>): void {
  const serverIds = [...servers];
  for (let first = 0; first < serverIds.length; first += SERVERS_MAX) {
    pubSub.publish('logs.ingested', { serverIds: serverIds.slice(first, first + SERVERS_MAX) });
  }
}
