import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { trimSessions, watchSessions } from './session-disk.js';

describe('the disk of sessions', () => {
  let folder: string;
  let inside: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-disk-'));
    inside = path.join(folder, 'key-McpSession');
    await mkdir(inside);
    await writeFile(path.join(inside, 'metadata.sqlite'), 'm');
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Three files, last used this many seconds after the first. */
  const session = async (digit: string, seconds: number) => {
    for (const end of ['.sqlite', '.sqlite-wal', '.sqlite-shm']) {
      const file = path.join(inside, digit.repeat(64) + end);
      await writeFile(file, 'x'.repeat(8_192));
      await utimes(file, 1_000 + seconds, 1_000 + seconds);
    }
  };
  const left = async () => [...new Set((await readdir(inside)).map((name) => name[0]))].sort();

  it('is not changed while it is within its limits', async () => {
    await session('a', 1);
    await trimSessions(folder, { bytes: 1_000_000, files: 10 });
    expect(await left()).toEqual(['a', 'm']);
  });

  it('above its limit loses the least recently used sessions, down to half of the limit', async () => {
    for (const [index, digit] of ['b', 'a', 'd', 'c'].entries()) await session(digit, index);
    await trimSessions(folder, { bytes: 65_536, files: 100 });
    expect(await left()).toEqual(['c', 'm']);
    for (const digit of ['1', '2', '3', '4']) await session(digit, 10 + Number(digit));
    await trimSessions(folder, { bytes: Infinity, files: 14 });
    expect(await left()).toEqual(['3', '4', 'm'].sort());
  });

  it('is checked while a program runs, until it is above the limit', async () => {
    let calls = 0;
    const limits = { bytes: 20_000, files: 100 };
    const stop = watchSessions(folder, () => (calls += 1), { limits, everyMs: 5 });
    await session('a', 1);
    await until(() => calls === 1, 'it was too much');
    stop();
  });
});
