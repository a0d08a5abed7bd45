/** Maximum length of a compared name: the cost grows with the product of the lengths. */
const CHARS_MAX = 64;

const NAMES_MAX = 1_000;

/**
 * Returns the name that a misspelled one most likely means: at most a third of its characters, or two for names of four or
 * more, differ (Damerau-Levenshtein distance, in any case). Null when none is that near.
 *
 * @param differencesMax a lower limit of differing characters
 */
export function nearestName(misspelt: string, names: Iterable<string>, differencesMax = Infinity): string | null {
  if (misspelt === '' || misspelt.length > CHARS_MAX) return null;
  const target = misspelt.toLowerCase();
  let best: { name: string; distance: number } | null = null;
  let namesLeft = NAMES_MAX;
  for (const name of names) {
    if ((namesLeft -= 1) < 0) break;
    if (name === misspelt || name.length > CHARS_MAX) continue;
    const length = Math.max(name.length, target.length);
    const distanceMax = Math.min(differencesMax, length < 4 ? 1 : Math.max(2, Math.floor(length / 3)));
    if (Math.abs(name.length - target.length) > distanceMax) continue;
    const distance = distanceOf(target, name.toLowerCase());
    if (distance <= distanceMax && distance < length && (best === null || distance < best.distance)) {
      best = { name, distance };
    }
  }
  return best?.name ?? null;
}

/** Returns ` Did you mean "x"?` with the nearest name; empty without one. */
export function didYouMean(misspelt: string, names: Iterable<string>): string {
  const name = nearestName(misspelt, names);
  return name === null ? '' : ` Did you mean "${name}"?`;
}

/** Insertions, deletions, substitutions and swaps of neighbours. */
function distanceOf(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      row[j] = Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (isSame ? 0 : 1));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) row[j] = Math.min(row[j], beforePrevious[j - 2] + 1);
    }
    [beforePrevious, previous] = [previous, row];
  }
  return previous[b.length];
}
