/**
 * The choice of an owner which tools of a server are offered: exact names, or `prefix*`. A denied tool is not offered,
 * even if it is also allowed.
 *
 * Lists are filtered. A call of another tool is answered as one of an unknown tool (-32602) and does not reach the
 * server. A call whose params name a tool twice (`name` and `Name`, or `name` two times) is refused as well: the server
 * might read the other name.
 */
import { quoted } from '../../platform/text/quoted.js';
import type { Channel, Listening, McpCall, McpReply } from '../protocol/channel.js';
import { uniqueMembers } from '../protocol/json-text.js';
import { mcpLists } from '../protocol/list-pages.js';
import { errorReply, withList } from '../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';

/** The tools that are offered: exact names, or `prefix*`. */
export interface ToolChoice {
  /** Absent: all tools. */
  allow?: string[];
  deny?: string[];
}

/** A channel that lists and calls the chosen tools only. */
export class ChosenToolsChannel implements Channel {
  constructor(
    private readonly channel: Channel,
    private readonly choice: ToolChoice,
  ) {}

  open(...args: Parameters<Channel['open']>): Promise<UpstreamIdentity> {
    return this.channel.open(...args);
  }

  async request(call: McpCall): Promise<McpReply> {
    if (call.method === 'tools/call') {
      const name = calledTool(call.params);
      if (name === null || !isChosen(name, this.choice)) {
        return errorReply(rpcCode.invalidParams, `Unknown tool: ${quoted(name ?? '')}`);
      }
    }
    const reply = await this.channel.request(call);
    if (call.method !== mcpLists.tools.method) return reply;
    return withList(reply, 'tools', (tools) =>
      tools.filter((tool) => isChosen(String((JSON.parse(tool) as { name?: unknown } | null)?.name), this.choice)),
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

/** True if the choice offers a tool of this name. */
export function isChosen(name: string, { allow, deny = [] }: ToolChoice): boolean {
  const isIn = (patterns: string[]) =>
    patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
  return !isIn(deny) && (allow === undefined || isIn(allow));
}

/** The tool that params name; null if a server may read another name in them than we do. */
function calledTool(params: string | undefined): string | null {
  const text = params ?? '{}';
  const parts = uniqueMembers(text);
  if (typeof parts === 'string') return null;
  const named = [...parts.keys()].filter((member) => member.toLowerCase() === 'name');
  const { name } = JSON.parse(text) as { name?: unknown };
  return typeof name === 'string' && named.length === 1 ? name : null;
}
