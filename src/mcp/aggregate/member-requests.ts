import { someAtOnce } from '../../platform/limits/some-at-once.js';
import { deadlineIn } from '../protocol/deadline.js';
import { withTimeout } from '../../platform/limits/with-timeout.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { UpstreamTimeoutError } from '../protocol/mcp-errors.js';
import { PARALLEL } from '../protocol/protocol.js';
import {
  isDeclared,
  type LeftOutItem,
  type ListItem,
  type ListKind,
  mcpLists,
  readList,
} from '../protocol/list-pages.js';
import type { CallTiming, McpCall, McpReply } from '../protocol/channel.js';

export const MEMBERS_MAX = 100;

/** Timeout of one upstream request. */
const MEMBER_WAIT_MS = 5_000;

/** Wait for the tools of a connection whose last list or failure is known. */
const KNOWN_WAIT_MS = 500;

/** Total time of one response; members not called by then are left to the next page. */
const ANSWER_MS_MAX = 20_000;

/** Time for which an unresponsive upstream is not called again. */
const FAILURE_MS = 10_000;

export interface AggregateMember {
  connectionId: string;
  /** Position: newer connections have greater numbers. */
  seq: string;
  /** Last known connection status. */
  state: string;
  /** Set when the connection waits for its user and must not be called. */
  fault: MemberFault | null;
}

export interface MemberFault {
  connectionId: string;
  state: string;
  message: string;
}

export interface AggregateMembers {
  members: AggregateMember[];
  /** True if older connections were omitted. */
  isCut: boolean;
}

export interface AggregateSource {
  readonly name: string;
  /** Returns the same object while nothing changes. */
  members(): Promise<AggregateMembers>;
  /** Returns the handle of a connection. Rejects when the connection was deleted. */
  handle(connectionId: string): Promise<UpstreamHandle>;
  /** @throws the error when it is not a failure of the connection */
  faultOf(connectionId: string, error: unknown): MemberFault;
  /** Records the call in the log of its connection. @param tool null for other methods than tool calls */
  watch(
    handle: UpstreamHandle,
    call: Pick<McpCall, 'method' | 'origin'>,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply>;
  /** @returns a function that removes the listener */
  whenChanged(listener: () => void): () => void;
}

export type MemberCall = Pick<McpCall, 'timeoutMs' | 'cancellation' | 'profile'>;

/** Items of one connection, or the reason why they are unknown. */
export type GatheredItems =
  | { member: AggregateMember; items: ListItem[]; leftOut: LeftOutItem[] }
  | { member: AggregateMember; fault: MemberFault };

export class MemberRequests {
  private readonly failures = new WeakMap<UpstreamHandle, { until: number; fault: MemberFault }>();

  /**
   * @param onToolsChanged called when a connection lists other tools than a response contained
   *
   * @param tools the only tools that are listed; absent: all
   */
  constructor(
    private readonly source: AggregateSource,
    private readonly onToolsChanged: () => void,
    private readonly tools?: readonly string[],
  ) {}

  /**
   * Calls all members. The result can be shorter than `members` if time or `itemsMax` runs out; the next page continues there. Members
   * that wait for their user are not called.
   */
  async gather(
    members: AggregateMember[],
    kind: ListKind,
    { itemsMax, timeoutMs, cancellation, profile }: { itemsMax: number } & MemberCall,
  ): Promise<GatheredItems[]> {
    const timeLeft = deadlineIn(Math.min(timeoutMs, ANSWER_MS_MAX));
    const gathered: GatheredItems[] = [];
    let items = 0;
    // Not started with less than its full timeout: the others would make it fail.
    const neededMs = Math.min(MEMBER_WAIT_MS, timeoutMs / 2);
    const isOver = () => items >= itemsMax || timeLeft() < neededMs || cancellation?.isCancelled === true;
    await someAtOnce(PARALLEL, members.entries(), async ([i, member]) => {
      if (isOver()) return;
      let list = await this.listOf(member, kind, { timeoutMs: Math.min(timeLeft(), MEMBER_WAIT_MS), profile });
      const { tools } = this;
      if (tools && 'items' in list) {
        list = { member, items: list.items.filter(({ name }) => tools.includes(name)), leftOut: [] };
      }
      gathered[i] = list;
      if ('items' in list) items += list.items.length;
    });
    return gathered;
  }

