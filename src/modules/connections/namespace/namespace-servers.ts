import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { CallTiming, McpReply } from '../../../mcp/protocol/channel.js';
import type { UpstreamHandle } from '../../../mcp/client/upstream-handle.js';
import { AggregateChannel, type AggregateForm } from '../../../mcp/aggregate/aggregate-channel.js';
import { CallerLeftError } from '../../../mcp/protocol/mcp-errors.js';
import type { MemberFault, AggregateSource } from '../../../mcp/aggregate/member-requests.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import type { ConnectionHandle } from '../core/connection-handle.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { statusAfter } from '../core/connection-status.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { LogRecorder } from '../log/log-recorder.js';
import { NamespaceMembers } from './namespace-members.js';

/** Aggregate channels that this process keeps open. */
const AGGREGATES_MAX = 1_000;

/** The aggregate MCP endpoints: one channel for each namespace and form, shared by all callers. */
@Injectable()
export class NamespaceServers implements OnApplicationShutdown {
  private readonly aggregates = new LRUCache<string, AggregateChannel>({
    max: AGGREGATES_MAX,
    dispose: (aggregate) => void aggregate.close(),
  });

  constructor(
    private readonly members: NamespaceMembers,
    private readonly handles: ConnectionHandles,
    private readonly recorder: LogRecorder,
  ) {}

  /** The channel to all connections of a namespace. */
  find(namespace: OwnedNamespace, form: AggregateForm): AggregateChannel {
    const key = `${namespace.id} ${form.separator} ${form.isSearched}`;
    const held = this.aggregates.get(key);
    if (held) return held;
    const aggregate = new AggregateChannel(
      new NamespaceSource(namespace, this.members, this.handles, this.recorder),
      form,
    );
    this.aggregates.set(key, aggregate);
    return aggregate;
  }

  onApplicationShutdown(): void {
    this.aggregates.clear();
  }
}

/** The connections of a namespace as members of an aggregate. */
class NamespaceSource implements AggregateSource {
  constructor(
    private readonly namespace: OwnedNamespace,
    private readonly known: NamespaceMembers,
    private readonly handles: ConnectionHandles,
    private readonly recorder: LogRecorder,
  ) {}

  get name(): string {
    return this.namespace.name;
  }

  members() {
    return this.known.of(this.namespace.id);
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
    method: string,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply> {
    const request = { method: 'POST', url: `/connect/${this.namespace.name}/.mcp` };
    return this.recorder.watching(request, { statusCode: 200 }, async (record) => {
      record.connectionId = (link as ConnectionHandle).id;
      record.received(method, { name: tool });
      const reply = await work(record);
      record.answered(reply);
      return reply;
    });
  }

  whenChanged(listener: () => void): () => void {
    return this.known.whenChanged(this.namespace.id, listener);
  }
}
