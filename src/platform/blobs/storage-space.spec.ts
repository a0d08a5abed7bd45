import { expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { hasLogRoom } from './storage-space.js';

verifies('log-ingestion:full-disk', 'keeps 200 MB for Postgres, or 3 % of the disk up to 2 GB', () => {
  const room = (freeMb: number, diskGb: number) =>
    hasLogRoom({ bavail: freeMb * 1_000, blocks: diskGb * 1_000_000, bsize: 1_000 });
  expect([room(199, 1), room(200, 1)]).toEqual([false, true]);
  expect([room(1_499, 50), room(1_500, 50)]).toEqual([false, true]);
  expect([room(1_999, 1_000), room(2_000, 1_000)]).toEqual([false, true]);
});
