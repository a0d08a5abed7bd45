/**
 * Icons of servers: `serverInfo.icons` of a scan, or a URL of the owner (Spec 4.12).
 *
 * http(s) and data URLs are read through the egress policy, with 1 MB, 5 s and 3 redirects. At most eight of the icons
 * that a server names are tried within 10 s: PNG before others, those with sizes before those without. The type is
 * detected from the bytes, never from the name or the header: PNG, JPEG, GIF, WebP, an SVG whose first tag is `<svg`
 * after at most 4 KB of comments and a plain doctype, or the largest PNG among the first 32 entries of an ICO.
 */
import type { IncomingMessage } from 'node:http';
import { InvalidInputError, TooLargeError } from '../../../platform/errors/domain-error.js';
import type { Egress } from '../../../platform/egress/egress.js';
import { discard, follow, readWithin } from '../../../platform/egress/follow.js';
import { parseUrl } from '../../../config/parse-url.js';
import { readMultipart } from '../../../platform/http/body/multipart.js';

export const ICON_BYTES_MAX = 1024 * 1024;

const FETCH_MS_MAX = 5_000;

/** Maximum number of icons of one server that are tried, and the time for all of them. */
const TRIED_MAX = 8;
const TRIED_MS_MAX = 10_000;
const REDIRECTS_MAX = 3;

/** Returns the error for an icon over the size limit, uploaded or the only one the server names (Spec 4.12). */
export const iconTooLarge = () => new TooLargeError('File too large');

/** Types of icons (Spec 4.12). */
export const iconTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'] as const;

type IconType = (typeof iconTypes)[number];

const ENTRIES_MAX = 32;

const PROLOG_BYTES_MAX = 4 * 1024;

const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

