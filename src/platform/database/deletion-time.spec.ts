import { afterEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { verifies } from '../../../test/support/verifies.js';
import { deletionTime } from './deletion-time.js';

/** A database whose clock is ahead of this process's by so many milliseconds. */
const databaseAhead = (ms: number) => ({ query: () => Promise.resolve([{ now: String(Date.now() + ms) }]) });

afterEach(() => void jest.restoreAllMocks());

verifies('delete:two-clocks', 'takes the earlier of both clocks, and none while they differ by over 15 s', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const before = Date.now();
  const behind = await deletionTime(databaseAhead(-10_000));
  expect(Number(behind)).toBeLessThan(before - 9_000);
  expect(Number(await deletionTime(databaseAhead(10_000)))).toBeLessThanOrEqual(Date.now());
  expect(warn).not.toHaveBeenCalled();
  const YEAR_MS = 365 * 86_400_000;
  expect(await deletionTime(databaseAhead(YEAR_MS))).toBeNull();
  expect(await deletionTime(databaseAhead(-YEAR_MS))).toBeNull();
  expect(warn.mock.calls).toEqual([
    ['the clock of this process is 31536000 s behind the database: nothing is deleted by age until both are set right'],
  ]);
});

it('warns again after the clocks have agreed', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  await deletionTime(databaseAhead(0));
  await deletionTime(databaseAhead(20_000));
  expect(warn).toHaveBeenCalledTimes(1);
});
