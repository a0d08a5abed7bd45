import type { Channel, McpReply } from '../protocol/channel.js';
import { memberText } from '../protocol/json-edit.js';
import { elements, slice } from '../protocol/json-text.js';
import { headerParamsOf, type HeaderParam } from './bridge/header-params.js';
import { isWrapped } from './bridge/to-legacy.js';

/** What is remembered of the tools of one upstream, at most. */
const TOOLS_MAX = 10_000;

/** What must be known of a tool when it is called, beyond its name. */
interface ToolNote {
  headerParams: HeaderParam[];
  /** Its output schema is no object, so clients of older revisions were given a wrapped one. */
  isWrapped: boolean;
}

/**
 * What passing lists said of tools, for the few that need more than passing on. Known for as long as the channel lives; a
 * list that passes later corrects it.
 */
export class ToolNotes {
  private readonly notes = new WeakMap<Channel, Map<string, ToolNote>>();

  /** Reads a `tools/list` answer that passes. Costs nothing for lists without such tools. */
  learn(channel: Channel, { text, result }: McpReply): void {
    if (!result) return;
    const known = this.notes.get(channel);
    const isSpecial = text.includes('"x-mcp-header"') || text.includes('"outputSchema"');
    if (!known && !isSpecial) return;
    const notes = known ?? new Map<string, ToolNote>();
    const list = memberText(slice(text, result), 'tools');
    if (!list?.startsWith('[')) return;
    for (const span of elements(list)) note(slice(list, span), notes);
    if (!known && notes.size > 0) this.notes.set(channel, notes);
  }

  headerParams(channel: Channel, name: unknown): readonly HeaderParam[] {
    return this.notes.get(channel)?.get(String(name))?.headerParams ?? [];
  }

  isWrapped(channel: Channel, name: unknown): boolean {
    return this.notes.get(channel)?.get(String(name))?.isWrapped ?? false;
  }
}

function note(tool: string, notes: Map<string, ToolNote>): void {
  if (!tool.startsWith('{')) return;
  const name = memberText(tool, 'name');
  if (!name?.startsWith('"')) return;
  const key = JSON.parse(name) as string;
  const params = headerParamsOf(tool) ?? [];
  const wraps = isWrapped(tool);
  if (params.length === 0 && !wraps) notes.delete(key);
  else if (notes.size < TOOLS_MAX || notes.has(key)) notes.set(key, { headerParams: params, isWrapped: wraps });
}
