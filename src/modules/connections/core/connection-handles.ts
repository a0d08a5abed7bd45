/**
 * The upstream handles of this process: one per connection, created by its first call and shared by all callers.
 *
 * The row of a connection is read at most every 5 s (`RowCache`), so most calls need neither a query nor a promise. Every change is
 * published as `connections.changed` with the new `revision`, and a handle of another revision closes after its calls; deletion closes it
 * immediately, including the upstream session.
 *
 * The outcome of each call is written to the status, except a timeout of one slow tool. Only callers that can manage the connection get a
 * setup link with errors that a person can resolve.
 */
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HandlePool } from '../../../mcp/client/handle-pool.js';
import { ChosenToolsChannel, isChosen } from '../../../mcp/client/tools/tool-choice.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { SuspendedError } from '../../auth/auth.errors.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { toSuspension } from '../../auth/suspension.types.js';
import { STORABLE } from '../../../platform/http/input-values.js';
import type { ServerHolder, ServerUse } from '../../servers/server.types.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { isConnectionId } from './connection-target.js';
import { ConnectionTargets } from './connection-targets.js';
import { ConnectionTransports } from './connection-transports.js';
import { type ConnectionOwner, ConnectionOwners } from './connection-owner.js';
import type { ConnectionTarget } from './connection.entity.js';
import { ConnectionEvents, type ConnectionChange } from './connection.events.js';
import { ConnectionsRepository, type ChangedConnection } from './connection.repository.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { UpstreamHandle } from '../../../mcp/client/upstream-handle.js';

/** Maximum number of handles, each of which can have several upstream sessions. */
const HANDLES_MAX = 50_000;

export type ConnectionHandle = UpstreamHandle<ConnectionOwner>;

