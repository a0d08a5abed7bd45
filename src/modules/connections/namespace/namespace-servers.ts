import { EventEmitter } from 'node:events';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { CallTiming, McpCall, McpReply } from '../../../mcp/protocol/channel.js';
import type { UpstreamHandle } from '../../../mcp/client/upstream-handle.js';
import { AggregateChannel, type AggregateForm } from '../../../mcp/aggregate/aggregate-channel.js';
import { CallerLeftError } from '../../../mcp/protocol/mcp-errors.js';
import type { MemberFault, AggregateSource, AggregateMembers } from '../../../mcp/aggregate/member-requests.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { type ConnectionHandle, ConnectionHandles } from '../core/connection-handles.js';
import { statusAfter } from '../core/connection-status.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { LogRecorder } from '../log/log-recorder.js';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { RowCache } from '../../../platform/database/row-cache.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ConnectionEvents } from '../core/connection.events.js';
import { Connection } from '../core/connection.entity.js';

const AGGREGATES_MAX = 1_000;

/** Maximum number of connections in an aggregate, the newest ones: a namespace can have a million. */
const MEMBERS_MAX = 1_000;

/** Maximum number of cached lists, each of up to some hundred KB. */
const CACHED_MAX = 200;

@Injectable()
export class NamespaceMembers implements OnModuleInit {
  private readonly cachedMembers = new RowCache<AggregateMembers>((id) => this.load(id), { max: CACHED_MAX });
  /** Emits changes; event names are ids of namespaces. */
  private readonly changes = new EventEmitter().setMaxListeners(0);

  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionEvents: ConnectionEvents,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    this.connectionEvents.on('changed', ({ key }) => this.changed(key.slice(0, key.indexOf('/'))));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => this.changed(id));
  }

  /** Returns the members, without a query if they were read in the last 5 s. */
  async membersOf(namespaceId: string): Promise<AggregateMembers> {
    return (await this.cachedMembers.get(namespaceId)) ?? { members: [], isCut: false };
  }

  /** @returns a function that removes the listener */
  whenChanged(namespaceId: string, listener: () => void): () => void {
    this.changes.on(namespaceId, listener);
    return () => this.changes.off(namespaceId, listener);
  }

  private changed(namespaceId: string): void {
    this.cachedMembers.drop(namespaceId);
    this.changes.emit(namespaceId);
  }

  private async load(namespaceId: string): Promise<AggregateMembers> {
    const rows = await this.connectionRepository.find({
      where: { namespaceId },
      select: { connectionId: true, seq: true, statusState: true, statusMessage: true },
      order: { seq: 'DESC' },
      take: MEMBERS_MAX + 1,
    });
    const members = rows
      .slice(0, MEMBERS_MAX)
      .map(({ connectionId, seq, statusState: state, statusMessage }) => ({
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

@Injectable()
export class NamespaceServers implements OnApplicationShutdown {
  private readonly aggregates = new LRUCache<string, AggregateChannel>({
    max: AGGREGATES_MAX,
    dispose: (aggregate) => void aggregate.close(),
  });

  constructor(
    private readonly namespaceMembers: NamespaceMembers,
    private readonly connectionHandles: ConnectionHandles,
    private readonly logRecorder: LogRecorder,
  ) {}

  find(namespace: OwnedNamespace, form: AggregateForm): AggregateChannel {
    const key = `${namespace.id} ${JSON.stringify(form)}`;
    const existing = this.aggregates.get(key);
    if (existing) return existing;
    const aggregate = new AggregateChannel(
      new NamespaceSource(namespace, this.namespaceMembers, this.connectionHandles, this.logRecorder),
      form,
    );
    this.aggregates.set(key, aggregate);
    return aggregate;
  }

  onApplicationShutdown(): void {
    this.aggregates.clear();
  }
}

class NamespaceSource implements AggregateSource {
  constructor(
    private readonly namespace: OwnedNamespace,
    private readonly namespaceMembers: NamespaceMembers,
    private readonly handles: ConnectionHandles,
    private readonly recorder: LogRecorder,
  ) {}

  get name(): string {
    return this.namespace.name;
  }

  members() {
    return this.namespaceMembers.membersOf(this.namespace.id);
  }

  handle(connectionId: string): Promise<ConnectionHandle> {
    return this.handles.find(this.namespace, connectionId);
  }

  faultOf(connectionId: string, error: unknown): MemberFault {
    if (!(error instanceof DomainError) || error instanceof CallerLeftError) throw error;
    const isGone = error instanceof ResourceNotFoundError;
    const message = isGone ? 'The connection was deleted.' : error.message;
    return { connectionId, state: statusAfter(error)?.state ?? 'error', message };
  }

  watch(
    link: UpstreamHandle,
    { method, origin }: Pick<McpCall, 'method' | 'origin'>,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply> {
    const request = { method: 'POST', url: `/connect/${this.namespace.name}/.mcp`, headers: {} };
    return this.recorder.record(request, origin ?? null, { statusCode: 200 }, async (record) => {
      record.connectionId = (link as ConnectionHandle).owner.target.id;
      record.received(method, { name: tool });
      const reply = await work(record);
      record.recordReply(reply);
      return reply;
    });
  }

  whenChanged(listener: () => void): () => void {
    return this.namespaceMembers.whenChanged(this.namespace.id, listener);
  }
}
