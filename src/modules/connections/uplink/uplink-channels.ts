import { Injectable, type OnModuleInit } from '@nestjs/common';
import type {
  Channel,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../../mcp/protocol/channel.js';
import { UplinkDisconnectedError, UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../../../mcp/protocol/protocol.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { InternalSignatures } from '../../../platform/internal-http/internal-signatures.js';
import { InternalCalls } from '../../../platform/internal-http/internal-calls.js';
import { ConnectionTransports, type ConnectionTransport } from '../core/connection-transports.js';
import { RemoteUplinkChannel, TunnelMovedError } from './remote-uplink-channel.js';
import { UplinkLeases, type TunnelOwner } from './uplink-leases.js';
import { UplinkTunnels } from './uplink-tunnels.js';

/** Where a tunnel is, is believed this long; a new pairing also arrives over the relay, and a wrong guess corrects itself. */
const OWNER_CACHED_MS = 5_000;
const OWNERS_CACHED_MAX = 50_000;

/** Leads calls of uplink connections to their tunnels: in this process, or by internal HTTP in the one that holds it. */
@Injectable()
export class UplinkChannels implements ConnectionTransport<'uplink'>, OnModuleInit {
  private readonly owners = new RowCache<TunnelOwner>((id) => this.leases.owner(id), {
    max: OWNERS_CACHED_MAX,
    ttlMs: OWNER_CACHED_MS,
  });
  private readonly calls: InternalCalls;

  constructor(
    private readonly tunnels: UplinkTunnels,
    private readonly leases: UplinkLeases,
    private readonly transports: ConnectionTransports,
    signatures: InternalSignatures,
  ) {
    this.calls = new InternalCalls(signatures);
    tunnels.whenPaired((id) => this.owners.drop(id));
  }

  onModuleInit(): void {
    this.transports.register('uplink', this);
  }

  /** A channel that lasts as long as the connection, through however many tunnels. */
  channelTo({ id }: { id: string }): Channel {
    return new RoutedUplinkChannel((work) => this.through(id, work));
  }

  /**
   * Does `work` with the channel of the tunnel there is now.
   *
   * @throws UplinkDisconnectedError when there is none, and what the work throws
   */
  private async through<T>(id: string, work: (channel: Channel) => Promise<T>): Promise<T> {
    const local = this.tunnels.channelOf(id);
    if (local) return work(local);
    try {
      return await work(this.remote(id, await this.owners.get(id)));
    } catch (error) {
      if (!(error instanceof TunnelMovedError)) throw error;
    }
    // Nothing was sent to a local server: the process we asked does not hold its tunnel any more.
    this.owners.drop(id);
    const channel = this.tunnels.channelOf(id) ?? this.remote(id, await this.owners.get(id));
    try {
      return await work(channel);
    } catch (error) {
      throw error instanceof TunnelMovedError ? new UplinkDisconnectedError() : error;
    }
  }

  private remote(id: string, owner: TunnelOwner | null): Channel {
    if (!owner || owner.processId === this.leases.processId) throw new UplinkDisconnectedError();
    if (owner.url === null) {
      throw new UpstreamError(
        'Another process of this service holds the tunnel and does not say where it is reached: set ADVERTISE_URL for it.',
      );
    }
    return new RemoteUplinkChannel(this.calls, owner.url, { connectionId: id, tunnel: owner.tunnel });
  }
}

/** See {@link UplinkChannels.channelTo}. */
class RoutedUplinkChannel implements Channel {
  constructor(private readonly through: <T>(work: (channel: Channel) => Promise<T>) => Promise<T>) {}

  open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.through((channel) => channel.open(timeoutMs));
  }

  request(call: McpCall): Promise<McpReply> {
    return this.through((channel) => channel.request(call));
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.through((channel) => channel.listen(filter, listener, timeoutMs));
  }

  /** All callers share the one session of the local server. */
  async release(): Promise<void> {}

  /** The tunnel belongs to whoever opened it, not to those who call through it. */
  async close(): Promise<void> {}
}
