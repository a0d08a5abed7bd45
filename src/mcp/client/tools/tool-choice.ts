/**
 * An owner's choice of the tools that a server offers: exact names, or `prefix*`. A denied tool is not offered, even if
 * it is also allowed.
 *
 * A call of a tool that is not offered gets the error of an unknown tool (-32602) and does not reach the server. A call
 * whose params name a tool twice (`name` and `Name`, or `name` two times) is rejected as well: the server might read
 * the other name.
 *
 * {@link grantedTools} does the same for one caller, to whom only some tools were granted: every other method is
 * unknown (-32601).
 */
import { quote } from '../../../platform/text/quoted.js';
import type { Channel, Listening, ListenFilter, McpCall, McpReply } from '../../protocol/channel.js';
import { uniqueMembers } from '../../protocol/json-text.js';
import { memberText } from '../../protocol/json-edit.js';
import { LIST_ITEMS_MAX, mcpLists } from '../../protocol/list-pages.js';
import { errorReply, withList } from '../../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../protocol/protocol.js';

export interface ToolChoice {
  /** Offered tools; absent: all tools. */
  allow?: string[];
  deny?: string[];
}

export class ChosenToolsChannel implements Channel {
  /** Names of the last listed tools that are not offered. */
  readonly withheld = new Set<string>();

  constructor(
    private readonly channel: Channel,
    private readonly isOffered: (name: string) => boolean,
  ) {}

  open(...args: Parameters<Channel['open']>): Promise<UpstreamIdentity> {
    return this.channel.open(...args);
  }

  async request(call: McpCall): Promise<McpReply> {
    if (call.method === 'tools/call') {
      const name = calledTool(call.params);
      if (name === null || !this.isOffered(name)) {
        return errorReply(rpcCode.invalidParams, `Unknown tool: ${quote(name ?? '')}`);
      }
    }
    const reply = await this.channel.request(call);
    if (call.method !== mcpLists.tools.method) return reply;
    if (memberText(call.params ?? '{}', 'cursor') === undefined) this.withheld.clear();
    return withList(reply, 'tools', (tools) =>
      tools.filter((tool) => {
        const name = String((JSON.parse(tool) as { name?: unknown } | null)?.name);
        const isOffered = this.isOffered(name);
        if (!isOffered && this.withheld.size < LIST_ITEMS_MAX) this.withheld.add(name);
        return isOffered;
      }),
    );
  }

  listen(...args: Parameters<Channel['listen']>): Promise<Listening> {
    return this.channel.listen(...args);
  }

  forgetLists(): void {
    this.channel.forgetLists?.();
  }

  notify(profileKey: string, text: string): void {
    this.channel.notify?.(profileKey, text);
  }

  release(profileKey: string, forGood?: boolean): Promise<void> {
    return this.channel.release(profileKey, forGood);
  }

  close(forGood?: boolean): Promise<void> {
    return this.channel.close(forGood);
  }
}

const METHODS_OF_TOOLS: ReadonlySet<string> = new Set(['ping', 'tools/list', 'tools/call', 'server/discover']);

export class GrantedToolsChannel extends ChosenToolsChannel {
  override async open(...args: Parameters<Channel['open']>): Promise<UpstreamIdentity> {
    const identity = await super.open(...args);
    const { tools } = identity.capabilities;
    return { ...identity, capabilities: tools === undefined ? {} : { tools } };
  }

  override async request(call: McpCall): Promise<McpReply> {
    if (METHODS_OF_TOOLS.has(call.method)) return super.request(call);
    return errorReply(rpcCode.methodNotFound, `Unknown method: ${quote(call.method)}. Only tools were granted to you.`);
  }

  override listen(
    { toolsListChanged }: ListenFilter,
    ...more: Tail<Parameters<Channel['listen']>>
  ): Promise<Listening> {
    return super.listen({ toolsListChanged }, ...more);
  }
}

type Tail<List extends unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never;

/** Restricts a channel to tools with these exact names; null means all tools and returns the same channel. */
export function grantedTools(channel: Channel, tools: readonly string[] | null | undefined): Channel {
  return tools ? new GrantedToolsChannel(channel, (name) => tools.includes(name)) : channel;
}

export function isChosen(name: string, { allow, deny = [] }: ToolChoice): boolean {
  const isIn = (patterns: string[]) =>
    patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
  return !isIn(deny) && (allow === undefined || isIn(allow));
}

/** Returns the tool that params name; null if a server might read another name in them. */
export function calledTool(params: string | undefined): string | null {
  const text = params ?? '{}';
  const parts = uniqueMembers(text);
  if (typeof parts === 'string') return null;
  const nameKeys = [...parts.keys()].filter((member) => member.toLowerCase() === 'name');
  const { name } = JSON.parse(text) as { name?: unknown };
  return typeof name === 'string' && nameKeys.length === 1 ? name : null;
}
