import type { ServerResponse } from 'node:http';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { NotFoundError, TooManyError } from '../../../platform/errors/domain-error.js';
import { EventStream, EventStreams } from '../../../platform/http/event-stream.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import type { Caller } from '../../auth/access.types.js';
import type { ServerRef } from '../../servers/server.types.js';
import { toReleaseLogDto } from '../release.dto.js';
import { isAtRest, type ReleaseStatus } from '../release-state.js';
import { ReleasesService } from '../releases.service.js';
import { toLogPosition } from '../releases.types.js';

/** Interval of polls, since messages can be lost while the queue's store is unavailable. */
const POLL_MS = 5_000;

/** Maximum number of streams, each of which takes a small query every 5 s. */
export const STREAMS_EACH_MAX = 50;
export const STREAMS_MAX = 1_000;

/**
 * Streams of releases, which any process can run. The id of an event is the `seq` of its last line, so a client that reconnects with
 * `Last-Event-ID` receives each line once.
 */
@Injectable()
export class ReleaseStreams extends EventStreams<ReleaseStream> implements OnModuleInit {
  constructor(
    private readonly releasesService: ReleasesService,
    private readonly pubSub: PubSub,
    revocationRegistry: RevocationRegistry,
    metrics: Metrics,
  ) {
    super(STREAMS_EACH_MAX, STREAMS_MAX, revocationRegistry);
    metrics.gauge('slipway_release_streams', 'Listeners that follow releases.', () => this.size);
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.changed', ({ id }) => {
      for (const stream of this) if (stream.followed.id === id) stream.wake();
    });
    await this.pubSub.subscribe('servers.deleted', ({ id }) => {
      for (const stream of this) if (stream.followed.server.id === id) stream.wake();
    });
  }

  /**
   * Follows a release until it finishes or the client disconnects.
   *
   * @param caller owner of the stream
   * @param after the last line that the client has, from `Last-Event-ID`
   * @throws NotFoundError, TooManyError
   */
  async follow(
    server: ServerRef,
    id: string,
    { caller, after }: { caller: Caller; after: string | undefined },
    response: ServerResponse,
  ): Promise<void> {
    const { accountId, keyId } = caller;
    const release = await this.releasesService.find(server, id);
    const last = toLogPosition(after);
    const stream = new ReleaseStream(this.releasesService, { server, id: release.id, caller, last }, response);
    if (this.start(stream, { accountId, keyId }, response)) return;
    throw new TooManyError(
      this.isFull
        ? 'As many releases are followed as may be: try again in a few seconds'
        : 'This account follows as many releases as one may: close one of the streams first',
      5,
    );
  }
}

interface FollowedRelease {
  server: ServerRef;
  id: string;
  caller: Caller;
  /** `seq` of the last line that the client has. */
  last: string;
}

class ReleaseStream extends EventStream {
  private status: ReleaseStatus | null = null;

  constructor(
    private readonly releases: ReleasesService,
    readonly followed: FollowedRelease,
    response: ServerResponse,
  ) {
    super(response);
  }

  protected async follow(): Promise<void> {
    while (!this.isClosed && !(await this.sendChanges())) await this.nextChange(POLL_MS);
  }

  /** @returns true if the release has finished */
  private async sendChanges(): Promise<boolean> {
    const { server, id, caller } = this.followed;
    const release = await this.releases.find(server, id).catch((error: unknown) => {
      if (error instanceof NotFoundError) return null;
      throw error;
    });
    if (!release) {
      // The release was deleted with its server, which cancelled it.
      await this.send('complete', { status: 'CANCELLED' }, this.followed.last);
      return true;
    }
    // Read after the status: a final status is written with the last line, so no line is missing.
    const lines = await this.releases.logsOf(id, server, caller, this.followed.last);
    const isFirst = this.status === null;
    this.followed.last = lines.at(-1)?.seq ?? this.followed.last;
    if (isFirst)
      await this.send('init', { status: release.status, logs: lines.map(toReleaseLogDto) }, this.followed.last);
    else for (const line of lines) await this.send('log', toReleaseLogDto(line), line.seq);
    if (!isFirst && release.status !== this.status)
      await this.send('status', { status: release.status }, this.followed.last);
    this.status = release.status;
    if (!isAtRest(release.status)) return false;
    const address = this.releases.mcpUrlOf(server, release);
    await this.send('complete', { status: release.status, ...address }, this.followed.last);
    return true;
  }
}
