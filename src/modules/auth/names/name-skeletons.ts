import { lazyRequire } from '../../../platform/lazy-require.js';

const mapConfusables = lazyRequire<(text: string) => string>('unhomoglyph');

function toSkeleton(text: string): string {
  const visible = text.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return mapConfusables()(visible).normalize('NFD');
}

/**
 * Returns the skeletons of a name, ignoring case: of its letters, and of their display, in which "I" looks like "l" but not like "i". Two
 * names look alike if they share a skeleton.
 */
export function toSkeletons(name: string): [letters: string, display: string] {
  const text = name.trim().replace(/\s+/gu, ' ');
  // Full case folding, which also makes "ß" equal to "ss".
  const folded = text.normalize('NFKC').toUpperCase().toLowerCase();
  return [toSkeleton(folded), toSkeleton(toSkeleton(text).toLowerCase())];
}
