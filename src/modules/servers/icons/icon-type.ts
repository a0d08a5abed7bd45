/** The images a server's icon may be (Spec 4.12). */
export const iconTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'] as const;
export type IconType = (typeof iconTypes)[number];

/** What is looked through for the first tag of an SVG: more than any prolog needs. */
const PROLOG_BYTES_MAX = 8 * 1024;

/** What may stand in front of the first tag of an XML document, one piece at a time. */
const PROLOG_PIECE = /^(?:\s+|<\?[^>]*\?>|<!--[\s\S]*?-->|<!DOCTYPE\s+svg\b[^>[]*>)/;

/**
 * What an image really is, by its first bytes; null for everything else. What its sender called it does not count: a
 * page of HTML under the name of a picture would run in the browser of whoever looks at it.
 */
export function iconTypeOf(bytes: Buffer): IconType | null {
  const starts = (text: string, at = 0) => bytes.subarray(at, at + text.length).equals(Buffer.from(text, 'latin1'));
  if (starts('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (starts('\xff\xd8\xff')) return 'image/jpeg';
  if (starts('GIF87a') || starts('GIF89a')) return 'image/gif';
  if (starts('RIFF') && starts('WEBP', 8)) return 'image/webp';
  return isSvg(bytes) ? 'image/svg+xml' : null;
}

/** SVG in UTF-8: prolog, comments, then the tag `svg`, perhaps with a prefix. */
function isSvg(bytes: Buffer): boolean {
  let rest = bytes
    .subarray(0, PROLOG_BYTES_MAX)
    .toString('utf8')
    .replace(/^\ufeff/, '');
  for (let piece = PROLOG_PIECE.exec(rest); piece; piece = PROLOG_PIECE.exec(rest)) rest = rest.slice(piece[0].length);
  return /^<(?:[a-z]+:)?svg[\s/>]/.test(rest);
}
