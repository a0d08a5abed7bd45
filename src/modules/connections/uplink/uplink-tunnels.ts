/**
 * Tunnels to local servers: WebSockets that the command line tool opens (`uplink.gateway.ts`). A connection has at most one, in one
 * process; other processes forward their calls to it (`uplink-channels.ts`).
 *
 * A pairing claims the row in `uplink_tunnels` for this process and the epoch of its lease, which numbers the tunnel; of two concurrent
 * pairings, the greater number wins. The row of a closed tunnel is deleted shortly afterwards: pairings in this process take it over,
 * others wait for the deletion.
 *
 * The published client stops after the close reasons `replaced` and `deleted`, and reconnects after `lease lost` and `restarting`.
 */
import { setTimeout as wait } from 'node:timers/promises';
import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import type { WebSocket } from 'ws';
import { Tuning } from '../../../config/tuning.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import type { OpenRequest } from '../../../platform/http/open-requests.js';
import { PROGRAM_START_MS, UplinkDisconnectedError, UpstreamFailure } from '../../../mcp/protocol/mcp-errors.js';
import type { UplinkChannel } from '../../../mcp/client/uplink/uplink-channel.js';
import { ProcessRegistry, type LeaseHolder } from '../../../platform/processes/process-registry.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { repeat, type Repeat } from '../../../platform/schedule/repeat.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { uplinkFailed, uplinkWaiting, type ConnectionStatus } from '../core/connection-status.js';
import { ConnectionEvents } from '../core/connection.events.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import type { ChangedConnection } from '../core/connection.repository.js';
import { toStoredServerInfo } from '../core/server-info.js';
import { TunnelSocket } from './tunnel-socket.js';
import { UplinkTunnelsRepository, type TunnelName } from './uplink-tunnels.repository.js';
import { ConflictError, UnavailableError, type DomainError } from '../../../platform/errors/domain-error.js';
import { SuspendedError } from '../../auth/auth.errors.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    'uplinks.paired': { id: string; tunnel: string };
    /** Published when a process stops: its local servers pair with another one. */
    'uplinks.moving': { from: string };
  }
}

/** Time for running calls to finish; other calls wait for the next tunnel. */
const FINISH_MS = 5_000;
const FINISH_POLL_MS = 50;

const RELEASE_MS = 1_000;
const RELEASE_POLL_MS = 50;

export interface Pairing {
  connectionId: string;
  namespaceId: string;
  accountId: string;
  /** Key of the handshake: its tunnels close when it is revoked or expires. */
  keyId: string;
  open?: OpenRequest;
  force: boolean;
  /** Call this when the tunnel has closed or was not paired. */
  leave: () => void;
}

interface HeldTunnel extends Pairing {
  tunnel: string;
  socket: TunnelSocket;
  pings: Repeat;
  release: () => void;
}

/** Close reasons, at most 123 bytes; the response to the next handshake explains more. */
const SUSPENDED = 'suspended by the operator';
const ENDED = 'the key was revoked or has expired, or the grant was revoked';

const TAKEN = 'Another local server is paired with this connection: stop it, or pair with `--force` to replace it.';

