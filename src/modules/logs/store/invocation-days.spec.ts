import { describe, expect, it } from '@jest/globals';
import { HOUR_MS, leastIdAt, searchRanges, type IndexedRange } from './invocation-days.js';

const start = Date.parse('2026-11-20');
const hour = (n: number) => start + n * HOUR_MS;
const range = (from: number, to: number): IndexedRange => ({ from: hour(from), to: hour(to) });

/** The parts in hours of the 20th. */
function parts(from: number, to: number, indexed: IndexedRange[]) {
  return searchRanges(new Date(hour(from)), new Date(hour(to)), indexed).map(({ day, fromId, toId }) => {
    const hours = [fromId, toId].map((id) => (parseInt(id.slice(0, 8) + id.slice(9, 13), 16) - start) / HOUR_MS);
    return [day.slice(8), ...hours];
  });
}

describe('searchRanges', () => {
  it('reads each index and each gap separately, newest first', () => {
    expect(parts(0, 24, [range(8, 12), range(2, 8)])).toEqual([
      ['20', 12, 24],
      ['20', 8, 12],
      ['20', 2, 8],
      ['20', 0, 2],
    ]);
  });

  it('reads a day in one range when its index covers all of it', () => {
    expect(parts(0, 24, [range(2, 8), range(0, 24)])).toEqual([['20', 0, 24]]);
  });

  it('keeps within the given time, day by day', () => {
    expect(parts(-3, 5, [range(-24, 0), range(2, 8)])).toEqual([
      ['20', 2, 5],
      ['20', 0, 2],
      ['19', -3, 0],
    ]);
    expect(parts(5, 5, [])).toEqual([]);
  });

  it('omits nothing if indexes overlap', () => {
    expect(parts(0, 24, [range(2, 8), range(6, 9), range(2, 3), range(3, 4)])).toEqual([
      ['20', 9, 24],
      ['20', 8, 9],
      ['20', 2, 8],
      ['20', 0, 2],
    ]);
  });

  it('returns bounds that contain the ids of the time', () => {
    expect(leastIdAt(0x0123456789ab)).toBe('01234567-89ab-0000-0000-000000000000');
  });
});
