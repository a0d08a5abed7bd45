import { DAY_MS, dayOf, HOUR_MS, leastIdAt } from './invocation-days.js';

/** A part of the log one statement, or one branch of a UNION ALL, reads: `day = … AND id >= fromId AND id < toId`. */
export interface SearchSlice {
  day: string;
  fromId: string;
  toId: string;
}

/**
 * The parts in which a time range is searched for a word, newest first. A day with an index over all of it is one part,
 * any other 24: each past hour of the open day has an index of its own, which Postgres only takes for a condition that
 * lies inside that hour. Ids and days are made here and safe to write into a statement, as that needs.
 *
 * @param indexedDays days with an index over all of them
 */
export function searchSlices(from: Date, to: Date, indexedDays: ReadonlySet<string>): SearchSlice[] {
  const slices: SearchSlice[] = [];
  const [first, end] = [from.getTime(), to.getTime()];
  for (let start = Date.parse(dayOf(first)); start < end; start += DAY_MS) {
    const day = dayOf(start);
    const step = indexedDays.has(day) ? DAY_MS : HOUR_MS;
    for (let part = start; part < start + DAY_MS; part += step) {
      const [low, high] = [Math.max(part, first), Math.min(part + step, end)];
      if (low < high) slices.push({ day, fromId: leastIdAt(low), toId: leastIdAt(high) });
    }
  }
  return slices.reverse();
}
