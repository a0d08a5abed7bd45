import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { HttpChannels } from '../../mcp/channels/http-channels.js';
import type { HttpTarget } from '../../mcp/channels/http-wire.js';
import { inputNames, type RunValues } from './run-input.js';
import { RunLink } from './run-link.js';
import type { Runnable, RunnableRelease } from './runnable.js';

/** Makes the live ends of releases. */
@Injectable()
export class RunLinks {
  constructor(
    private readonly channels: HttpChannels,
    private readonly env: Env,
  ) {}

  /** A link for callers who send these values. */
  to(
    { serverId, name }: Runnable,
    { id, upstream, config }: RunnableRelease,
    values: RunValues | null,
    bearer?: HttpTarget['bearer'],
  ): RunLink {
    const url = new URL(upstream);
    for (const [key, value] of values?.query ?? []) url.searchParams.append(key, value);
    const channel = this.channels.channelTo({
      url,
      headers: values?.headers ?? {},
      bearer,
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
    return new RunLink(channel, { serverId, releaseId: id, serverName: name, upstream, inputs: inputNames(config) });
  }
}
