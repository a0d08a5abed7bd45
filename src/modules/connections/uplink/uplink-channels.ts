import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { UplinkDisconnectedError, UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ProcessRegistry } from '../../../platform/processes/process-registry.js';
import { RemoteUplinkChannel } from './remote-uplink-channel.js';
import { UplinkTunnelsRepository, type TunnelOwner } from './uplink-tunnels.repository.js';
import type { ConnectionTransport } from '../core/connection-transports.js';
import { UplinkTunnels } from './uplink-tunnels.js';
import { TunnelMovedError } from './uplink.errors.js';

/** Time in which local servers of a stopping process pair with another one: its calls finish first, within 5 s. */
const MOVING_MS = 10_000;
const MOVING_POLL_MS = 100;

@Injectable()
export class UplinkChannels implements ConnectionTransport<'uplink'>, OnModuleInit {
  /** Cached owners of tunnels. A new pairing is also published, and a process without the tunnel throws TunnelMovedError. */
  private readonly owners = new RowCache<TunnelOwner>((id) => this.uplinkTunnelsRepository.owner(id));
  /** Time (`performance.now()`) until which calls without a tunnel wait for one. */
  private movingUntil = 0;

  constructor(
    private readonly uplinkTunnels: UplinkTunnels,
    private readonly uplinkTunnelsRepository: UplinkTunnelsRepository,
    private readonly processRegistry: ProcessRegistry,
    private readonly internalClient: InternalClient,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('uplinks.paired', ({ id }) => this.owners.drop(id));
    await this.pubSub.subscribe('uplinks.moving', ({ from }) => {
      this.movingUntil = performance.now() + MOVING_MS;
      this.owners.dropWhere(({ processId }) => processId === from);
    });
  }

  channelTo({ id }: { id: string }): Channel {
    return {
      open: (timeoutMs) => this.runOnTunnel(id, (channel) => channel.open(timeoutMs)),
      request: (call) => this.runOnTunnel(id, (channel) => channel.request(call)),
      listen: (...args) => this.runOnTunnel(id, (channel) => channel.listen(...args)),
      // All callers share the session of the local server, which opened the tunnel.
      release: async () => undefined,
      close: async () => undefined,
    };
  }

  /** @throws UplinkDisconnectedError without a tunnel, and the errors of `work` */
  private async runOnTunnel<T>(id: string, work: (channel: Channel) => Promise<T>): Promise<T> {
    for (let isRetry = false; ; isRetry = true) {
      try {
        return await work(await this.current(id));
      } catch (error) {
        if (!(error instanceof TunnelMovedError)) throw error;
      }
      if (isRetry) await this.whileMoving();
      this.owners.drop(id);
    }
  }

  /** @throws UplinkDisconnectedError, UpstreamError */
  private async current(id: string): Promise<Channel> {
    const local = this.uplinkTunnels.channelOf(id);
    if (local) return local;
    const owner = await this.owners.get(id);
    if (!owner || owner.processId === this.processRegistry.id) {
      await this.whileMoving();
      return this.current(id);
    }
    if (owner.url === null) {
      throw new UpstreamError(
        'Another process of this service holds the tunnel and has no internal address: set ADVERTISE_URL for it.',
      );
    }
    return new RemoteUplinkChannel(this.internalClient, owner.url, { connectionId: id, tunnel: owner.tunnel });
  }

  /** Waits briefly for a tunnel. @throws UplinkDisconnectedError if no process has stopped recently */
  private async whileMoving(): Promise<void> {
    if (performance.now() >= this.movingUntil) throw new UplinkDisconnectedError();
    await wait(MOVING_POLL_MS);
  }
}
