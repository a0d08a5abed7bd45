import type { Egress } from '../../../platform/egress/egress.js';
import { discard, follow, readWithin } from '../../../platform/egress/follow.js';
import { iconTypeOf, type IconType } from './icon-type.js';

/** Spec 4.12: the size limit of an icon. */
export const ICON_BYTES_MAX = 1024 * 1024;

const CANDIDATES_MAX = 3;
const CANDIDATE_MS_MAX = 5_000;
const REDIRECTS_MAX = 3;

/** An image and what it was found to be. */
export interface FoundIcon {
  bytes: Buffer;
  type: IconType;
}

/**
 * The first image among the icons a server names (`icons` of `serverInfo`, which may be anything): of the first three,
 * each by an http(s) or data URL, 1 MB and 5 s at most.
 *
 * @returns `too_large` when there was none, and one of them was larger; null otherwise. Never rejects: a server without
 * a picture is as good as any.
 */
export async function fetchIcon(egress: Egress, icons: unknown): Promise<FoundIcon | 'too_large' | null> {
  let found: 'too_large' | null = null;
  for (const src of sourcesOf(icons)) {
    const bytes = await read(egress, src).catch(() => null);
    const type = bytes === null || bytes === 'too_large' ? null : iconTypeOf(bytes);
    if (type !== null) return { bytes: bytes as Buffer, type };
    if (bytes === 'too_large') found = bytes;
  }
  return found;
}

function sourcesOf(icons: unknown): string[] {
  const given: unknown[] = Array.isArray(icons) ? icons : [];
  const sources = given.map((icon) => (icon as { src?: unknown } | null)?.src);
  return sources.filter((src) => typeof src === 'string').slice(0, CANDIDATES_MAX);
}

async function read(egress: Egress, src: string): Promise<Buffer | 'too_large' | null> {
  if (/^data:/i.test(src)) return readDataUrl(src);
  return readUrl(egress, src, AbortSignal.timeout(CANDIDATE_MS_MAX));
}

/** RFC 2397: `data:[type][;base64],data`. */
function readDataUrl(src: string): Buffer | 'too_large' | null {
  const comma = src.indexOf(',');
  if (comma < 0) return null;
  const data = src.slice(comma + 1);
  // Base64 takes four characters for three bytes, percent-encoding up to three for one.
  if (data.length > ICON_BYTES_MAX * 3) return 'too_large';
  const isBase64 = /;\s*base64$/i.test(src.slice(0, comma));
  const bytes = isBase64 ? Buffer.from(data, 'base64') : Buffer.from(decodeURIComponent(data), 'utf8');
  return bytes.length > ICON_BYTES_MAX ? 'too_large' : bytes;
}

async function readUrl(egress: Egress, src: string, signal: AbortSignal): Promise<Buffer | 'too_large' | null> {
  const options = { headers: { accept: 'image/*' }, signal, redirectsMax: REDIRECTS_MAX };
  const { answer } = await follow(egress, egress.check(src), options);
  if (answer.statusCode === 200) return (await readWithin(answer.body, ICON_BYTES_MAX)) ?? 'too_large';
  discard(answer.body);
  return null;
}
