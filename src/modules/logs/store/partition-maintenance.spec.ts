import { describe, expect, it } from '@jest/globals';
import { verifies } from '../../../../test/support/verifies.js';
import { surplusOf } from './partition-maintenance.js';
import type { LogPartition } from './partitions.repository.js';
import { DAY_MS, dayOf } from './invocation-days.js';

const now = Date.parse('2026-11-20T12:00:00Z');

function partition(day: string, bytes: number, more: Partial<LogPartition> = {}): LogPartition {
  return { name: `invocations_${day}`, day, bytes, rows: 0, attached: true, detaching: false, ...more };
}

const dropped = (partitions: LogPartition[], daysMax: number, bytesMax: number) =>
  surplusOf(partitions, dayOf(now), dayOf(now - (daysMax - 1) * DAY_MS), bytesMax).map(({ day }) => day);

describe('surplusOf', () => {
  const days = ['2026-11-17', '2026-11-18', '2026-11-19', '2026-11-20', '2026-11-21'];

  it('returns days over the maximum age: 2 days are today and yesterday', () => {
    const partitions = days.map((day) => partition(day, 1));
    expect(dropped(partitions, 2, 100)).toEqual(['2026-11-17', '2026-11-18']);
    expect(dropped(partitions, 1, 100)).toEqual(['2026-11-17', '2026-11-18', '2026-11-19']);
  });

  verifies('log-ingestion:retention', 'returns the oldest days until the rest fits, and never today', () => {
    const partitions = days.map((day) => partition(day, 10));
    expect(dropped(partitions, 14, 50)).toEqual([]);
    expect(dropped(partitions, 14, 35)).toEqual(['2026-11-17', '2026-11-18']);
    expect(dropped(partitions, 14, 1)).toEqual(['2026-11-17', '2026-11-18', '2026-11-19']);
  });

  it('returns partitions whose removal was interrupted', () => {
    const partitions = [
      partition('2026-11-18', 1, { attached: false }),
      partition('2026-11-19', 1, { detaching: true }),
    ];
    expect(dropped([...partitions, partition('2026-11-20', 1)], 14, 100)).toEqual(['2026-11-18', '2026-11-19']);
  });
});
