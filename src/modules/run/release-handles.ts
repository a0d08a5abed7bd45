import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Channel } from '../../mcp/protocol/channel.js';
import { HttpChannels } from '../../mcp/client/http/http-channel.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { HostedChannelsService, type HostedCall } from '../../hosting/mcp/hosted-channels.service.js';
import { inputNames, type RunValues } from './run-config-values.js';
import { ReleaseHandle } from './release-handle.js';
import type { ResolvedServer, ResolvedRelease } from './resolved-server.js';

/** Opens handles to releases. */
@Injectable()
export class ReleaseHandles {
  constructor(
    private readonly channels: HttpChannels,
    private readonly hosted: HostedChannelsService,
    private readonly addresses: ServerUrlsService,
    private readonly env: Env,
  ) {}

  /**
   * A handle for callers who send these values and this token. `sessionsOf` names the owner of their sessions with hosted
   * code. Header names are lower-case.
   */
  to(
    { serverId, name, slug }: ResolvedServer,
    release: ResolvedRelease,
    values: RunValues | null,
    caller: Pick<HostedCall, 'sessionsOf' | 'bearer'>,
  ): ReleaseHandle {
    const { id, config, authAddress } = release;
    const isClosed = authAddress !== null && !caller.bearer && values?.headers.authorization === undefined;
    const channel = this.channelTo(name, release, values ?? { headers: {}, query: [] }, caller);
    return new ReleaseHandle(channel, {
      serverId,
      releaseId: id,
      serverName: name,
      inputs: inputNames(config),
      closedAt: isClosed ? this.addresses.run(slug) : null,
    });
  }

  private channelTo(
    name: string,
    { upstream, program }: ResolvedRelease,
    { headers, query }: RunValues,
    { sessionsOf, bearer }: Pick<HostedCall, 'sessionsOf' | 'bearer'>,
  ): Channel {
    if (program) {
      const mcpPath = upstream.pathname;
      return this.hosted.channelTo(program, { mcpPath, name: `"${name}"`, headers, query, bearer, sessionsOf });
    }
    const url = new URL(upstream);
    for (const [key, value] of query) url.searchParams.append(key, value);
    return this.channels.channelTo({
      url,
      name: `"${name}"`,
      headers,
      bearer,
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }
}