const PROLOG_PIECE = /^(?:\s+|<\?[^>]*\?>|<!--[\s\S]*?-->|<!DOCTYPE\s+svg\b[^>[]*>)/;

export interface FoundIcon {
  bytes: Buffer;
  type: IconType;
}

/** @returns `too_large` if the image is larger than 1 MB; null without an image */
export async function fetchIcon(
  egress: Egress,
  src: string,
  timeoutMs = FETCH_MS_MAX,
): Promise<FoundIcon | 'too_large' | null> {
  const read = await (/^data:/i.test(src) ? readDataUrl(src) : readUrl(egress, src, timeoutMs)).catch(() => null);
  if (read === null || read === 'too_large') return read;
  const bytes = pngWithin(read) ?? read;
  const type = iconTypeOf(bytes);
  return type && { bytes, type };
}

/**
 * Tries the icons in order of preference.
 *
 * @param base address of the MCP server, to resolve relative addresses; null without one
 * @returns `none` if the server names no icon; `too_large` if all images are; null if no image is available now
 */
export async function fetchFirstIcon(
  egress: Egress,
  icons: unknown,
  base: string | null,
): Promise<FoundIcon | 'too_large' | 'none' | null> {
  const candidates = (Array.isArray(icons) ? icons : []).flatMap((icon: unknown) => {
    const { src, mimeType, sizes } = (icon ?? {}) as { src?: unknown; mimeType?: unknown; sizes?: unknown };
    if (typeof src !== 'string') return [];
    const isPng = mimeType === 'image/png' || /\.png(?:[?#]|$)|^data:image\/png/i.test(src);
    return [{ src, rank: Number(isPng) * 2 + Number(sizes !== undefined && sizes !== null) }];
  });
  if (candidates.length === 0) return 'none';
  const until = Date.now() + TRIED_MS_MAX;
  const timeLeft = () => until - Date.now();
  let failure: 'too_large' | null = null;
  for (const { src } of candidates.sort((a, b) => b.rank - a.rank).slice(0, TRIED_MAX)) {
    const address = /^data:/i.test(src) ? src : parseUrl(src, base ?? undefined)?.href;
    if (address === undefined || timeLeft() <= 1) continue;
    const icon = await fetchIcon(egress, address, Math.min(FETCH_MS_MAX, timeLeft()));
    if (icon !== null && icon !== 'too_large') return icon;
    failure ??= icon;
  }
  return failure;
}

/**
 * Reads only the first entries, and only those that overlap no others. Null for other bytes, and for an ICO of bitmaps.
 */
function pngWithin(bytes: Buffer): Buffer | null {
  if (bytes.length < 6 || bytes.readUInt32LE(0) !== 0x10000) return null;
  let largest: Buffer | null = null;
  let end = 0;
  const ranges = Array.from({ length: Math.min(bytes.readUInt16LE(4), ENTRIES_MAX) }, (_, at) => 6 + at * 16)
    .filter((entry) => entry + 16 <= bytes.length)
    .map((entry) => ({ from: bytes.readUInt32LE(entry + 12), length: bytes.readUInt32LE(entry + 8) }))
    .sort((a, b) => a.from - b.from);
  for (const { from, length } of ranges) {
    if (from < end || from + length > bytes.length) continue;
    end = from + length;
    const image = bytes.subarray(from, end);
    if (isPng(image) && image.length > (largest?.length ?? 0)) largest = image;
  }
  return largest;
}

/** Reads `data:[type][;base64],data` (RFC 2397). */
async function readDataUrl(src: string): Promise<Buffer | 'too_large' | null> {
  const comma = src.indexOf(',');
  if (comma < 0) return null;
  const data = src.slice(comma + 1);
  // Base64 takes four characters for three bytes, percent-encoding up to three for one.
  if (data.length > ICON_BYTES_MAX * 3) return 'too_large';
  const isBase64 = /;\s*base64$/i.test(src.slice(0, comma));
  const bytes = isBase64 ? Buffer.from(data, 'base64') : Buffer.from(percentDecoded(data), 'utf8');
  return bytes.length > ICON_BYTES_MAX ? 'too_large' : bytes;
}

/** Decodes a string; unchanged if a bare `%` makes it invalid. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function readUrl(egress: Egress, src: string, timeoutMs: number): Promise<Buffer | 'too_large' | null> {
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { headers: { accept: 'image/*' }, signal, redirectsMax: REDIRECTS_MAX };
  const { answer } = await follow(egress, egress.check(src), options);
  if (answer.statusCode === 200) return (await readWithin(answer.body, ICON_BYTES_MAX)) ?? 'too_large';
  discard(answer.body);
  return null;
}

function isPng(bytes: Buffer): boolean {
  return bytes.subarray(0, PNG.length).equals(PNG);
}

/**
 * Returns null for anything but an image. Ignores the declared type: an HTML page declared as an image would run in the
 * viewer's browser.
 */
export function iconTypeOf(bytes: Buffer): IconType | null {
  const starts = (text: string, at = 0) => bytes.subarray(at, at + text.length).equals(Buffer.from(text, 'latin1'));
  if (isPng(bytes)) return 'image/png';
  if (starts('\xff\xd8\xff')) return 'image/jpeg';
  if (starts('GIF87a') || starts('GIF89a')) return 'image/gif';
  if (starts('RIFF') && starts('WEBP', 8)) return 'image/webp';
  // SVG in UTF-8: prolog, comments, then the tag `svg`, possibly with a prefix.
  let rest = bytes.toString('utf8', 0, PROLOG_BYTES_MAX).replace(/^\ufeff/, '');
  for (let piece = PROLOG_PIECE.exec(rest); piece; piece = PROLOG_PIECE.exec(rest)) rest = rest.slice(piece[0].length);
  return /^<(?:[a-z]+:)?svg[\s/>]/.test(rest) ? 'image/svg+xml' : null;
}

/**
 * Reads the uploaded icon, from a part of any name.
 *
 * @throws TooLargeError over 1 MB; InvalidInputError when the form does not have one file, or the file is not an image
 */
export async function readUploadedIcon(request: IncomingMessage): Promise<FoundIcon> {
  let count = 0;
  const { files } = await readMultipart(request, {
    fields: {},
    files: ['*'],
    take: async (_name, file) => {
      count += 1;
      if (count > 1) throw new InvalidInputError('The form takes one image');
      const bytes = await readWithin(file, ICON_BYTES_MAX);
      if (!bytes) throw iconTooLarge();
      return bytes;
    },
  });
  const [bytes] = Object.values(files);
  if (!bytes) throw new InvalidInputError('The form must hold the image as a file');
  const type = iconTypeOf(bytes);
  if (type === null) throw new InvalidInputError('The file is not a PNG, JPEG, GIF, WebP or SVG image');
  return { bytes, type };
}
