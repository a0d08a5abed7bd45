import type { ServerResponse } from 'node:http';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { EVENT_STREAM_HEADERS } from '../../../platform/http/event-stream.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationSearchRepository } from '../search/invocation-search.repository.js';
import { TooManyTailsError } from '../logs.errors.js';
import { LogStream, type Followed } from './log-stream.js';

/** Maximum number of streams in this process, of one account and in all: each costs up to one small query per second. */
const STREAMS_OF_ONE_MAX = 10;
const STREAMS_MAX = 200;

/** A stream to open. */
export interface Following extends Followed {
  accountId: string;
}

/** The open log streams of this process. */
@Injectable()
export class LogStreams implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('logs');
  private readonly open = new Map<LogStream, Following>();

  constructor(
    private readonly search: InvocationSearchRepository,
    private readonly pubSub: PubSub,
    metrics: Metrics,
  ) {
    metrics.gauge('slipway_log_streams', 'Listeners that follow runtime logs.', () => this.size);
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('logs.ingested', ({ serverIds }) => {
      const written = new Set(serverIds);
      for (const [stream, { serverId }] of this.open) if (written.has(serverId)) stream.wake();
    });
    await this.pubSub.subscribe('servers.deleted', ({ id }) => {
      for (const [stream, { serverId }] of this.open) if (serverId === id) stream.close();
    });
  }

  /** Closes the streams, so that the shutdown does not wait for their clients. */
  beforeApplicationShutdown(): void {
    for (const stream of this.open.keys()) stream.close();
  }

  /** Number of open streams. */
  get size(): number {
    return this.open.size;
  }

  /** @throws TooManyTailsError */
  follow(following: Following, response: ServerResponse): void {
    const own = [...this.open.values()].filter(({ accountId }) => accountId === following.accountId).length;
    if (own >= STREAMS_OF_ONE_MAX || this.open.size >= STREAMS_MAX) throw new TooManyTailsError();
    const stream = new LogStream(this.search, following, response);
    // The client may have left during the query for the server, and HEAD has no events.
    if (response.closed || response.req.method === 'HEAD') stream.close();
    else response.on('close', () => stream.close());
    response.writeHead(200, EVENT_STREAM_HEADERS);
    response.flushHeaders();
    // Added before its first query, so that it misses no message.
    this.open.set(stream, following);
    stream
      .run()
      .finally(() => {
        this.open.delete(stream);
        response.end();
      })
      .catch((error: unknown) => this.logger.warn({ msg: 'a log stream failed', err: error }));
  }
}
