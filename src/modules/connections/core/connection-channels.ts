import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { HttpChannels } from '../../../mcp/client/http/http-channels.js';
import { RefusingChannel } from '../../../mcp/client/refusing-channel.js';
import { ServerGoneError } from '../../run/run.errors.js';
import { HostedChannelsService } from '../../../hosting/mcp/hosted-channels.service.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ConnectionBearer } from './connection-bearer.js';
import type { ConnectionTarget } from './connection.types.js';

import { MockChannels } from '../mock/mock-channels.js';
import { sourceProgram } from '../source/source-program.js';
import { UplinkChannels } from '../uplink/uplink-channels.js';

/** Makes the channel a connection calls through: one line for each kind of target. */
@Injectable()
export class ConnectionChannels {
  constructor(
    private readonly runs: ServerChannelsService,
    private readonly bearer: ConnectionBearer,
    private readonly https: HttpChannels,
    private readonly hosted: HostedChannelsService,
    private readonly uplinks: UplinkChannels,
    private readonly mocks: MockChannels,
    private readonly env: Env,
  ) {}

  /** To a URL with nobody's headers and tokens. */
  toPublic(url: string): Channel {
    return this.https.channelTo({
      url: new URL(url),
      headers: {},
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }

  to(target: ConnectionTarget): Channel {
    switch (target.kind) {
      case 'url': {
        const { url, headers } = target;
        const bearer = this.bearer.of(target.id, headers);
        return this.https.channelTo({
          url: new URL(url),
          headers,
          bearer: bearer && ((rejected) => bearer(url, rejected)),
          connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
        });
      }
      case 'server': {
        const { id, serverId, serverName, headers, query } = target;
        if (serverId === null) return new RefusingChannel(() => new ServerGoneError(serverName));
        return this.runs.channelFor(serverId, { id, serverName, headers, query, bearer: this.bearer.of(id, headers) });
      }
      case 'mock':
        return this.mocks.channelTo(target);
      case 'source': {
        const { id, isStateful } = target;
        const call = { mcpPath: '/', name: 'The module', sessionsOf: `connection ${id}` };
        return this.hosted.channelTo(sourceProgram(id, isStateful), call);
      }
      case 'uplink':
        return this.uplinks.channelTo(target);
    }
  }
}
