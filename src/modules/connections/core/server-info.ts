import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { isObject } from '../../../platform/text/json.js';
import { toStorableText } from '../../../platform/database/storable.js';

type Icon = NonNullable<ServerInfo['icons']>[number];

function record(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** Limits of the stored server info: a response can have 16 MB, and a list returns a hundred of them. */
const TEXT_CHARS_MAX = 2_000;
const ICON_CHARS_MAX = 32_000;
const ICONS_MAX = 8;

function getText<Name extends string>(value: Record<string, unknown>, ...names: Name[]): Partial<Record<Name, string>> {
  const members = names.flatMap((name) => {
    const text = value[name];
    if (typeof text !== 'string') return [];
    return [[name, toStorableText(text.slice(0, name === 'src' ? ICON_CHARS_MAX + 1 : TEXT_CHARS_MAX))]];
  });
  return Object.fromEntries(members) as Partial<Record<Name, string>>;
}

/**
 * Leaves out icons without a `src` or with a huge one. Before revision 2025-11-25, some servers sent `sizes` as one
 * string.
 */
function iconsOf(icons: unknown[]): Icon[] {
  return icons.slice(0, ICONS_MAX).flatMap((sentIcon) => {
    const { sizes: sent, ...members } = record(sentIcon);
    const { src, ...rest } = getText(members, 'src', 'mimeType', 'theme');
    if (src === undefined) return [];
    const list = typeof sent === 'string' ? sent.split(' ') : Array.isArray(sent) ? (sent as unknown[]) : null;
    const sizes = list?.filter((size) => typeof size === 'string').map(toStorableText);
    const icon = { src, ...rest, ...(sizes && { sizes }) };
    return JSON.stringify(icon).length > ICON_CHARS_MAX ? [] : [icon];
  });
}

/**
 * Keeps only the known fields (Spec 2.1) with their own types, in strings that Postgres accepts. Other data of an upstream could make the
 * connection unreadable.
 */
export function toStoredServerInfo(info: ServerInfo): ServerInfo {
  const members = record(info);
  return {
    name: '',
    version: '',
    ...getText(members, 'name', 'version', 'title', 'description', 'websiteUrl'),
    ...(Array.isArray(members.icons) && { icons: iconsOf(members.icons) }),
  };
}
