import type { ServerResponse } from 'node:http';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { EVENT_STREAM_HEADERS } from '../../../platform/http/event-stream.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { repeat } from '../../../platform/schedule/repeat.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import type { ServerRef } from '../../servers/server.types.js';
import { toReleaseLogDto } from '../release.dto.js';
import { isAtRest, type ReleaseStatus } from '../release-state.js';
import { ReleaseNotFoundError, TooManyFollowersError } from '../releases.errors.js';
import { ReleasesService } from '../releases.service.js';

/** Messages may be lost while the queue's store is away, so the rows are also polled. */
const POLL_MS = 5_000;

/** Below the 30 to 60 s after which proxies close a silent connection. */
const HEARTBEAT_MS = 15_000;

/** Streams of one account and of all accounts in this process: each costs a small query every 5 s. */
export const STREAMS_EACH_MAX = 50;
export const STREAMS_MAX = 1_000;

/**
 * Streams the progress of releases that any process runs: `init` with the log so far, `log` and `status` for changes,
 * `complete` at the end. Each event's id is the `seq` of its last line, so a client that reconnects with `Last-Event-ID`
 * gets each line once.
 */
@Injectable()
export class ReleaseStreams implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('releases');
  private readonly open = new Map<string, Set<ReleaseStream>>();
  private readonly limiter = new KeyedLimiter(STREAMS_EACH_MAX, STREAMS_MAX);

  constructor(
    private readonly releases: ReleasesService,
    private readonly pubSub: PubSub,
    metrics: Metrics,
  ) {
    metrics.gauge('slipway_release_streams', 'Listeners that follow releases.', () => this.size);
  }

  /** Open streams in this process. */
  get size(): number {
    return this.limiter.size;
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.changed', ({ id }) => {
      for (const stream of this.open.get(id) ?? []) stream.wake();
    });
    await this.pubSub.subscribe('servers.deleted', ({ id }) => {
      for (const streams of this.open.values()) for (const stream of streams) stream.wakeFor(id);
    });
  }

  /** Ends all streams, so that the shutdown does not wait for their clients. */
  beforeApplicationShutdown(): void {
    for (const streams of this.open.values()) for (const stream of streams) stream.close();
  }

  /**
   * Streams a release until it ends or the client disconnects.
   *
   * @param accountId whose stream it is
   * @param after the last line the client has, from `Last-Event-ID`
   * @throws ReleaseNotFoundError, TooManyFollowersError
   */
  async follow(
    server: ServerRef,
    id: string,
    { accountId, after }: { accountId: string; after: string | undefined },
    response: ServerResponse,
  ): Promise<void> {
    const release = await this.releases.find(server, id);
    const last = after !== undefined && /^\d{1,18}$/.test(after) ? after : '0';
    const leave = this.limiter.enter(accountId);
    if (!leave) throw new TooManyFollowersError(this.limiter.size >= STREAMS_MAX ? 'all' : 'account');
    const stream = new ReleaseStream(this.releases, server, release.id, last, response);
    try {
      // The client may have left during the query for the release, and HEAD has no events.
      if (response.closed || response.req.method === 'HEAD') stream.close();
      else response.on('close', () => stream.close());
      response.writeHead(200, EVENT_STREAM_HEADERS);
    } catch (error) {
      leave();
      throw error;
    }
    this.run(release.id, stream)
      .finally(() => {
        leave();
        response.end();
      })
      .catch((error: unknown) => this.logger.warn({ msg: 'a stream of a release broke off', err: error }));
  }

  private async run(releaseId: string, stream: ReleaseStream): Promise<void> {
    // Registered before it reads, so that no change in between is missed.
    const streams = this.open.get(releaseId) ?? new Set();
    this.open.set(releaseId, streams.add(stream));
    try {
      await stream.run();
    } finally {
      streams.delete(stream);
      if (streams.size === 0) this.open.delete(releaseId);
    }
  }
}

/** One listener of one release. */
class ReleaseStream {
  private isClosed = false;
  private isDue = false;
  private wakeUp: () => void = () => undefined;
  private status: ReleaseStatus | null = null;

  constructor(
    private readonly releases: ReleasesService,
    private readonly server: ServerRef,
    private readonly id: string,
    private last: string,
    private readonly response: ServerResponse,
  ) {}

  wake(): void {
    this.isDue = true;
    this.wakeUp();
  }

  /** Wakes the stream if this server, which was deleted, is its own. */
  wakeFor(serverId: string): void {
    if (this.server.id === serverId) this.wake();
  }

  close(): void {
    this.isClosed = true;
    this.wakeUp();
  }

  async run(): Promise<void> {
    const heartbeat = repeat(HEARTBEAT_MS, () => this.response.write(': still here\n\n'));
    try {
      while (!this.isClosed && !(await this.sendChanges())) await this.nextChange();
    } finally {
      heartbeat.stop();
    }
  }

  /** Sends events for all changes since the last call. @returns true when the release has ended */
  private async sendChanges(): Promise<boolean> {
    this.isDue = false;
    const release = await this.releases.find(this.server, this.id).catch((error: unknown) => {
      if (error instanceof ReleaseNotFoundError) return null;
      throw error;
    });
    if (!release) {
      // Deleted with its server, which cancelled it.
      this.send('complete', { status: 'CANCELLED' }, this.last);
      return true;
    }
    // Read after the status: a final status is written with the last line, so no line is missing.
    const lines = await this.releases.logsOf(this.id, this.last);
    const isFirst = this.status === null;
    this.last = lines.at(-1)?.seq ?? this.last;
    if (isFirst) this.send('init', { status: release.status, logs: lines.map(toReleaseLogDto) }, this.last);
    else for (const line of lines) this.send('log', toReleaseLogDto(line), line.seq);
    if (!isFirst && release.status !== this.status) this.send('status', { status: release.status }, this.last);
    this.status = release.status;
    if (!isAtRest(release.status)) return false;
    this.send('complete', { status: release.status, ...this.releases.mcpUrlOf(this.server, release) }, this.last);
    return true;
  }

  private send(event: string, data: object, id: string): void {
    if (this.isClosed) return;
    this.response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private async nextChange(): Promise<void> {
    if (this.isDue || this.isClosed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS).unref();
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
