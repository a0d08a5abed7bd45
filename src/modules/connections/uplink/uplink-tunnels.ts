import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import type { WebSocket } from 'ws';
import { Env } from '../../../config/env.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import type { UplinkChannel } from '../../../mcp/client/uplink/uplink-channel.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { AccessService } from '../../auth/access.service.js';
import { uplinkFailed, uplinkWaiting, type ConnectionStatus } from '../core/connection-status.js';
import { ConnectionEvents } from '../core/connection.events.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { toStoredServerInfo } from '../core/server-info.js';
import { TunnelSocket, type CloseCode } from './tunnel-socket.js';
import { UplinkLeases, type ChangedConnection, type TunnelName } from './uplink-leases.js';
import { TunnelLimits } from './tunnel-limits.js';
import { NoTunnelError, UplinkTakenError } from './uplink.errors.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    'uplinks.paired': { id: string; tunnel: string };
  }
}

/** Pings go out in so many portions, so that thousands of tunnels are not all asked at the same instant. */
const PING_PORTIONS = 25;

/** What is paired: a connection, and on whose behalf. */
export interface Pairing {
  /** `connections.id` */
  connectionId: string;
  namespaceId: string;
  /** Whose it is: places are counted for it. */
  accountId: string;
  /** The Authorization header it was paired with: a key that is revoked ends its tunnels. */
  authorization: string | undefined;
  /** Replace a tunnel that is open. */
  force: boolean;
}

interface Placed extends Pairing {
  /** Gives its place back. */
  leave: () => void;
}

interface HeldTunnel extends Placed {
  tunnel: string;
  socket: TunnelSocket;
  /** Which of the {@link PING_PORTIONS} it belongs to. */
  portion: number;
}