@Injectable()
export class UplinkTunnels implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('uplink');
  private readonly tunnels = new Map<string, HeldTunnel>();
  /** Stores the status that the connections of closed tunnels get on release. */
  private readonly unreleased = new Map<TunnelName, ConnectionStatus>();
  private isStopping = false;

  constructor(
    private readonly uplinkTunnelsRepository: UplinkTunnelsRepository,
    private readonly processRegistry: ProcessRegistry,
    private readonly revocationRegistry: RevocationRegistry,
    private readonly connectionHandles: ConnectionHandles,
    private readonly connectionEvents: ConnectionEvents,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    private readonly tuning: Tuning,
  ) {}

  get size(): number {
    return this.tunnels.size;
  }

  async onModuleInit(): Promise<void> {
    this.connectionEvents.on('changed', ({ id, revision, isSuspended }) => {
      if (revision === null) this.tunnels.get(id)?.socket.shut(1001, 'deleted');
      else if (isSuspended) this.tunnels.get(id)?.socket.shut(1008, SUSPENDED);
    });
    await this.pubSub.subscribe('uplinks.paired', ({ id, tunnel }) => {
      const old = this.tunnels.get(id);
      if (old && BigInt(old.tunnel) < BigInt(tunnel)) old.socket.shut(1001, 'replaced');
    });
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => {
      for (const { namespaceId, socket } of this.tunnels.values()) if (namespaceId === id) socket.shut(1001, 'deleted');
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.processRegistry.join(this.holder);
    this.schedule.every('maintenance of tunnels', this.processRegistry.leaseMs / 3, () => this.maintain());
  }

  /** Releases all tunnels before it closes them, with a reason that makes local servers reconnect to any process. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    const all = [...this.tunnels.values()];
    const moving = { from: this.processRegistry.id };
    // Before the release, so that calls wait for the next tunnel; after it, because owners might have been read in
    // between.
    if (all.length > 0) this.pubSub.publish('uplinks.moving', moving);
    try {
      await this.announceAll(this.uplinkTunnelsRepository.release(all, uplinkWaiting));
    } catch (error) {
      this.logger.warn({ msg: 'the tunnels were not released; the lease of this process will end', err: error });
    }
    this.tunnels.clear();
    await this.processRegistry.removeHolder(this.holder);
    if (all.length > 0) this.pubSub.publish('uplinks.moving', moving);
    await Promise.all(all.map(({ socket }) => shutWhenIdle(socket)));
  }

  /** @throws UplinkDisconnectedError if no process holds a tunnel of the connection */
  async requirePaired(connectionId: string): Promise<void> {
    if (!(await this.uplinkTunnelsRepository.owner(connectionId))) throw new UplinkDisconnectedError();
  }

  channelOf(connectionId: string): UplinkChannel | null {
    return this.tunnels.get(connectionId)?.socket.channel ?? null;
  }

  /** @returns null unless this process holds exactly this tunnel */
  channelNamed(connectionId: string, tunnel: string): UplinkChannel | null {
    const heldTunnel = this.tunnels.get(connectionId);
    return heldTunnel?.tunnel === tunnel ? heldTunnel.socket.channel : null;
  }

  /**
   * @param accept opens the socket; null if the peer has closed it
   * @throws ConflictError, UnavailableError, ResourceNotFoundError
   */
  async pair(pairing: Pairing, accept: () => WebSocket | null): Promise<void> {
    const { connectionId, leave } = pairing;
    let isHeld = false;
    try {
      if (this.isStopping) throw stopping();
      const tunnel = await this.claim(pairing);
      const old = this.tunnels.get(connectionId);
      // If two pairings are concurrent, the greater number wins, whichever completes first.
      const isSuperseded = old !== undefined && BigInt(old.tunnel) > BigInt(tunnel);
      if (!isSuperseded) old?.socket.shut(1001, 'replaced');
      this.pubSub.publish('uplinks.paired', { id: connectionId, tunnel });
      if (isSuperseded) throw new ConflictError(TAKEN);
      const socket = this.isStopping ? null : accept();
      if (socket) {
        isHeld = true;
        return this.holdTunnel({ ...pairing, tunnel }, socket);
      }
      await this.release({ connectionId, tunnel }, uplinkWaiting);
      if (this.isStopping) throw stopping();
    } finally {
      if (!isHeld) leave();
    }
  }

  /** @throws ConflictError, UnavailableError, ResourceNotFoundError */
  private async claim({ connectionId, force }: Pairing): Promise<string> {
    const { id } = this.processRegistry;
    const deadline = performance.now() + RELEASE_MS;
    let isRenewed = false;
    for (;;) {
      this.tunnels.get(connectionId)?.socket.endIfClosing();
      const ended = [...this.unreleased.keys()].filter((name) => name.connectionId === connectionId);
      const { epoch } = this.processRegistry;
      const claim =
        epoch === null ? null : await this.uplinkTunnelsRepository.claim(connectionId, { id, epoch }, force, ended);
      if (claim?.isCurrent) {
        if (claim.tunnel !== null) return claim.tunnel;
        if (this.tunnels.has(connectionId) || performance.now() > deadline) throw new ConflictError(TAKEN);
        await wait(RELEASE_POLL_MS);
      } else {
        if (isRenewed) break;
        isRenewed = true;
        await this.processRegistry.beatNow();
      }
    }
    throw new UnavailableError('The database did not answer this process in time: try again in a few seconds', 5);
  }

  private holdTunnel(pairing: Omit<HeldTunnel, 'socket' | 'pings' | 'release'>, socket: WebSocket): void {
    const tunnel: HeldTunnel = {
      ...pairing,
      socket: new TunnelSocket(socket, () => this.onClosed(tunnel)),
      pings: repeat(this.tuning.uplinkPingMs, () => tunnel.socket.ping()),
      release: this.revocationRegistry.add(pairing.keyId, () => endTunnel()),
    };
    const endTunnel = (error?: DomainError) =>
      tunnel.socket.shut(1008, error instanceof SuspendedError ? SUSPENDED : ENDED);
    if (pairing.open) pairing.open.end = endTunnel;
    this.tunnels.set(pairing.connectionId, tunnel);
    void this.openSession(tunnel);
  }

  /** Opens the session. The identity of the local server sets the connection to `connected`. */
  private async openSession(heldTunnel: HeldTunnel): Promise<void> {
    try {
      const { serverInfo } = await heldTunnel.socket.channel.open(PROGRAM_START_MS);
      const changed = await this.uplinkTunnelsRepository.opened(heldTunnel, toStoredServerInfo(serverInfo));
      if (changed) this.connectionHandles.announce(changed);
    } catch (error) {
      if (error instanceof UpstreamFailure) heldTunnel.socket.fault ??= error.message;
      else
        this.logger.error({
          msg: 'a tunnel could not be opened',
          ...(await this.uplinkTunnelsRepository.namesOf(heldTunnel)),
          err: error,
        });
      heldTunnel.socket.shut(1011, 'the local server did not open a session');
    }
  }

  private onClosed(heldTunnel: HeldTunnel): void {
    heldTunnel.leave();
    heldTunnel.pings.stop();
    heldTunnel.release();
    if (this.tunnels.get(heldTunnel.connectionId) !== heldTunnel) return;
    this.tunnels.delete(heldTunnel.connectionId);
    const { fault } = heldTunnel.socket;
    const status: ConnectionStatus = fault === null ? uplinkWaiting : uplinkFailed(fault);
    // This process still holds its lease, so no other process would release the tunnel.
    this.unreleased.set(heldTunnel, status);
    this.release(heldTunnel, status).then(
      () => this.unreleased.delete(heldTunnel),
      async (error: unknown) => {
        const msg = 'a closed tunnel was not released; the next maintenance tries again';
        this.logger.warn({ msg, ...(await this.uplinkTunnelsRepository.namesOf(heldTunnel)), err: error });
      },
    );
  }

  private async release(name: TunnelName, status: ConnectionStatus): Promise<void> {
    await this.announceAll(this.uplinkTunnelsRepository.release([name], status));
  }

  private async announceAll(changes: Promise<ChangedConnection[]>): Promise<void> {
    for (const changed of await changes) this.connectionHandles.announce(changed);
  }

  /** Moves the tunnels to a new epoch of this process, unless another process replaced them or found it dead. */
  private readonly holder: LeaseHolder = {
    role: 'api',
    adopt: (epoch, tx) => this.uplinkTunnelsRepository.adopt(this.processRegistry.id, epoch, tx),
  };

  private async maintain(): Promise<void> {
    for (const [ended, status] of this.unreleased) {
      await this.release(ended, status);
      this.unreleased.delete(ended);
    }
    if (this.processRegistry.epoch === null) return;
    const before = [...this.tunnels.values()];
    const ownTunnels = await this.uplinkTunnelsRepository.heldBy(this.processRegistry.id);
    for (const heldTunnel of before) {
      if (ownTunnels.has(heldTunnel.tunnel)) continue;
      heldTunnel.socket.shut(1001, await this.lossOf(heldTunnel));
    }
    await this.announceAll(
      this.uplinkTunnelsRepository.release(await this.uplinkTunnelsRepository.listAbandoned(), uplinkWaiting),
    );
  }

  private async lossOf({ connectionId, tunnel }: TunnelName): Promise<'replaced' | 'deleted' | 'lease lost'> {
    const owner = await this.uplinkTunnelsRepository.owner(connectionId);
    if (owner && owner.tunnel !== tunnel) return 'replaced';
    // The row of the tunnel is deleted with the connection, so this can run before the message about the deletion
    // arrives.
    return (await this.uplinkTunnelsRepository.hasConnection(connectionId)) ? 'lease lost' : 'deleted';
  }
}

async function shutWhenIdle(socket: TunnelSocket): Promise<void> {
  for (let leftMs = FINISH_MS; leftMs > 0 && socket.channel.inFlight > 0; leftMs -= FINISH_POLL_MS) {
    await wait(FINISH_POLL_MS);
  }
  socket.shut(1001, 'restarting');
}

function stopping(): UnavailableError {
  return new UnavailableError('This process is about to stop: try again in a few seconds', 5);
}
