import type { Cancellation } from '../protocol/cancellation.js';
import { deadlineIn } from '../protocol/deadline.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { type ListKind, mcpLists, readList } from '../protocol/list-pages.js';
import type { CallTiming, McpReply } from '../protocol/channel.js';

/** Limit of concurrent upstream requests, and timeout of one. */
const PARALLEL = 8;
const MEMBER_WAIT_MS = 5_000;

/** Total time of one answer; members not requested by then are left to the next page. */
const ANSWER_MS_MAX = 20_000;

/** Time for which an upstream that did not answer is not requested again. */
const FAILURE_MS = 10_000;

/** A connection of an aggregate. */
export interface AggregateMember {
  connectionId: string;
  /** Position: newer connections have greater numbers. */
  seq: string;
  /** Last known connection status. */
  state: string;
  /** Set when the connection waits for its user and must not be called. */
  fault: MemberFault | null;
}

/** Reason why a connection is missing from an answer. */
export interface MemberFault {
  connectionId: string;
  state: string;
  message: string;
}

/** Members of an aggregate at one moment. */
export interface AggregateMembers {
  /** Newest first. */
  members: AggregateMember[];
  /** True if older connections were omitted. */
  isCut: boolean;
}

/** Access to the connections of a namespace. */
export interface AggregateSource {
  /** The namespace's name. */
  readonly name: string;
  /** Current members; the same object while nothing changes. */
  members(): Promise<AggregateMembers>;
  /** Handle of a connection. Rejects when the connection was deleted. */
  link(connectionId: string): Promise<UpstreamHandle>;
  /** Describes a failure for the user. @throws the error when it is not a failure of the connection */
  faultOf(connectionId: string, error: unknown): MemberFault;
  /** Wraps a call of one connection, for its log. @param tool called tool; null for other methods */
  watch(
    link: UpstreamHandle,
    method: string,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply>;
  /** Calls `listener` when connections are added, changed or removed. @returns function to remove it */
  whenChanged(listener: () => void): () => void;
}

/** A list item, by its name or URI at its server. */
export interface AggregateItem {
  name: string;
  /** JSON text as the server sent it. */
  text: string;
}

/** Items of one connection, or the reason why they are unknown. */
export type GatheredItems =
  { member: AggregateMember; items: AggregateItem[] } | { member: AggregateMember; fault: MemberFault };

/** Identifying member of an item. */
const nameOf = new Map<ListKind, string>([
  [mcpLists.tools, 'name'],
  [mcpLists.prompts, 'name'],
  [mcpLists.resources, 'uri'],
  [mcpLists.resourceTemplates, 'uriTemplate'],
]);

/** Capability that a server must declare for a list. */
const capabilityOf = new Map<ListKind, string>([
  [mcpLists.prompts, 'prompts'],
  [mcpLists.resources, 'resources'],
  [mcpLists.resourceTemplates, 'resources'],
]);

/** Identifying member of an item in an aggregate. */
export function namingMember(kind: ListKind): string {
  return nameOf.get(kind) ?? 'name';
}

/** Lists items of many connections concurrently; a failing connection does not fail the others. */
export class MemberRequests {
  private readonly failures = new WeakMap<UpstreamHandle, { until: number; fault: MemberFault }>();

  constructor(private readonly source: AggregateSource) {}

  /**
   * Lists of these members in their order, as far as time and `itemsMax` allow. The result may be shorter than
   * `members`; the next page continues there. Members that wait for their user are not called.
   */
  async gather(
    members: AggregateMember[],
    kind: ListKind,
    { itemsMax, timeoutMs, cancellation }: { itemsMax: number; timeoutMs: number; cancellation?: Cancellation },
  ): Promise<GatheredItems[]> {
    const left = deadlineIn(Math.min(timeoutMs, ANSWER_MS_MAX));
    const gathered: GatheredItems[] = [];
    let items = 0;
    const queue = members.entries();
    // Not started with less than its full timeout: it would be reported as failed because of the others.
    const neededMs = Math.min(MEMBER_WAIT_MS, timeoutMs / 2);
    const isOver = () => items >= itemsMax || left() < neededMs || cancellation?.isCancelled === true;
    const worker = async () => {
      while (!isOver()) {
        const next = queue.next();
        if (next.done) return;
        const [i, member] = next.value;
        const one = await this.one(member, kind, Math.min(left(), MEMBER_WAIT_MS));
        gathered[i] = one;
        if ('items' in one) items += one.items.length;
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    return gathered;
  }

  private async one(member: AggregateMember, kind: ListKind, timeoutMs: number): Promise<GatheredItems> {
    if (member.fault) return { member, fault: member.fault };
    let link: UpstreamHandle | null = null;
    try {
      link = await this.source.link(member.connectionId);
      const failed = this.failures.get(link);
      if (failed && Date.now() < failed.until) return { member, fault: failed.fault };
      return { member, items: await itemsOf(link, kind, timeoutMs) };
    } catch (error) {
      const fault = this.source.faultOf(member.connectionId, error);
      if (link) this.failures.set(link, { until: Date.now() + FAILURE_MS, fault });
      return { member, fault };
    }
  }
}

async function itemsOf(link: UpstreamHandle, kind: ListKind, timeoutMs: number): Promise<AggregateItem[]> {
  if (kind === mcpLists.tools) return link.catalog.list(timeoutMs);
  const left = deadlineIn(timeoutMs);
  const capability = (await link.open(left())).capabilities[capabilityOf.get(kind) ?? ''];
  if (capability === undefined || capability === null || capability === false) return [];
  const { items } = await readList(link, kind, left());
  return items.flatMap((text) => toItem(text, namingMember(kind)));
}

/** Ignores items without a name. */
function toItem(text: string, member: string): AggregateItem[] {
  const name = (JSON.parse(text) as Record<string, unknown> | null)?.[member];
  return typeof name === 'string' ? [{ name, text }] : [];
}
