import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import { HttpChannels } from '../../mcp/channels/http-channels.js';
import { LinkPool } from '../../mcp/link-pool.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { RelayService } from '../../platform/queue/relay.service.js';
import { Vault } from '../../platform/vault/vault.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { NAMESPACE_DELETED_TOPIC } from '../namespaces/namespaces.service.js';
import { ConnectionLink } from './connection-link.js';
import { isConnectionId } from './connection-target.js';
import { Connection } from './connection.entity.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { StatusRecorder } from './status-recorder.js';

/** A row is believed this long; a change also arrives over the relay, at once. */
const TARGET_CACHED_MS = 5_000;
const TARGETS_CACHED_MAX = 50_000;

/** Open upstream sessions at most. */
const LINKS_MAX = 50_000;

const CHANGED_TOPIC = 'connections.changed';

/** What a process must know to call a connection. */
interface Target {
  id: string;
  revision: number;
  namespaceId: string;
  mcpUrl: string;
  headers: Record<string, string>;
}

/** What a connection's row is read for. */
export type TargetRow = Pick<Connection, 'id' | 'revision' | 'namespaceId' | 'mcpUrl' | 'sealedHeaders'>;

/** The links of this process: one per connection, shared by all callers, opened by the first call. */
@Injectable()
export class ConnectionLinks implements OnModuleInit, OnApplicationShutdown {
  private readonly links = new LinkPool<ConnectionLink>('connections', LINKS_MAX);
  private readonly targets = new RowCache<Target>((key) => this.load(key), {
    max: TARGETS_CACHED_MAX,
    ttlMs: TARGET_CACHED_MS,
  });

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly statuses: StatusRecorder,
    private readonly relay: RelayService,
    private readonly channels: HttpChannels,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.relay.subscribe<{ key: string; id: string; revision: number | null }>(CHANGED_TOPIC, (change) => {
      this.targets.drop(change.key);
      const held = this.links.get(change.id);
      if (held && held.revision !== change.revision) this.links.drop(change.id);
    });
    await this.relay.subscribe<{ id: string }>(NAMESPACE_DELETED_TOPIC, ({ id }) => {
      this.targets.dropWhere(({ namespaceId }) => namespaceId === id);
      this.links.dropWhere(({ namespaceId }) => namespaceId === id);
    });
  }

  /** The link of a connection. No query while the row was read in the last 5 s. @throws ResourceNotFoundError */
  async find(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionLink> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    const target = await this.targets.get(keyOf({ namespaceId: namespace.id, connectionId }));
    if (!target) throw new ResourceNotFoundError();
    return this.linkTo(target);
  }

  /** The link to a row that was just written. */
  adopt(row: TargetRow): ConnectionLink {
    return this.linkTo(this.toTarget(row));
  }

  /** Tells every process that a connection changed (`revision`) or went (null). */
  announce(connection: { id: string; namespaceId: string; connectionId: string }, revision: number | null): void {
    const key = keyOf(connection);
    this.targets.drop(key);
    this.relay.publish(CHANGED_TOPIC, { key, id: connection.id, revision });
  }

  /** Ends what this process holds of a connection, with its upstream session. */
  end(id: string): Promise<void> {
    return this.links.end(id);
  }

  onApplicationShutdown(): Promise<void> {
    return this.links.close();
  }

  private linkTo(target: Target): ConnectionLink {
    const held = this.links.get(target.id);
    if (held && held.revision >= target.revision) return held;
    const link = new ConnectionLink(
      target,
      this.channels.channelTo({
        url: new URL(target.mcpUrl),
        headers: target.headers,
        connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
      }),
      this.statuses.observer(target),
    );
    this.links.put(target.id, link);
    return link;
  }

  private async load(key: string): Promise<Target | null> {
    const slash = key.indexOf('/');
    const row = await this.connections.findOne({
      where: { namespaceId: key.slice(0, slash), connectionId: key.slice(slash + 1) },
      select: { id: true, revision: true, namespaceId: true, mcpUrl: true, sealedHeaders: true },
    });
    return row ? this.toTarget(row) : null;
  }

  private toTarget({ id, revision, namespaceId, mcpUrl, sealedHeaders }: TargetRow): Target {
    const headers = sealedHeaders === null ? {} : (JSON.parse(this.vault.open(sealedHeaders, id)) as Target['headers']);
    return { id, revision, namespaceId, mcpUrl, headers };
  }
}

function keyOf({ namespaceId, connectionId }: { namespaceId: string; connectionId: string }): string {
  return `${namespaceId}/${connectionId}`;
}
