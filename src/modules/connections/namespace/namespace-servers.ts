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

/** Namespaces whose common address is in use at once, in this process. */
const UNIONS_MAX = 1_000;

/** The common addresses of namespaces: one channel for each and its form, shared by all callers. */
@Injectable()
export class NamespaceServers implements OnApplicationShutdown {
  private readonly unions = new LRUCache<string, AggregateChannel>({
    max: UNIONS_MAX,
    dispose: (union) => void union.close(),
  });

  constructor(
    private readonly members: NamespaceMembers,
    private readonly links: ConnectionHandles,
    private readonly recorder: LogRecorder,
  ) {}

  /** The channel to all connections of a namespace. */
  find(namespace: OwnedNamespace, form: AggregateForm): AggregateChannel {
    const key = `${namespace.id} ${form.separator} ${form.isSearched}`;
    const held = this.unions.get(key);
    if (held) return held;
    const union = new AggregateChannel(new NamespaceSource(namespace, this.members, this.links, this.recorder), form);
    this.unions.set(key, union);
    return union;
  }

  onApplicationShutdown(): void {
    this.unions.clear();
  }
}

/** A namespace, as a union asks for it. */
class NamespaceSource implements AggregateSource {
  constructor(
    private readonly namespace: OwnedNamespace,
    private readonly known: NamespaceMembers,
    private readonly links: ConnectionHandles,
    private readonly recorder: LogRecorder,
  ) {}

  get name(): string {
    return this.namespace.name;
  }

  members() {
    return this.known.of(this.namespace.id);
  }

  link(connectionId: string): Promise<ConnectionHandle> {
    return this.links.find(this.namespace, connectionId);
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
      record.asked(method, { name: tool });
      const reply = await work(record);
      record.answered(reply);
      return reply;
    });
  }

  whenChanged(listener: () => void): () => void {
    return this.known.whenChanged(this.namespace.id, listener);
  }
}
