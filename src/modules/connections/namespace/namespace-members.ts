import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { AggregateMembers } from '../../../mcp/aggregate/member-requests.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { ConnectionChange } from '../core/connection-handles.js';
import { Connection } from '../core/connection.entity.js';

/** Connections that take part, newest first; a namespace may have a million. */
const MEMBERS_MAX = 1_000;

/** Believed this long; what comes and goes also arrives over the relay, at once. An entry is some hundred KB at most. */
const CACHED_MS = 5_000;
const CACHED_MAX = 200;

/** The connections of namespaces, as their common address knows them. */
@Injectable()
export class NamespaceMembers implements OnModuleInit {
  private readonly known = new RowCache<AggregateMembers>((id) => this.load(id), { max: CACHED_MAX, ttlMs: CACHED_MS });
  private readonly listeners = new Map<string, Set<() => void>>();

  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('connections.changed', ({ key }) => this.changed(key.slice(0, key.indexOf('/'))));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => this.changed(id));
  }

  /** No query while they were read in the last 5 s. */
  async of(namespaceId: string): Promise<AggregateMembers> {
    return (await this.known.get(namespaceId)) ?? { members: [], isCut: false };
  }

  /** Calls `listener` when a connection of the namespace comes, changes or goes. @returns to be called to stop */
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
