import { isObject } from '../../../platform/text/json-object.js';
import { rewriteMembers } from '../../protocol/json-edit.js';
import { rewriteList } from './items.js';

/** Content blocks that older revisions do not know, as text. */

const LINKS_SINCE = '2025-06-18';
const AUDIO_SINCE = '2025-03-26';

/** A list of content blocks in the words of `version`; null names the newest one. */
export function contentFor(content: string, version: string | null): string {
  if (!isNews(content, version)) return content;
  return rewriteList(content, (block) => blockFor(block, version));
}

/** The same for the messages of a prompt, each of which holds one block. */
export function messagesFor(messages: string, version: string | null): string {
  if (!isNews(messages, version)) return messages;
  return rewriteList(messages, (message) => {
    if (!message.startsWith('{')) return message;
    return rewriteMembers(message, (name, value) => (name === 'content' ? blockFor(value, version) : value));
  });
}

function isNews(text: string, version: string | null): boolean {
  if (version === null || version >= LINKS_SINCE) return false;
  return text.includes('"resource_link"') || text.includes('"audio"');
}

function blockFor(block: string, version: string | null): string {
  const value: unknown = JSON.parse(block);
  if (!isObject(value) || version === null) return block;
  if (value.type === 'resource_link' && version < LINKS_SINCE) return text(linkText(value));
  if (value.type === 'audio' && version < AUDIO_SINCE) return text(`[audio ${String(value.mimeType)}]`);
  return block;
}

function linkText({ title, name, uri, description }: Record<string, unknown>): string {
  const label = String(title ?? name ?? uri);
  return `[${label}](${String(uri)})${typeof description === 'string' ? `: ${description}` : ''}`;
}

function text(value: string): string {
  return JSON.stringify({ type: 'text', text: value });
}
