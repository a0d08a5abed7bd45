import { expect, it, jest } from '@jest/globals';
import { timeOf, timesIn } from './times.js';

const now = new Date('2026-07-14T12:00:00Z');

it('renders the hour of today and the date of other days, in the zone', () => {
  const textIn = (iso: string, zone?: string) => String(timeOf(iso, now, zone)).replace(/<[^>]+>/g, '');
  expect(textIn('2026-07-14T09:05:00Z')).toBe('09:05 UTC');
  expect(textIn('2026-07-13T09:05:00Z')).toBe('13 Jul 2026, 09:05 UTC');
  expect(textIn('2026-07-13T22:30:00Z', 'Europe/Berlin')).toMatch(/^00:30 /);
  expect(textIn('2026-01-13T22:30:00Z', 'Europe/Berlin')).toMatch(/^13 Jan 2026, 23:30 /);
});

it('creates the formats of a zone once: they hold memory outside the heap', () => {
  const created = jest.spyOn(Intl, 'DateTimeFormat');
  const page = Array.from({ length: 100 }, (_, i) => timeOf(`2026-07-14T09:${10 + (i % 50)}:00Z`)).join('');
  expect(timesIn('Asia/Kathmandu', page)).toContain('14:55');
  expect(created.mock.calls.length).toBeLessThanOrEqual(4);
  created.mockRestore();
});