/** The tunnels of this process, one for each connection at most. What becomes of them is written to the connection. */
@Injectable()
export class UplinkTunnels implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('uplink');
  private readonly held = new Map<string, HeldTunnel>();
  /** Tunnels that ended while the database was away. */
  private readonly owed = new Map<TunnelName, ConnectionStatus>();
  private readonly timers: NodeJS.Timeout[] = [];
  private portion = 0;
  private lastPortion = 0;
  private isStopping = false;
  private keeping: Promise<void> | null = null;
  private onPaired: (connectionId: string) => void = () => undefined;

  constructor(
    private readonly leases: UplinkLeases,
    private readonly places: TunnelLimits,
    private readonly access: AccessService,
    private readonly connections: ConnectionHandles,
    private readonly events: ConnectionEvents,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {}

  /** Tunnels that are open. */
  get size(): number {
    return this.held.size;
  }

  async onModuleInit(): Promise<void> {
    this.events.on('changed', ({ id, revision }) => {
      const tunnel = revision === null ? this.held.get(id) : undefined;
      if (tunnel) this.drop(tunnel, 1001, 'deleted');
    });
    await this.pubSub.subscribe('uplinks.paired', ({ id, tunnel }) => {
      const old = this.held.get(id);
      if (old && BigInt(old.tunnel) < BigInt(tunnel)) this.drop(old, 1001, 'replaced');
      this.onPaired(id);
    });
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => {
      for (const tunnel of this.held.values()) if (tunnel.namespaceId === id) this.drop(tunnel, 1001, 'deleted');
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.leases.renew();
    this.timers.push(
      setInterval(() => void (this.keeping ??= this.keep()), this.env.uplinkLeaseMs / 3).unref(),
      setInterval(() => this.pingPortion(), this.env.uplinkPingMs / PING_PORTIONS).unref(),
    );
  }

  /** Local servers are told to come back; they find another process, or this one after its restart. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    for (const timer of this.timers) clearInterval(timer);
    // It would bring the lease back.
    await this.keeping;
    const all = [...this.held.values()];
    this.held.clear();
    try {
      await this.announced(this.leases.release(all, uplinkWaiting));
      await this.leases.forgetProcesses(true);
    } catch (error) {
      this.logger.warn({ msg: 'the tunnels were not given back; their lease will end', err: error });
    }
    for (const { socket } of all) socket.shut(1001, 'restarting');
  }

  /** Calls `listener` with the id of every connection that was paired anew, in any process. */
  whenPaired(listener: (connectionId: string) => void): void {
    this.onPaired = listener;
  }

  /** The channel of a connection's tunnel; null when this process holds none. */
  channelOf(connectionId: string): UplinkChannel | null {
    return this.held.get(connectionId)?.socket.channel ?? null;
  }

  /** The channel of this very tunnel; null when this process does not hold it. */
  channelNamed(connectionId: string, tunnel: string): UplinkChannel | null {
    const held = this.held.get(connectionId);
    return held?.tunnel === tunnel ? held.socket.channel : null;
  }

  /**
   * Pairs a local server: takes the connection's tunnel for this process, then opens the socket.
   *
   * @param accept opens the socket; null when its other end is gone
   * @throws UplinkTakenError, TooManyTunnelsError, NoTunnelError, ResourceNotFoundError
   */
  async pair(pairing: Pairing, accept: () => WebSocket | null): Promise<void> {
    if (this.isStopping) throw stopping();
    const leave = this.places.enter(pairing.accountId);
    try {
      await this.take({ ...pairing, leave }, accept);
    } catch (error) {
      leave();
      throw error;
    }
  }

  private async take(pairing: Placed, accept: () => WebSocket | null): Promise<void> {
    const tunnel = await this.leases.claim(pairing.connectionId, pairing.force);
    if (tunnel === null) throw new UplinkTakenError();
    const name = { connectionId: pairing.connectionId, tunnel };
    const old = this.held.get(pairing.connectionId);
    // Of two that replace each other at once the later one stays, whichever of them hears first that it may.
    const isLate = old !== undefined && BigInt(old.tunnel) > BigInt(tunnel);
    if (old && !isLate) this.drop(old, 1001, 'replaced');
    this.pubSub.publish('uplinks.paired', { id: pairing.connectionId, tunnel });
    if (isLate) throw new UplinkTakenError();
    const opened = this.isStopping ? null : accept();
    if (opened) return this.hold({ ...pairing, tunnel }, opened);
    pairing.leave();
    await this.giveBack(name, uplinkWaiting);
    if (this.isStopping) throw stopping();
  }

  private hold(pairing: Placed & { tunnel: string }, socket: WebSocket): void {
    this.lastPortion = (this.lastPortion + 1) % PING_PORTIONS;
    const held: HeldTunnel = {
      ...pairing,
      portion: this.lastPortion,
      socket: new TunnelSocket(socket, this.env.upstreamConnectTimeoutMs, () => this.ended(held)),
    };
    this.held.set(pairing.connectionId, held);
    void this.greet(held);
  }

  /** Asks the local server who it is; with its answer the connection is connected. */
  private async greet(held: HeldTunnel): Promise<void> {
    try {
      const { serverInfo } = await held.socket.channel.open(this.env.upstreamConnectTimeoutMs);
      const changed = await this.leases.opened(held, toStoredServerInfo(serverInfo));
      if (changed) this.connections.announce(changed, changed.revision);
    } catch (error) {
      if (error instanceof UpstreamFailure) held.socket.fault ??= error.message;
      else this.logger.error({ msg: 'a tunnel could not be opened', err: error });
      this.drop(held, 1011, 'the local server did not open a session');
    }
  }

  /** The socket is closed, by whomever. */
  private ended(held: HeldTunnel): void {
    held.leave();
    if (this.held.get(held.connectionId) !== held) return;
    this.held.delete(held.connectionId);
    const { fault } = held.socket;
    const status: ConnectionStatus = fault === null ? uplinkWaiting : uplinkFailed(fault);
    this.giveBack(held, status).catch((error: unknown) => {
      // Its lease is that of this process, which lives: nobody else would ever take it for closed.
      this.owed.set(held, status);
      this.logger.warn({ msg: 'the end of a tunnel was not written; it is tried again', err: error });
    });
  }

  private async giveBack(held: TunnelName, status: ConnectionStatus): Promise<void> {
    await this.announced(this.leases.release([held], status));
  }

  private drop(held: HeldTunnel, code: CloseCode, reason: string): void {
    held.socket.shut(code, reason);
  }

  private async announced(changes: Promise<ChangedConnection[]>): Promise<void> {
    for (const changed of await changes) this.connections.announce(changed, changed.revision);
  }

  /** Renews the lease, drops what is not ours any more, and clears up after processes that died. */
  private async keep(): Promise<void> {
    const before = new Set(this.held.values());
    try {
      const own = await this.leases.renew();
      for (const held of this.held.values()) {
        if (!before.has(held) || own.has(held.tunnel)) continue;
        const owner = await this.leases.owner(held.connectionId);
        // "replaced" ends the published client for good; without a new owner it is to come back.
        this.drop(held, 1001, owner && owner.tunnel !== held.tunnel ? 'replaced' : 'lease lost');
      }
      for (const [gone, status] of this.owed) {
        await this.giveBack(gone, status);
        this.owed.delete(gone);
      }
      await this.announced(this.leases.release(await this.leases.abandoned(), uplinkWaiting));
      await this.leases.forgetProcesses();
    } catch (error) {
      this.logger.warn({ msg: 'the lease of the tunnels was not renewed', err: error });
    }
    this.keeping = null;
  }

  private pingPortion(): void {
    this.portion = (this.portion + 1) % PING_PORTIONS;
    for (const held of this.held.values()) if (held.portion === this.portion) void this.ping(held);
  }

  /** Asks for a sign of life, and whether the key still opens the tunnel. */
  private async ping(held: HeldTunnel): Promise<void> {
    held.socket.ping();
    try {
      await this.access.authenticate(held.authorization);
    } catch (error) {
      const isRefused = error instanceof DomainError && error.kind === 'unauthenticated';
      if (isRefused) this.drop(held, 1008, 'the key was revoked or has expired');
      else this.logger.debug({ msg: 'a key of a tunnel could not be checked', err: error });
    }
  }
}

function stopping(): NoTunnelError {
  return new NoTunnelError('This process is about to stop: try again in a few seconds');
}
