import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { HandlePool } from '../../../mcp/client/handle-pool.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ConnectionChannels } from './connection-channels.js';
import { ConnectionHandle } from './connection-handle.js';
import { ConnectionUrls } from './connection-urls.js';
import { CallRecorder } from '../mock/call-recorder.js';
import { ConnectionValues } from './connection-values.js';
import type { ConnectionTarget } from './connection.types.js';
import { isConnectionId } from './connection-target.js';
import { Connection } from './connection.entity.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { StatusRecorder } from './status-recorder.js';
import { UplinkTunnels } from '../uplink/uplink-tunnels.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    /** A connection came, changed or went. */
    'connections.changed': ConnectionChange;
  }
}

/** A row is believed this long; a change also arrives over the relay, at once. */
const TARGET_CACHED_MS = 5_000;
const TARGETS_CACHED_MAX = 50_000;

/** Open upstream sessions at most. */
const LINKS_MAX = 50_000;

/** What is told on {@link 'connections.changed'}. */
export interface ConnectionChange {
  /** The namespace's id and the connection's own, with a slash between. */
  key: string;
  id: string;
  /** Null when the connection is gone. */
  revision: number | null;
}

/** The links of this process: one per connection, shared by all callers, opened by the first call. */
@Injectable()
export class ConnectionHandles implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('connections');
  private readonly links = new HandlePool<ConnectionHandle>('connections', LINKS_MAX);
  private readonly targets = new RowCache<ConnectionTarget>((key) => this.load(key), {
    max: TARGETS_CACHED_MAX,
    ttlMs: TARGET_CACHED_MS,
  });

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly channels: ConnectionChannels,
    private readonly statuses: StatusRecorder,
    private readonly values: ConnectionValues,
    private readonly urls: ConnectionUrls,
    private readonly uplinks: UplinkTunnels,
    private readonly recorder: CallRecorder,
    private readonly runs: ServerChannelsService,
    private readonly pubSub: PubSub,
  ) {}

  /** Links that are held. */
  get size(): number {
    return this.links.size;
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('connections.changed', (change) => this.forget(change));
    this.uplinks.whenChanged((connection) => this.announce(connection, connection.revision));
    this.runs.whenOffersChange((id) => this.links.forgetListsWhere(({ serverId }) => serverId === id));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => {
      this.targets.dropWhere(({ namespaceId }) => namespaceId === id);
      this.links.dropWhere(({ namespaceId }) => namespaceId === id, true);
    });
  }

  /** The link of a connection. No query while the row was read in the last 5 s. @throws ResourceNotFoundError */
  async find(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionHandle> {
    return this.linkTo(await this.target(namespace, connectionId));
  }

  /** What a connection leads to, as it was in the last 5 s. @throws ResourceNotFoundError */
  async target(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionTarget> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    const target = await this.targets.get(keyOf({ namespaceId: namespace.id, connectionId }));
    if (!target) throw new ResourceNotFoundError();
    return target;
  }

  /** The link to a row that was just written, which every process hears of; null when it is gone. */
  async adopt(id: string): Promise<{ link: ConnectionHandle } | null> {
    const target = await this.read({ id });
    if (!target) return null;
    this.announce(target, target.revision);
    return { link: this.linkTo(target) };
  }

  /** What a connection leads to, as its row says now; null when it is gone. */
  stored(id: string): Promise<ConnectionTarget | null> {
    return this.read({ id });
  }

  /**
   * A connection is about to be deleted: has the link at hand that can end what a server keeps for it, though nobody here
   * called it lately. Never rejects: what is not ended, its server forgets when it was idle long enough.
   */
  async prepareEnd(id: string): Promise<void> {
    try {
      const target = await this.read({ id });
      if (target?.kind === 'server') this.linkTo(target);
    } catch (error) {
      this.logger.warn({ msg: 'what a server keeps for a deleted connection is not ended', err: error });
    }
  }

  /** A connection is gone: what this process holds of it has ended when this resolves, the others hear of it. */
  async deleted(connection: { id: string; namespaceId: string; connectionId: string }): Promise<void> {
    const change: ConnectionChange = { key: keyOf(connection), id: connection.id, revision: null };
    const ended = this.links.end(connection.id, true);
    this.forget(change);
    this.pubSub.publish('connections.changed', change);
    await ended;
  }

  /** Tells every process that a connection changed. */
  announce(connection: { id: string; namespaceId: string; connectionId: string }, revision: number): void {
    const change: ConnectionChange = { key: keyOf(connection), id: connection.id, revision };
    this.forget(change);
    this.pubSub.publish('connections.changed', change);
  }

  private forget({ key, id, revision }: ConnectionChange): void {
    this.targets.drop(key);
    const held = this.links.get(id);
    if (held && held.revision !== revision) this.links.drop(id, revision === null);
    if (revision === null) this.uplinks.deleted(id);
  }

  /** Ends what this process holds of a connection, with its upstream session. */
  end(id: string): Promise<void> {
    return this.links.end(id);
  }

  onApplicationShutdown(): Promise<void> {
    return this.links.close();
  }

  private linkTo(target: ConnectionTarget): ConnectionHandle {
    const held = this.links.get(target.id);
    if (held && held.revision >= target.revision) return held;
    const { id, setupEpoch } = target;
    const link = new ConnectionHandle(
      target,
      this.channels.to(target),
      this.statuses.observer(target),
      this.recorder.tap(target),
      () => this.urls.setup(id, setupEpoch),
    );
    this.links.put(target.id, link, target.accountId);
    return link;
  }

  private load(key: string): Promise<ConnectionTarget | null> {
    const slash = key.indexOf('/');
    return this.read({ namespaceId: key.slice(0, slash), connectionId: key.slice(slash + 1) });
  }

  private async read(
    where: { id: string } | { namespaceId: string; connectionId: string },
  ): Promise<ConnectionTarget | null> {
    const row = await this.connections.findOne({
      where,
      relations: { namespace: true },
      select: {
        id: true,
        revision: true,
        namespaceId: true,
        namespace: { id: true, name: true, accountId: true },
        connectionId: true,
        setupEpoch: true,
        targetKind: true,
        isStateful: true,
        mcpUrl: true,
        serverId: true,
        serverName: true,
        mock: { scenario: true },
        sealedHeaders: true,
        sealedQuery: true,
        recordingUntil: true,
      },
    });
    return row && this.toTarget(row);
  }

  private toTarget(row: Connection): ConnectionTarget {
    const { id, revision, namespaceId, connectionId, setupEpoch, recordingUntil, serverId, mcpUrl, mock } = row;
    const { name: namespace, accountId } = row.namespace;
    const ref = { id, revision, namespaceId, namespace, accountId, connectionId, setupEpoch, recordingUntil };
    const serverName = row.serverName ?? '';
    if (mock) return { ...ref, kind: 'mock', serverId, serverName, scenario: mock.scenario ?? null };
    if (row.targetKind === 'uplink') return { ...ref, kind: 'uplink' };
    if (row.targetKind === 'source') return { ...ref, kind: 'source', isStateful: row.isStateful };
    const headers = this.values.openHeaders(id, row.sealedHeaders);
    if (row.targetKind === 'url') return { ...ref, kind: 'url', url: mcpUrl ?? '', headers };
    const query = this.values.openQuery(id, row.sealedQuery);
    return { ...ref, kind: 'server', serverId, serverName, headers, query };
  }
}

function keyOf({ namespaceId, connectionId }: { namespaceId: string; connectionId: string }): string {
  return `${namespaceId}/${connectionId}`;
}
