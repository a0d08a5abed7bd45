import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Env } from '../../../config/env.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { HttpChannels } from '../../../mcp/client/http/http-channel.js';
import { RefusingChannel } from '../../../mcp/client/refusing-channel.js';
import { partsOf } from '../../../platform/parts.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { ServerGoneError } from '../../run/run.errors.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import type { ConnectionTarget, TargetOf } from './connection.entity.js';

export interface ConnectionTransport<Kind extends ConnectionTarget['kind']> {
  /** Opens nothing: the channel connects with its first call. */
  channelTo(target: TargetOf<Kind>): Channel;
}

/** @param rejected the token that the upstream just rejected with 401 */
type Bearer = (upstreamUrl: string, rejected?: string) => string | null | Promise<string | null>;

export const transports = {
  mock: Symbol('ConnectionTransport of mocks'),
  source: Symbol('ConnectionTransport of sources'),
  uplink: Symbol('ConnectionTransport of uplinks'),
};

type Transports<Kinds extends ConnectionTarget['kind']> = { [Kind in Kinds]: ConnectionTransport<Kind> };

/** Transports of connections, of which URLs and registry servers are built in. */
@Injectable()
export class ConnectionTransports implements OnModuleInit {
  private transports!: Transports<ConnectionTarget['kind']>;

  constructor(
    private readonly serverChannelsService: ServerChannelsService,
    private readonly credentialsService: CredentialsService,
    private readonly httpChannels: HttpChannels,
    private readonly env: Env,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    this.transports = {
      url: { channelTo: (target) => this.channelToUrl(target) },
      server: { channelTo: (target) => this.channelToServer(target) },
      ...(partsOf(this.moduleRef, transports) as Transports<keyof typeof transports>),
    };
  }

  channelTo(target: ConnectionTarget): Channel {
    const transport = this.transports[target.kind] as ConnectionTransport<ConnectionTarget['kind']>;
    return transport.channelTo(target);
  }

  /** Returns a channel that sends no headers and no token. */
  anonymousChannelTo(url: string): Channel {
    return this.httpChannels.channelTo({
      url: new URL(url),
      headers: {},
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }

  private channelToUrl({ id, accountId, url, headers }: TargetOf<'url'>): Channel {
    const bearer = this.bearerOf(id, headers);
    return this.httpChannels.channelTo({
      url: new URL(url),
      account: accountId,
      headers,
      bearer: bearer && ((rejected) => bearer(url, rejected)),
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }

  private channelToServer(target: TargetOf<'server'>): Channel {
    const { id, accountId, serverId, serverName, headers, query } = target;
    if (serverId === null) return new RefusingChannel(() => new ServerGoneError(serverName));
    const bearer = this.bearerOf(id, headers);
    return this.serverChannelsService.channelFor(serverId, { id, accountId, serverName, headers, query, bearer });
  }

  /** @returns undefined if the connection's own headers authorize its requests */
  private bearerOf(id: string, headers: Record<string, string>): Bearer | undefined {
    if (headers.authorization !== undefined) return undefined;
    const owner = { kind: 'connection', id } as const;
    return (upstreamUrl, rejected) => {
      const cached = rejected === undefined ? this.credentialsService.cachedToken(owner, upstreamUrl) : undefined;
      return cached === undefined ? this.credentialsService.accessToken(owner, upstreamUrl, rejected) : cached;
    };
  }
}
