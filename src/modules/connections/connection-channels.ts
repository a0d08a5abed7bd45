import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Channel } from '../../mcp/channel.js';
import { HttpChannels } from '../../mcp/channels/http-channels.js';
import { RefusingChannel } from '../../mcp/channels/refusing-channel.js';
import { ServerGoneError } from '../releases/run.errors.js';
import { RunService } from '../releases/run.service.js';
import type { ConnectionTarget } from './connection.types.js';
import { SourceNotRunnableError } from './connections.errors.js';
import { MockChannels } from './mock/mock-channels.js';
import { UplinkChannels } from './uplink/uplink-channels.js';

/** Makes the channel a connection calls through: one line for each kind of target. */
@Injectable()
export class ConnectionChannels {
  constructor(
    private readonly runs: RunService,
    private readonly https: HttpChannels,
    private readonly uplinks: UplinkChannels,
    private readonly mocks: MockChannels,
    private readonly env: Env,
  ) {}

  to(target: ConnectionTarget): Channel {
    switch (target.kind) {
      case 'url':
        return this.https.channelTo({
          url: new URL(target.url),
          headers: target.headers,
          connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
        });
      case 'server':
        if (target.serverId === null) return new RefusingChannel(() => new ServerGoneError(target.serverName));
        return this.runs.channelFor(target.serverId, {
          serverName: target.serverName,
          headers: target.headers,
          query: target.query,
        });
      case 'mock':
        return this.mocks.channelTo(target);
      case 'source':
        return new RefusingChannel(() => new SourceNotRunnableError());
      case 'uplink':
        return this.uplinks.channelTo(target);
    }
  }
}
