import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { isObject } from '../../../platform/text/json.js';
import { toStorableText } from '../../../platform/database/storable.js';

type Icon = NonNullable<ServerInfo['icons']>[number];

function record(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** What is kept of it at most; an answer may be 16 MB, and lists return this a hundred times. */
const TEXT_CHARS_MAX = 2_000;
const ICON_CHARS_MAX = 32_000;
const ICONS_MAX = 8;
const SIZES_MAX = 16;
const SIZE_CHARS_MAX = 32;

/** The members of these names that are texts. */
function texts<Name extends string>(value: Record<string, unknown>, ...names: Name[]): Partial<Record<Name, string>> {
  const found = names.flatMap((name) => {
    const text = value[name];
    if (typeof text !== 'string') return [];
    return [[name, toStorableText(text.slice(0, name === 'src' ? ICON_CHARS_MAX + 1 : TEXT_CHARS_MAX))]];
  });
  return Object.fromEntries(found) as Partial<Record<Name, string>>;
}

/** An icon without a `src`, or with a huge one, is none. Before revision 2025-11-25 some servers wrote `sizes` as one text. */
function iconsOf(value: unknown): Icon[] {
  const isText = (size: unknown) => typeof size === 'string';
  return (value as unknown[])
    .slice(0, ICONS_MAX)
    .map(record)
    .flatMap(({ sizes, ...icon }) => {
      const { src, ...rest } = texts(icon, 'src', 'mimeType', 'theme');
      const given = isText(sizes)
        ? sizes.slice(0, SIZES_MAX * SIZE_CHARS_MAX).split(' ')
        : Array.isArray(sizes)
          ? sizes.filter(isText)
          : undefined;
      return src === undefined || src.length > ICON_CHARS_MAX
        ? []
        : [
            {
              src,
              ...rest,
              ...(given && {
                sizes: given.slice(0, SIZES_MAX).map((size) => toStorableText(size.slice(0, SIZE_CHARS_MAX))),
              }),
            },
          ];
    });
}

/**
 * What a server said of itself, as it is stored and shown: the known fields (Spec 2.1), each only in its own type, in
 * text Postgres can hold. An upstream may send anything; none of it may make a connection unreadable.
 */
export function toStoredServerInfo(info: ServerInfo): ServerInfo {
  const given = record(info);
  return {
    name: '',
    version: '',
    ...texts(given, 'name', 'version', 'title', 'description', 'websiteUrl'),
    ...(Array.isArray(given.icons) && { icons: iconsOf(given.icons) }),
  };
}
