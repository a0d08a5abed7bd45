import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { ServerChange } from '../../servers/server.types.js';
import type { InvocationQuery } from '../search/invocation-query.js';
import { InvocationSearch } from '../search/invocation-search.js';
import { LogStream, type LogStreamSink } from './log-stream.js';
import { TooManyTailsError } from '../logs.errors.js';
import type { LogsIngested } from '../logs.types.js';

/** Streams of one account, and of all together, in this process: each costs up to one small query a second. */
const STREAMS_OF_ONE_MAX = 10;
const STREAMS_MAX = 200;

/** Who follows what. */
export interface Following {
  serverId: string;
  accountId: string;
  query: InvocationQuery;
  /** Invocations shown at first. */
  limit: number;
  /** The id of the last event a listener that comes back has. */
  after?: string;
  /** Rejects once the listener may no longer see this. */
  check: () => Promise<void>;
}

/** Follows the runtime logs of servers while they are written, whichever process writes them. */
@Injectable()
export class LogStreams implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('logs');
  private readonly open = new Map<LogStream, Following>();

  constructor(
    private readonly search: InvocationSearch,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('logs.ingested', ({ serverIds }) => {
      const written = new Set(serverIds);
      for (const [stream, { serverId }] of this.open) if (written.has(serverId)) stream.wake();
    });
    await this.pubSub.subscribe('servers.deleted', ({ id }) => {
      for (const [stream, { serverId }] of this.open) if (serverId === id) stream.close();
    });
  }

  /** Streams end with the process, so that closing it does not wait for their listeners. */
  beforeApplicationShutdown(): void {
    for (const stream of this.open.keys()) stream.close();
  }

  /** Streams that are open in this process. */
  get size(): number {
    return this.open.size;
  }

  /** @throws TooManyTailsError */
  follow(following: Following, sink: LogStreamSink): void {
    const own = [...this.open.values()].filter(({ accountId }) => accountId === following.accountId).length;
    if (own >= STREAMS_OF_ONE_MAX || this.open.size >= STREAMS_MAX) throw new TooManyTailsError();
    const stream = new LogStream(this.search, following, sink);
    sink.onGone(() => stream.close());
    sink.open();
    // Known before it reads, so that nothing written in between is missed.
    this.open.set(stream, following);
    stream
      .run()
      .finally(() => {
        this.open.delete(stream);
        sink.end();
      })
      .catch((error: unknown) => this.logger.warn({ msg: 'a stream of runtime logs broke off', err: error }));
  }
}
