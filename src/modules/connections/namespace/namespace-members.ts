import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { AggregateMembers } from '../../../mcp/aggregate/member-requests.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ConnectionEvents } from '../core/connection.events.js';
import { Connection } from '../core/connection.entity.js';

/** The newest connections of a namespace take part; it may have a million. */
const MEMBERS_MAX = 1_000;

/** Cache lifetime. A change of a connection is also announced at once. An entry has some hundred KB at most. */
const CACHED_MS = 5_000;
const CACHED_MAX = 200;

/** The connections of namespaces, as members of the aggregate MCP endpoint. */
@Injectable()
export class NamespaceMembers implements OnModuleInit {
  private readonly known = new RowCache<AggregateMembers>((id) => this.load(id), { max: CACHED_MAX, ttlMs: CACHED_MS });
  private readonly listeners = new Map<string, Set<() => void>>();

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly events: ConnectionEvents,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    this.events.on('changed', ({ key }) => this.changed(key.slice(0, key.indexOf('/'))));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => this.changed(id));
  }

  /** No query while they were read in the last 5 s. */
  async of(namespaceId: string): Promise<AggregateMembers> {
    return (await this.known.get(namespaceId)) ?? { members: [], isCut: false };
  }

  /** Calls `listener` when a connection of the namespace is created, changed or deleted. @returns stops it */
  whenChanged(namespaceId: string, listener: () => void): () => void {
    const listeners = this.listeners.get(namespaceId) ?? new Set();
    this.listeners.set(namespaceId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.listeners.get(namespaceId) === listeners) this.listeners.delete(namespaceId);
    };
  }

  private changed(namespaceId: string): void {
    this.known.drop(namespaceId);
    for (const listener of this.listeners.get(namespaceId) ?? []) listener();
  }

  private async load(namespaceId: string): Promise<AggregateMembers> {
    const rows = await this.connections.find({
      where: { namespaceId },
      select: { connectionId: true, seq: true, statusState: true, statusMessage: true },
      order: { seq: 'DESC' },
      take: MEMBERS_MAX + 1,
    });
    const members = rows.slice(0, MEMBERS_MAX).map(({ connectionId, seq, statusState: state, statusMessage }) => ({
      connectionId,
      seq,
      state,
      fault:
        state === 'auth_required' || state === 'input_required'
          ? { connectionId, state, message: statusMessage ?? '' }
          : null,
    }));
    return { members, isCut: rows.length > MEMBERS_MAX };
  }
}
