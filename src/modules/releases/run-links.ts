import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Channel } from '../../mcp/channel.js';
import { HttpChannels } from '../../mcp/channels/http-channels.js';
import type { HttpTarget } from '../../mcp/channels/http-wire.js';
import { ServerLinksService } from '../servers/server-links.service.js';
import { HostedChannelsService } from './hosted-channels.service.js';
import { inputNames, type RunValues } from './run-input.js';
import { RunLink } from './run-link.js';
import type { Runnable, RunnableRelease } from './runnable.js';

/** Makes the live ends of releases. */
@Injectable()
export class RunLinks {
  constructor(
    private readonly channels: HttpChannels,
    private readonly hosted: HostedChannelsService,
    private readonly addresses: ServerLinksService,
    private readonly env: Env,
  ) {}

  /** A link for callers who send these values, and with them the token if they have one. Header names are lower-case. */
  to(
    { serverId, name, slug }: Runnable,
    release: RunnableRelease,
    values: RunValues | null,
    bearer?: HttpTarget['bearer'],
  ): RunLink {
    const { id, upstream, config, authAddress } = release;
    const isClosed = authAddress !== null && !bearer && values?.headers.authorization === undefined;
    const channel = this.channelTo(name, release, values ?? { headers: {}, query: [] }, bearer);
    return new RunLink(channel, {
      serverId,
      releaseId: id,
      serverName: name,
      upstream,
      inputs: inputNames(config),
      closedAt: isClosed ? this.addresses.run(slug) : null,
    });
  }

  private channelTo(
    name: string,
    { upstream, program }: RunnableRelease,
    { headers, query }: RunValues,
    bearer: HttpTarget['bearer'],
  ): Channel {
    if (program) {
      return this.hosted.channelTo(program, { mcpPath: upstream.pathname, name: `"${name}"`, headers, query, bearer });
    }
    const url = new URL(upstream);
    for (const [key, value] of query) url.searchParams.append(key, value);
    return this.channels.channelTo({ url, headers, bearer, connectTimeoutMs: this.env.upstreamConnectTimeoutMs });
  }
}
