import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import { HttpChannel } from '../../mcp/channels/http-channel.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { Egress } from '../../platform/egress/egress.js';
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

/** An upstream session nobody uses is ended after this long. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

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
  private readonly logger = new Logger('connections');
  private readonly links = new Map<string, { link: ConnectionLink; namespaceId: string }>();
  private readonly sweeper = setInterval(() => this.closeIdle(), SWEEP_EVERY_MS).unref();
  private readonly targets = new RowCache<Target>((key) => this.load(key), {
    max: TARGETS_CACHED_MAX,
    ttlMs: TARGET_CACHED_MS,
  });

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly statuses: StatusRecorder,
    private readonly relay: RelayService,
    private readonly egress: Egress,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.relay.subscribe<{ key: string; id: string; revision: number | null }>(CHANGED_TOPIC, (change) => {
      this.targets.drop(change.key);
      const held = this.links.get(change.id);
      if (held && held.link.revision !== change.revision) this.drop(change.id);
    });
    await this.relay.subscribe<{ id: string }>(NAMESPACE_DELETED_TOPIC, ({ id }) => {
      this.targets.dropWhere(({ namespaceId }) => namespaceId === id);
      for (const [key, { namespaceId }] of this.links) if (namespaceId === id) this.drop(key);
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
  async end(id: string): Promise<void> {
    const held = this.links.get(id);
    this.links.delete(id);
    await held?.link.close();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.sweeper);
    await Promise.all([...this.links.keys()].map((id) => this.end(id)));
  }

  private linkTo(target: Target): ConnectionLink {
    const held = this.links.get(target.id)?.link;
    if (held && held.revision >= target.revision) return held;
    const link = new ConnectionLink(
      target.id,
      target.revision,
      new HttpChannel(this.egress, {
        url: new URL(target.mcpUrl),
        headers: target.headers,
        connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
      }),
      this.statuses.observer(target),
    );
    this.links.set(target.id, { link, namespaceId: target.namespaceId });
    void held?.retire();
    return link;
  }

  private drop(id: string): void {
    const held = this.links.get(id);
    this.links.delete(id);
    void held?.link.retire();
  }

  private closeIdle(): void {
    const before = Date.now() - IDLE_MS;
    const idle = [...this.links].filter(([, { link }]) => link.isIdle && link.lastUsedAt < before);
    for (const [id] of idle) this.drop(id);
    if (idle.length > 0) this.logger.debug(`${idle.length} idle upstream sessions ended`);
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