@Injectable()
export class ConnectionHandles implements ServerHolder, OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('connections');
  private readonly handles = new HandlePool<ConnectionHandle>('connections', HANDLES_MAX);
  private readonly targets = new RowCache<ConnectionTarget>((key) => this.load(key));

  constructor(
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly connectionTargets: ConnectionTargets,
    private readonly connectionTransports: ConnectionTransports,
    private readonly connectionEvents: ConnectionEvents,
    private readonly connectionOwners: ConnectionOwners,
    private readonly serverChannelsService: ServerChannelsService,
    private readonly pubSub: PubSub,
  ) {}

  get size(): number {
    return this.handles.size;
  }

  async onModuleInit(): Promise<void> {
    this.serverChannelsService.onOffersChanged((id) =>
      this.handles.forgetListsWhere(({ owner: { target } }) => serverOf(target) === id),
    );
    await this.pubSub.subscribe('connections.changed', (change) => this.applyChange(change));
    await this.pubSub.subscribe('namespaces.suspended', ({ name }) => {
      this.targets.dropWhere(({ namespace }) => namespace === name);
      this.handles.dropWhere(({ owner }) => owner.target.namespace === name);
    });
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => {
      this.targets.dropWhere(({ namespaceId }) => namespaceId === id);
      this.handles.endWhere(({ owner }) => owner.target.namespaceId === id, true);
    });
  }

  /** @returns null, without a promise, unless the row was read in the last 5 s */
  peek({ id: namespaceId }: OwnedNamespace, connectionId: string): ConnectionHandle | null {
    const target = this.targets.peek(keyOf({ namespaceId, connectionId }));
    return target && target.suspended === null ? this.handleTo(target) : null;
  }

  /**
   * Finds a connection, without a query if the row was read in the last 5 s.
   *
   * @throws ResourceNotFoundError, SuspendedError
   */
  async find(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionHandle> {
    return this.handleTo(await this.active(namespace, connectionId));
  }

  /** Returns the {@link target} of a connection that is not suspended. @throws ResourceNotFoundError, SuspendedError */
  async active(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionTarget> {
    const target = await this.target(namespace, connectionId);
    if (target.suspended !== null) throw new SuspendedError('connection', target.suspended);
    return target;
  }

  /** Returns a target that is at most 5 s old. @throws ResourceNotFoundError */
  async target(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionTarget> {
    const key = keyOf({ namespaceId: namespace.id, connectionId });
    const target = isConnectionId(connectionId) ? await this.targets.get(key) : null;
    if (!target) throw await this.connectionsRepository.missing(namespace, connectionId);
    return target;
  }

  /** Announces the row that was just written to every process. @returns null if the row was deleted */
  async adopt(id: string): Promise<ConnectionHandle | null> {
    const target = await this.connectionTargets.read({ id });
    if (!target) return null;
    this.announce(target);
    return this.handleTo(target);
  }

  readTarget(id: string): Promise<ConnectionTarget | null> {
    return this.connectionTargets.read({ id });
  }

  /**
   * Creates the handle of a connection before its deletion, so that {@link deleted} can close its upstream session.
   * Never rejects: a session that is not closed here expires at the upstream.
   */
  async prepareEnd(id: string): Promise<void> {
    try {
      const target = await this.connectionTargets.read({ id });
      if (target?.kind === 'server') this.handleTo(target);
    } catch (error) {
      const names = await this.connectionsRepository.logNames(id);
      this.logger.warn({ msg: 'the upstream session of a deleted connection is not ended', ...names, err: error });
    }
  }

  async deleted(connection: Omit<ChangedConnection, 'revision'>): Promise<void> {
    const ended = this.handles.closeHandle(connection.id, true);
    this.announce({ ...connection, revision: null });
    await ended;
  }

  announce({ id, revision, ...name }: ChangedConnection, isSuspended = false): void {
    const change = { key: keyOf(name), id, revision, isSuspended };
    this.pubSub.announce('connections.changed', change);
  }

  /** Suspends a connection, or reinstates it if the reason is null. The change takes effect within 5 s in every process. @throws ResourceNotFoundError */
  async suspend(namespace: string, connectionId: string, caller: Caller, reason: string | null): Promise<void> {
    const isName = STORABLE.test(namespace) && isConnectionId(connectionId);
    const row = isName
      ? await this.connectionsRepository.suspend(caller, namespace, connectionId, toSuspension(reason, caller))
      : null;
    if (!row) throw new ResourceNotFoundError();
    this.announce(row, reason !== null);
  }

  closeHandle(id: string): Promise<void> {
    return this.handles.closeHandle(id);
  }

  onApplicationShutdown(): Promise<void> {
    return this.handles.close();
  }

  private applyChange(change: ConnectionChange): void {
    const { key, id, revision, isSuspended } = change;
    if (revision === null) this.targets.drop(key);
    else this.targets.expire(key, (target) => target.revision === revision);
    const handle = this.handles.get(id);
    if (revision === null || isSuspended) this.handles.endWhere((other) => other === handle, revision === null);
    else if (handle && handle.owner.target.revision !== revision) this.handles.drop(id);
    this.connectionEvents.emit('changed', change);
  }

  private handleTo(target: ConnectionTarget): ConnectionHandle {
    const open = this.handles.get(target.id);
    if (open && open.owner.target.revision >= target.revision) {
      // Neither a recording nor the deletion of the server creates a new revision.
      if (open.owner.target.revision === target.revision) {
        if (serverOf(open.owner.target) !== serverOf(target)) open.forgetLists();
        open.owner.target = target;
      }
      return open;
    }
    const channel = this.connectionTransports.channelTo(target);
    const { tools } = target;
    const chosen = tools && new ChosenToolsChannel(channel, (name) => isChosen(name, tools));
    const withheld = chosen?.withheld ?? new Set<string>();
    const handle = new UpstreamHandle(chosen ?? channel, this.connectionOwners.ownerOf(target, withheld));
    this.handles.put(target.id, handle, target.accountId);
    return handle;
  }

  endUse({ serverId, accountId }: ServerUse, now: boolean): void {
    // New calls are already rejected; running calls here get some more seconds to finish.
    if (!now) return;
    this.handles.endWhere(
      ({ owner: { target } }) =>
        // eslint-disable-next-line no-restricted-syntax -- Closes the handles of one account.
        target.kind === 'server' && target.serverId === serverId && target.accountId === accountId,
    );
  }

  *uses(): Iterable<ServerUse> {
    for (const { owner } of this.handles.values()) {
      const { target } = owner;
      if (target.kind === 'server' && target.serverId !== null) {
        yield { serverId: target.serverId, accountId: target.accountId };
      }
    }
  }

  private load(key: string): Promise<ConnectionTarget | null> {
    const slash = key.indexOf('/');
    return this.connectionTargets.read({ namespaceId: key.slice(0, slash), connectionId: key.slice(slash + 1) });
  }
}

/** @returns null for other targets, and after the server was deleted */
function serverOf(target: ConnectionTarget): string | null {
  return target.kind === 'server' ? target.serverId : null;
}

function keyOf({ namespaceId, connectionId }: { namespaceId: string; connectionId: string }): string {
  return `${namespaceId}/${connectionId}`;
}