  /**
   * Returns true if the tool is in the connection's last list, however old; false for other kinds, whose lists are not
   * cached.
   */
  async hasListed(connectionId: string, kind: ListKind, name: string, { profile }: MemberCall): Promise<boolean> {
    if (kind !== mcpLists.tools) return false;
    const handle = await this.source.handle(connectionId);
    return handle.catalogFor(profile?.capabilities).names.includes(name);
  }

  /** Returns the tools of the last lists, however old. */
  async lastTools(members: AggregateMember[], { profile }: MemberCall): Promise<GatheredItems[]> {
    return Promise.all(
      members.map(async (member) => {
        try {
          const handle = await this.source.handle(member.connectionId);
          return { member, items: handle.catalogFor(profile?.capabilities).last ?? [], leftOut: [] };
        } catch (error) {
          return { member, fault: this.source.faultOf(member.connectionId, error) };
        }
      }),
    );
  }

  private async listOf(member: AggregateMember, kind: ListKind, call: MemberCall): Promise<GatheredItems> {
    if (member.fault) return { member, fault: member.fault };
    let handle: UpstreamHandle | null = null;
    try {
      handle = await this.source.handle(member.connectionId);
      const failed = this.failures.get(handle);
      if (failed && Date.now() < failed.until) return { member, fault: failed.fault };
      if (kind === mcpLists.tools) return await this.toolsOf(member, handle, call);
      const timeLeft = deadlineIn(call.timeoutMs);
      const isOffered = isDeclared((await handle.open(timeLeft())).capabilities[kind.capability]);
      const listed = isOffered && (await readList(handle.listsFor(call.profile?.capabilities), kind, timeLeft()));
      this.failures.delete(handle);
      return { member, ...(listed || { items: [], leftOut: [] }) };
    } catch (error) {
      return { member, fault: this.failed(member, handle, error) };
    }
  }

  /**
   * Returns the last known tools if the server is slow. Listing then continues in the background, and `onToolsChanged` is
   * called if the tools differ.
   */
  private async toolsOf(
    member: AggregateMember,
    handle: UpstreamHandle,
    { timeoutMs, profile }: MemberCall,
  ): Promise<GatheredItems> {
    const catalog = handle.catalogFor(profile?.capabilities);
    const { last } = catalog;
    const failure = this.failures.get(handle);
    const listing = catalog.list();
    const waitMs = last || failure ? Math.min(KNOWN_WAIT_MS, timeoutMs) : timeoutMs;
    const items = await withTimeout(waitMs, listing, null);
    if (items) {
      this.failures.delete(handle);
      return { member, items, leftOut: catalog.leftOut };
    }
    listing
      .then((tools) => {
        this.failures.delete(handle);
        const isSame = last?.length === tools.length && last.every(({ text }, i) => text === tools[i]?.text);
        if (failure || !isSame) this.onToolsChanged();
      })
      .catch((error: unknown) => this.failed(member, handle, error))
      .catch(() => undefined);
    if (failure) return { member, fault: failure.fault };
    if (last) return { member, items: last, leftOut: catalog.leftOut };
    throw new UpstreamTimeoutError('The MCP server did not list its tools in time: list them again later.', false);
  }

  private failed({ connectionId }: AggregateMember, handle: UpstreamHandle | null, error: unknown): MemberFault {
    const fault = this.source.faultOf(connectionId, error);
    if (handle) this.failures.set(handle, { until: Date.now() + FAILURE_MS, fault });
    return fault;
  }
}
