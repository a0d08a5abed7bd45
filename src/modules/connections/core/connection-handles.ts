/**
 * The upstream handles of this process: one per connection, shared by all callers, made by the first call.
 *
 * A row is read at most every 5 s for a connection (`RowCache`); a call that finds it needs no query and no promise.
 * Every change is announced (`connections.changed` with the new `revision`), and a handle of another revision closes
 * after its calls. Deletion ends the handle at once, with the session that its server keeps. `namespaces.deleted` ends
 * all of a namespace.
 *
 * The outcome of each call goes to the status (`status-recorder.ts`), except a timeout of one slow tool; the status of
 * an uplink follows its tunnel. Errors that a person can settle (authorization, missing values) leave with the set-up
 * link, which callers who may not manage the connection do not see. A call whose connection is deleted meanwhile fails with a message that reports it.
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

/** Handles of this process at most. Each may have several upstream sessions. */
const HANDLES_MAX = 50_000;

/** The channel of a connection in this process, shared by all callers. */
export type ConnectionHandle = UpstreamHandle<ConnectionOwner>;

/** The handles of this process, by connection. */
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

  /** Handles that are open. */
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

  /** The handle of a connection, if its row was read in the last 5 s: a call that finds it needs no promise. */
  peek({ id: namespaceId }: OwnedNamespace, connectionId: string): ConnectionHandle | null {
    const target = this.targets.peek(keyOf({ namespaceId, connectionId }));
    return target && target.suspended === null ? this.handleTo(target) : null;
  }

  /**
   * The handle of a connection. No query while the row was read in the last 5 s.
   *
   * @throws ResourceNotFoundError, SuspendedError
   */
  async find(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionHandle> {
    return this.handleTo(await this.active(namespace, connectionId));
  }

  /** {@link target} of a connection that is not suspended. @throws ResourceNotFoundError, SuspendedError */
  async active(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionTarget> {
    const target = await this.target(namespace, connectionId);
    if (target.suspended !== null) throw new SuspendedError('connection', target.suspended);
    return target;
  }

  /** The target of a connection, at most 5 s old. @throws ResourceNotFoundError */
  async target(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionTarget> {
    const key = keyOf({ namespaceId: namespace.id, connectionId });
    const target = isConnectionId(connectionId) ? await this.targets.get(key) : null;
    if (!target) throw await this.connectionsRepository.missing(namespace, connectionId);
    return target;
  }

  /** The handle to a row that was just written, which is announced to every process; null if it was deleted. */
  async adopt(id: string): Promise<ConnectionHandle | null> {
    const target = await this.connectionTargets.read({ id });
    if (!target) return null;
    this.announce(target);
    return this.handleTo(target);
  }

  /** The target of a connection as its row is now; null if it was deleted. */
  readTarget(id: string): Promise<ConnectionTarget | null> {
    return this.connectionTargets.read({ id });
  }

  /**
   * Makes the handle of a connection that is about to be deleted, so that {@link deleted} can close the session that its
   * server keeps. Never rejects: a session that is not ended here ends by its idle timeout.
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

  /** Ends what this process holds of a deleted connection, and announces the deletion to every process. */
  async deleted(connection: Omit<ChangedConnection, 'revision'>): Promise<void> {
    const ended = this.handles.closeHandle(connection.id, true);
    this.announce({ ...connection, revision: null });
    await ended;
  }

  /** Announces a changed connection to every process. */
  announce({ id, revision, ...name }: ChangedConnection, isSuspended = false): void {
    const change = { key: keyOf(name), id, revision, isSuspended };
    this.pubSub.announce('connections.changed', change);
  }

  /** Suspends a connection or, with null, ends that: within 5 s in every process. @throws ResourceNotFoundError */
  async suspend(namespace: string, connectionId: string, caller: Caller, reason: string | null): Promise<void> {
    const isName = STORABLE.test(namespace) && isConnectionId(connectionId);
    const row = isName
      ? await this.connectionsRepository.suspend(caller, namespace, connectionId, toSuspension(reason, caller))
      : null;
    if (!row) throw new ResourceNotFoundError();
    this.announce(row, reason !== null);
  }

  /** Ends the handle of a connection, with its upstream session. */
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
      // The recording starts and stops, and the server is deleted, without a new revision.
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

  /** The registry servers that open handles lead to. */
  endUse({ serverId, accountId }: ServerUse, now: boolean): void {
    // Calls of other servers are refused meanwhile: those that run here get some seconds more to be answered.
    if (!now) return;
    this.handles.endWhere(
      ({ owner: { target } }) =>
        // eslint-disable-next-line no-restricted-syntax -- Ends what is held for one account.
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

/** The registry server of a connection; null for another target, and after its deletion. */
function serverOf(target: ConnectionTarget): string | null {
  return target.kind === 'server' ? target.serverId : null;
}

function keyOf({ namespaceId, connectionId }: { namespaceId: string; connectionId: string }): string {
  return `${namespaceId}/${connectionId}`;
}
