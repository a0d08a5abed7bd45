import { DAY_MS, dayOf, leastIdAt } from './invocation-days.js';

/** What an index of search covers, in milliseconds since 1970, end exclusive: a whole day or a part of one. */
export interface IndexedRange {
  from: number;
  to: number;
}

/** A part of the log that one statement, or one branch of a UNION ALL, reads: `day = … AND id >= fromId AND id < toId`. */
export interface SearchRange {
  day: string;
  fromId: string;
  toId: string;
}

/**
 * The parts in which a time range is searched for a word, newest first: each index, and each gap between them, on its own,
 * because Postgres takes an index over a part of a day only for a condition that lies inside it. Ids and days are made
 * here and safe to write into a statement, as that needs.
 */
export function searchRanges(from: Date, to: Date, indexed: readonly IndexedRange[]): SearchRange[] {
  const slices: SearchRange[] = [];
  const [first, end] = [from.getTime(), to.getTime()];
  for (let start = Date.parse(dayOf(first)); start < end; start += DAY_MS) {
    for (const range of partsOf(start, indexed)) {
      const [low, high] = [Math.max(range.from, first), Math.min(range.to, end)];
      if (low < high) slices.push({ day: dayOf(start), fromId: leastIdAt(low), toId: leastIdAt(high) });
    }
  }
  return slices.reverse();
}

/** A day as its indexes cut it, the earliest part first. Of those that overlap the one that reaches further is read. */
function partsOf(start: number, indexed: readonly IndexedRange[]): IndexedRange[] {
  const end = start + DAY_MS;
  const within = indexed.filter(({ from, to }) => from >= start && to <= end);
  const parts: IndexedRange[] = [];
  for (let reached = start; reached < end; reached = parts[parts.length - 1].to) {
    const covering = within.filter(({ from, to }) => from <= reached && to > reached).map(({ to }) => to);
    const later = within.map(({ from }) => from).filter((from) => from > reached);
    parts.push({ from: reached, to: covering.length > 0 ? Math.max(...covering) : Math.min(end, ...later) });
  }
  return parts;
}
