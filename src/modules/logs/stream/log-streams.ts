import type { ServerResponse } from 'node:http';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { TooManyError } from '../../../platform/errors/domain-error.js';
import { EventStreams, type StreamOwner } from '../../../platform/http/event-stream.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationSearchRepository } from '../search/invocation-search.repository.js';
import { LogStream, type Followed } from './log-stream.js';

/** Maximum number of streams; each takes up to one small query per second. */
const STREAMS_EACH_MAX = 10;
const STREAMS_MAX = 200;

export interface Following extends Followed, StreamOwner {}

@Injectable()
export class LogStreams extends EventStreams<LogStream> implements OnModuleInit {
  constructor(
    private readonly invocationSearchRepository: InvocationSearchRepository,
    private readonly pubSub: PubSub,
    revocationRegistry: RevocationRegistry,
    metrics: Metrics,
  ) {
    super(STREAMS_EACH_MAX, STREAMS_MAX, revocationRegistry);
    metrics.gauge('slipway_log_streams', 'Listeners that follow runtime logs.', () => this.size);
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('logs.ingested', ({ serverIds }) => {
      const written = new Set(serverIds);
      for (const stream of this) if (written.has(stream.followed.serverId)) stream.wake();
    });
    await this.pubSub.subscribe('servers.deleted', ({ id }) => {
      for (const stream of this) if (stream.followed.serverId === id) stream.close();
    });
  }

  /** @throws TooManyError */
  follow(following: Following, response: ServerResponse): void {
    const stream = new LogStream(this.invocationSearchRepository, following, response);
    if (this.start(stream, following, response)) return;
    throw new TooManyError('Too many logs are followed already: close one of the streams first', 5);
  }
}
