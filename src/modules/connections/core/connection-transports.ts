import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { HttpChannels } from '../../../mcp/client/http/http-channel.js';
import { RefusingChannel } from '../../../mcp/client/refusing-channel.js';
import { CredentialsService } from '../../oauth/credentials.service.js';
import { ServerGoneError } from '../../run/run.errors.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import type { ConnectionTarget, TargetOf } from './connection.entity.js';

/** Makes the channels of one kind of target. */
export interface ConnectionTransport<Kind extends ConnectionTarget['kind']> {
  /** Opens nothing: the channel connects with its first call. */
  channelTo(target: TargetOf<Kind>): Channel;
}

/** Returns the bearer token for an upstream; `rejected` is the token that it just answered 401 to. */
type Bearer = (upstreamUrl: string, rejected?: string) => string | null | Promise<string | null>;

/** The transport of each kind of target. URLs and registry servers are built in; the other kinds are registered at start. */
@Injectable()
export class ConnectionTransports {
  private readonly transports: { [Kind in ConnectionTarget['kind']]?: ConnectionTransport<Kind> } = {
    url: { channelTo: (target) => this.channelToUrl(target) },
    server: { channelTo: (target) => this.channelToServer(target) },
  };

  constructor(
    private readonly servers: ServerChannelsService,
    private readonly credentials: CredentialsService,
    private readonly https: HttpChannels,
    private readonly env: Env,
  ) {}

  /** Adds the transport of a kind; called by its module at start. */
  register<Kind extends ConnectionTarget['kind']>(kind: Kind, transport: ConnectionTransport<Kind>): void {
    Object.assign(this.transports, { [kind]: transport });
  }

  /** A new channel for calls of one connection. */
  channelTo(target: ConnectionTarget): Channel {
    const transport = this.transports[target.kind] as ConnectionTransport<ConnectionTarget['kind']> | undefined;
    if (!transport) throw new Error(`No transport is registered for targets of kind ${target.kind}`);
    return transport.channelTo(target);
  }

  /** A channel to a URL that sends no headers and no token. */
  anonymousChannelTo(url: string): Channel {
    return this.https.channelTo({
      url: new URL(url),
      headers: {},
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }

  private channelToUrl({ id, accountId, url, headers }: TargetOf<'url'>): Channel {
    const bearer = this.bearerOf(id, headers);
    return this.https.channelTo({
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
    return this.servers.channelFor(serverId, { id, accountId, serverName, headers, query, bearer });
  }

  /** The tokens of one channel; undefined if the connection's own headers authorize it. */
  private bearerOf(id: string, headers: Record<string, string>): Bearer | undefined {
    if (headers.authorization !== undefined) return undefined;
    const owner = { kind: 'connection', id } as const;
    return (upstreamUrl, rejected) => {
      const cached = rejected === undefined ? this.credentials.cachedToken(owner, upstreamUrl) : undefined;
      return cached === undefined ? this.credentials.accessToken(owner, upstreamUrl, rejected) : cached;
    };
  }
}
