import { Injectable } from '@nestjs/common';
import type { Channel, McpReply } from '../protocol/channel.js';
import { memberText } from '../protocol/json-edit.js';
import { elements, slice } from '../protocol/json-text.js';
import { LIST_ITEMS_MAX } from '../protocol/list-pages.js';
import { headerParamsOf } from './bridge/header-params.js';
import { type HeaderParam } from '../client/tools/tool-headers.js';
import { isWrapped } from './bridge/to-legacy.js';

interface ToolMetadata {
  headerParams: HeaderParam[];
  /** True if the output schema is not an object, so that clients of older revisions received a wrapped one. */
  isWrapped: boolean;
}

/**
 * Caches facts for the few tools whose calls are converted. They are valid for the lifetime of the channel; later lists
 * replace them.
 */
@Injectable()
export class ToolMetadataCache {
  private readonly byChannel = new WeakMap<Channel, Map<string, ToolMetadata>>();

  /** Stores facts of the listed tools, at no cost for lists without such tools. */
  learnTools(channel: Channel, { text, result }: McpReply): void {
    if (!result) return;
    const learned = this.byChannel.get(channel);
    const isSpecial = text.includes('"x-mcp-header"') || text.includes('"outputSchema"');
    if (!learned && !isSpecial) return;
    const toolMetadata = learned ?? new Map<string, ToolMetadata>();
    const list = memberText(slice(text, result), 'tools');
    if (!list?.startsWith('[')) return;
    for (const span of elements(list)) {
      const tool = slice(list, span);
      const name = tool.startsWith('{') ? memberText(tool, 'name') : undefined;
      if (!name?.startsWith('"')) continue;
      const key = JSON.parse(name) as string;
      const params = headerParamsOf(tool) ?? [];
      const wraps = isWrapped(tool);
      if (params.length === 0 && !wraps) toolMetadata.delete(key);
      else if (toolMetadata.size < LIST_ITEMS_MAX || toolMetadata.has(key))
        toolMetadata.set(key, { headerParams: params, isWrapped: wraps });
    }
    if (!learned && toolMetadata.size > 0) this.byChannel.set(channel, toolMetadata);
  }

  headerParams(channel: Channel, name: unknown): readonly HeaderParam[] {
    return this.byChannel.get(channel)?.get(String(name))?.headerParams ?? [];
  }

  isWrapped(channel: Channel, name: unknown): boolean {
    return this.byChannel.get(channel)?.get(String(name))?.isWrapped ?? false;
  }
}
