import type { Cancellation } from '../protocol/cancellation.js';
import { deadlineIn } from '../protocol/deadline.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { listPages, type ListKind, mcpLists } from '../protocol/list-pages.js';
import type { CallTiming, McpReply } from '../protocol/channel.js';

/** How many upstreams are asked at once, and how long one may keep the others waiting. */
const PARALLEL = 8;
const MEMBER_WAIT_MS = 5_000;

/** For all of one answer together. Who was not asked by then is asked for the next one. */
const ANSWER_MS_MAX = 20_000;

/** An upstream that did not answer is not asked again so soon, however many clients list. */
const FAILURE_MS = 10_000;

/** What is read of one upstream's endless list. */
const PAGES_MAX = 64;
const ITEMS_OF_ONE_MAX = 10_000;

/** A connection of a union. */
export interface AggregateMember {
  connectionId: string;
  /** Its place: later ones have greater numbers. */
  seq: string;
  /** Its last known state. */
  state: string;
  /** Set when it waits for its user, and is not to be asked. */
  fault: MemberFault | null;
}

/** Why a connection takes no part in an answer. */
export interface MemberFault {
  connectionId: string;
  state: string;
  message: string;
}

/** The members of a union at one moment. */
export interface AggregateMembers {
  /** Newest first. */
  members: AggregateMember[];
  /** There are older ones that take no part. */
  isCut: boolean;
}

/** What a union needs of those who know connections. */
export interface AggregateSource {
  /** The namespace's name. */
  readonly name: string;
  /** The same object while nothing changes. */
  members(): Promise<AggregateMembers>;
  /** Rejects when the connection is gone. */
  link(connectionId: string): Promise<UpstreamHandle>;
  /** A failure in words for the user. @throws the error when it says nothing of the connection */
  faultOf(connectionId: string, error: unknown): MemberFault;
  /** Stands around a call of one connection, for its log. @param tool the tool that is called; null for other methods */
  watch(
    link: UpstreamHandle,
    method: string,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply>;
  /** Hears when connections come, change or go. @returns to be called to stop */
  whenChanged(listener: () => void): () => void;
}

/** An item of a list, by the name or URI it has at its server. */
export interface AggregateItem {
  name: string;
  /** As the server wrote it. */
  text: string;
}

/** What one connection has, or why nothing is known. */
export type GatheredItems =
  { member: AggregateMember; items: AggregateItem[] } | { member: AggregateMember; fault: MemberFault };

/** Which member of an item names it. */
const nameOf = new Map<ListKind, string>([
  [mcpLists.tools, 'name'],
  [mcpLists.prompts, 'name'],
  [mcpLists.resources, 'uri'],
  [mcpLists.resourceTemplates, 'uriTemplate'],
]);

/** The capability without which a server is not asked for a list. */
const capabilityOf = new Map<ListKind, string>([
  [mcpLists.prompts, 'prompts'],
  [mcpLists.resources, 'resources'],
  [mcpLists.resourceTemplates, 'resources'],
]);

/** Which member of an item's JSON is its name in a union. */
export function namingMember(kind: ListKind): string {
  return nameOf.get(kind) ?? 'name';
}

/** Asks many connections for their lists, bounded; one that fails never fails the rest. */
export class MemberRequests {
  private readonly failures = new WeakMap<UpstreamHandle, { until: number; fault: MemberFault }>();

  constructor(private readonly source: AggregateSource) {}

  /**
   * The lists of these members, in their order, as far as time and `itemsMax` go: the answer may be shorter than
   * `members`, and then goes on where it ends. Those that wait for their user are not asked.
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
    // Nobody is given less time than it may take: it would be blamed for what others took.
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
  const items: AggregateItem[] = [];
  let pages = 0;
  for await (const page of listPages(link, kind, left())) {
    items.push(...page.items.flatMap((text) => toItem(text, namingMember(kind))));
    pages += 1;
    if (pages === PAGES_MAX || items.length >= ITEMS_OF_ONE_MAX) break;
  }
  return items.slice(0, ITEMS_OF_ONE_MAX);
}

/** What has no name is passed over. */
function toItem(text: string, member: string): AggregateItem[] {
  const name = (JSON.parse(text) as Record<string, unknown> | null)?.[member];
  return typeof name === 'string' ? [{ name, text }] : [];
}
