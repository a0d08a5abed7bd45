/**
 * Results of a modern upstream (2026-07-28), rewritten for clients of 2025-11-25 and older. Pure functions over JSON
 * text: members that need no change keep their bytes.
 *
 * Output schemas other than objects are wrapped as `{result: …}`, as is the output of their tools; before 2025-06-18
 * both are removed. Output that is not an object, or that the revision lacks, also becomes a text block if the tool
 * sent no text, since many old clients read nothing else. Resource links (2025-06-18) and audio (2025-03-26) become
 * text for older clients. A missing resource has the code -32002 instead of -32602.
 */
import { isObject } from '../../../platform/text/json.js';
import type { RpcError } from '../../protocol/channel.js';
import { memberText, rewriteMembers, rewriteItems, rewriteList, withMember } from '../../protocol/json-edit.js';
import { rpcCode } from '../../protocol/protocol.js';
import { metaForLegacy } from './hop.js';

export const LINKS_SINCE = '2025-06-18';
const AUDIO_SINCE = '2025-03-26';
const STRUCTURED_SINCE = '2025-06-18';

export interface LegacyReader {
  method: string;
  /** Null without a revision, which is treated as the newest. */
  version: string | null;
  /** The output schema of the tool was wrapped when listed ({@link isWrapped}), so its output is wrapped too. */
  isWrapped: boolean;
}

export function legacyResult(result: string, reader: LegacyReader): string {
  if (!result.startsWith('{')) return result;
  const { method, version } = reader;
  const inVersion = (block: string) => blockFor(block, version);
  const rewritten = rewriteMembers(result, (name, value) => {
    switch (name) {
      case 'resultType':
      case 'ttlMs':
      case 'cacheScope':
        return null;
      case '_meta':
        return metaForLegacy(value);
      case 'content':
        return method === 'tools/call' && isNews(value, version) ? rewriteList(value, inVersion) : value;
      case 'messages':
        if (method !== 'prompts/get' || !isNews(value, version)) return value;
        return rewriteList(value, (message) => {
          if (!message.startsWith('{')) return message;
          return rewriteMembers(message, (member, block) => (member === 'content' ? inVersion(block) : block));
        });
      case 'structuredContent':
        if (method !== 'tools/call') return value;
        if (isOlder(version, STRUCTURED_SINCE)) return null;
        return reader.isWrapped || !value.startsWith('{') ? `{"result":${value}}` : value;
      default:
        return value;
    }
  });
  if (method === 'tools/call') return withContent(result, rewritten, version);
  return method === 'tools/list' ? legacyTools(rewritten, version) : rewritten;
}

/** Returns the code of older revisions for a missing resource; null when the error is unchanged. */
export function legacyError(method: string, error: RpcError): RpcError | null {
  const names = isObject(error.data) && typeof error.data.uri === 'string';
  if (method !== 'resources/read' || error.code !== rpcCode.invalidParams || !names) return null;
  return { ...error, code: -32002 };
}

/** Returns true for a tool whose output schema is wrapped, since older revisions require the schema of an object. */
export function isWrapped(tool: string): boolean {
  if (!tool.includes('"outputSchema"')) return false;
  const schema = memberText(tool, 'outputSchema');
  if (!schema?.startsWith('{')) return false;
  return memberText(schema, 'type') !== '"object"';
}

/**
 * Adds structured output as text if the client could read nothing else: the output is not an object, the revision
 * has none, or the tool sent no content.
 */
function withContent(modern: string, legacy: string, version: string | null): string {
  const isMissing = !legacy.includes('"content"') || (memberText(legacy, 'content') ?? 'null') === 'null';
  const value = modern.includes('"structuredContent"') ? memberText(modern, 'structuredContent') : undefined;
  if (isMissing) return withMember(legacy, 'content', `[${value === undefined ? '' : text(value)}]`);
  if (value === undefined || (value.startsWith('{') && !isOlder(version, STRUCTURED_SINCE))) return legacy;
  return rewriteMembers(legacy, (name, content) => {
    if (name !== 'content' || !content.startsWith('[')) return content;
    const blocks = JSON.parse(content) as unknown[];
    if (blocks.some((block) => isObject(block) && block.type === 'text')) return content;
    const block = text(value);
    return blocks.length === 0 ? `[${block}]` : `${content.slice(0, -1)},${block}]`;
  });
}

function legacyTools(result: string, version: string | null): string {
  if (!result.includes('"outputSchema"')) return result;
  const isOld = isOlder(version, STRUCTURED_SINCE);
  return rewriteItems(result, 'tools', (tool) => {
    if (!isOld && !isWrapped(tool)) return tool;
    return rewriteMembers(tool, (name, value) => {
      if (name !== 'outputSchema') return value;
      return isOld ? null : wrappedSchema(value);
    });
  });
}

/**
 * Wraps a schema. References within the document are adjusted to the new position; a schema with an `$id` is a separate document and
 * remains unchanged.
 */
function wrappedSchema(schema: string): string {
  const inner =
    memberText(schema, '$id') === undefined
      ? schema.replace(/("\$(?:ref|dynamicRef)"\s*:\s*"#)(?=[/"])/g, '$1/properties/result')
      : schema;
  return `{"type":"object","properties":{"result":${inner}},"required":["result"]}`;
}

export function isOlder(version: string | null, since: string): boolean {
  return version !== null && version < since;
}

/** Returns true for content that the revision does not have. @param version null means the newest revision */
function isNews(text: string, version: string | null): boolean {
  if (version === null || version >= LINKS_SINCE) return false;
  return text.includes('"resource_link"') || text.includes('"audio"');
}

function blockFor(block: string, version: string | null): string {
  const value: unknown = JSON.parse(block);
  if (!isObject(value) || version === null) return block;
  if (value.type === 'resource_link' && version < LINKS_SINCE) {
    const { title, name, uri, description } = value;
    const after = typeof description === 'string' ? `: ${description}` : '';
    return text(`[${String(title ?? name ?? uri)}](${String(uri)})${after}`);
  }
  if (value.type === 'audio' && version < AUDIO_SINCE) return text(`[audio ${String(value.mimeType)}]`);
  return block;
}

function text(value: string): string {
  return JSON.stringify({ type: 'text', text: value });
}
