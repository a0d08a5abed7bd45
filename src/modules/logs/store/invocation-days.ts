import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';

export const DAY_MS = 24 * 60 * 60_000;
export const HOUR_MS = 60 * 60_000;

/** The range of a search index, in milliseconds since 1970, end exclusive: a whole day or a part of one. */
export interface IndexedRange {
  from: number;
  to: number;
}

/** A range that one branch of a UNION ALL reads: `day = … AND id >= fromId AND id < toId`. */
interface SearchRange {
  day: string;
  fromId: string;
  toId: string;
}

/**
 * SQL for the exponent of the power of two of a duration in milliseconds; a search index finds long durations by it.
 */
export const DURATION_POWER = `floor(ln(greatest(wall_ms, 1)::float8) / ln(2))::int`;

/** The last result of {@link dayOf}: most rows of a batch are of one day, and formatting takes 1.3 µs. */
let lastDay = { number: NaN, text: '' };

/**
 * Returns the day in UTC, as `YYYY-MM-DD`, which is also the key of a partition. @throws RangeError for an invalid time
 */
export function dayOf(time: Date | number): string {
  const number = Math.floor(Number(time) / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: new Date(number * DAY_MS).toISOString().slice(0, 10) };
  return lastDay.text;
}

/** Returns the day whose partition contains an invocation. @param id a UUID of version 7 */
export function dayOfId(id: string): string {
  return dayOf(timeOfUuidV7(id));
}

export function partitionOf(day: string): string {
  return `invocations_${day.replaceAll('-', '')}`;
}

/** Returns the smallest id of a time: the bound for `id >=`, and as the end of a range for `id <`. */
export function leastIdAt(time: Date | number): string {
  const hex = Number(time).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/**
 * Splits a time range for a search, newest first: one range per search index and per gap between them, because Postgres
 * uses a partial index only for a condition within it. Days and ids are computed here, so they are safe in a statement.
 */
export function searchRanges(from: Date, to: Date, indexed: readonly IndexedRange[]): SearchRange[] {
  const ranges: SearchRange[] = [];
  const [first, end] = [from.getTime(), to.getTime()];
  for (let start = Date.parse(dayOf(first)); start < end; start += DAY_MS) {
    for (const range of partsOf(start, indexed)) {
      const [low, high] = [Math.max(range.from, first), Math.min(range.to, end)];
      if (low < high) ranges.push({ day: dayOf(start), fromId: leastIdAt(low), toId: leastIdAt(high) });
    }
  }
  return ranges.reverse();
}

/** Returns the ranges of a day, earliest first. If indexes overlap, the one that ends later is used. */
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
