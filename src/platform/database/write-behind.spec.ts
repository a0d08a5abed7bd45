import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import { until } from '../../../test/support/until.js';
import { bufferStats, WriteBehind, type BufferStats } from './write-behind.js';

/** The batches that were written, in order. */
function recorder() {
  const batches: Record<string, number>[] = [];
  let failures = 0;
  const behind = new WriteBehind<string, number>('bookkeeping', async (batch) => {
    if (failures > 0) {
      failures -= 1;
      throw new Error('the database is away');
    }
    batches.push(Object.fromEntries(batch));
  });
  return { batches, behind, failNext: (times = 1) => (failures = times) };
}

const lines: unknown[] = [];
const log = (message: unknown) => void lines.push(message);

beforeEach(() => {
  lines.length = 0;
  Logger.overrideLogger({ log, error: log, warn: log, debug: log, verbose: log, fatal: log } satisfies LoggerService);
});
afterEach(() => Logger.overrideLogger(false));

describe('WriteBehind', () => {
  it('writes the latest value of each key once', async () => {
    const { behind, batches } = recorder();
    behind.set('a', 1);
    behind.set('b', 2);
    behind.set('a', 3);
    expect(behind.get('a')).toBe(3);
    await behind.flush();
    await behind.flush();
    expect(batches).toEqual([{ a: 3, b: 2 }]);
    expect(behind.get('a')).toBeUndefined();
  });

  it('keeps values whose write failed and tries again without a call', async () => {
    const { behind, batches, failNext } = recorder();
    failNext(2);
    behind.set('a', 1);
    await behind.flush();
    await behind.flush();
    expect(batches).toEqual([]);
    expect(lines).toMatchObject([
      { msg: '1 updates wait for the database' },
      { msg: '1 updates wait for the database' },
    ]);
    await until(() => batches.length > 0, 'it is written');
    expect(batches).toEqual([{ a: 1 }]);
  });

  it('writes waiting values when the service stops', async () => {
    const { behind, batches } = recorder();
    behind.set('a', 1);
    await behind.onApplicationShutdown();
    expect(batches).toEqual([{ a: 1 }]);
  });

  it('counts values as dropped whose last write at the end of the process failed', async () => {
    const { behind, batches, failNext } = recorder();
    const before = behind.dropped;
    failNext();
    behind.set('a', 1);
    await behind.onApplicationShutdown();
    expect(lines).toMatchObject([{ msg: '1 updates are lost: the process is stopping' }]);
    expect([batches, behind.size, behind.dropped - before]).toEqual([[], 0, 1]);
  });

  it('writes a value that was set during a failed write instead of the failed one', async () => {
    const batches: [string, number][][] = [];
    let fail: (error: Error) => void = () => undefined;
    const behind = new WriteBehind<string, number>('bookkeeping', (batch) => {
      batches.push([...batch]);
      return batches.length > 1 ? Promise.resolve() : new Promise<void>((_, reject) => (fail = reject));
    });
    behind.set('a', 1);
    behind.set('b', 1);
    const first = behind.flush();
    await Promise.resolve();
    behind.set('a', 2);
    fail(new Error('the database is away'));
    await first;
    await behind.flush();
    expect(batches.map((batch) => batch.toSorted())).toEqual([
      [
        ['a', 1],
        ['b', 1],
      ],
      [
        ['a', 2],
        ['b', 1],
      ],
    ]);
  });

  it('writes one batch after another, never two concurrently', async () => {
    let running = 0;
    let most = 0;
    const behind = new WriteBehind<string, number>('bookkeeping', async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    });
    const flushes: Promise<void>[] = [];
    for (let i = 0; i < 5; i += 1) {
      behind.set(`k${i}`, i);
      flushes.push(behind.flush());
    }
    await Promise.all(flushes);
    expect(most).toBe(1);
  });

  it('the metrics have the waiting values of each name and all values dropped since the start', async () => {
    const { behind } = recorder();
    const other = recorder().behind;
    const stats = () => bufferStats().find(({ name }) => name === 'bookkeeping') as BufferStats;
    const before = stats();
    for (let i = 0; i < 50_002; i += 1) behind.set(`k${i}`, i);
    other.set('a', 1);
    expect(stats().waiting - before.waiting).toBe(50_001);
    await behind.flush();
    expect(stats().dropped - before.dropped).toBe(2);
    await Promise.all([behind, other].map((one) => one.onApplicationShutdown()));
    expect(stats()).toEqual({ ...before, dropped: before.dropped + 2 });
  });

  it('holds 50,000 keys while the database is unavailable, counts dropped ones, and still updates those it holds', async () => {
    const { behind, batches, failNext } = recorder();
    failNext();
    for (let i = 0; i < 50_003; i += 1) behind.set(`k${i}`, i);
    behind.set('k7', 70);
    await behind.flush();
    behind.set('late', 1);
    await behind.flush();
    expect(Object.keys(batches[0] ?? {})).toHaveLength(50_000);
    expect(batches[0]).toMatchObject({ k0: 0, k7: 70, k49999: 49_999 });
    expect(batches[0]).not.toHaveProperty('late');
    expect(lines.filter((line) => typeof line === 'string')).toEqual([
      '3 updates were dropped: too many were waiting',
      '1 updates were dropped: too many were waiting',
    ]);
    behind.set('later', 1);
    await behind.flush();
    expect(batches[1]).toEqual({ later: 1 });
  });

  it('counts the values of a failed write that find no room as dropped', async () => {
    let fail: (error: Error) => void = () => undefined;
    const behind = new WriteBehind<string, number>('crowded', () => {
      return new Promise<void>((_, reject) => (fail = reject));
    });
    for (const key of ['a', 'b']) behind.set(key, 1);
    const written = behind.flush();
    await Promise.resolve();
    for (let i = 0; i < 49_999; i += 1) behind.set(`row ${i}`, i);
    fail(new Error('the database is away'));
    await written;
    const stats = bufferStats().find(({ name }) => name === 'crowded');
    expect(stats).toEqual({ name: 'crowded', waiting: 50_000, dropped: 1 });
    expect([behind.get('a'), behind.get('b')]).toEqual([1, undefined]);
    for (let i = 0; i < 49_999; i += 1) behind.delete(`row ${i}`);
    behind.delete('a');
  });

  describe('with values of a total weight of 10', () => {
    const weighed = (write: (batch: Map<string, string>) => Promise<void>) =>
      new WriteBehind<string, string>('texts', write, { of: (text) => text.length, max: 10 });
    const dropped = () => lines.filter((line) => typeof line === 'string');

    it('drops and counts values above the weight, also after some were replaced, deleted or put back', async () => {
      const batches: Record<string, string>[] = [];
      let failures = 1;
      const behind = weighed((batch) => {
        batches.push(Object.fromEntries(batch));
        return failures-- > 0 ? Promise.reject(new Error('the database is away')) : Promise.resolve();
      });
      behind.set('a', '1234');
      behind.set('a', '123456');
      behind.set('b', '12345');
      behind.set('c', '1234');
      await behind.flush();
      behind.set('a', '1');
      behind.delete('c');
      behind.set('d', '123456789');
      behind.set('e', '1');
      await behind.flush();
      expect(batches).toEqual([
        { a: '123456', c: '1234' },
        { a: '1', d: '123456789' },
      ]);
      expect(dropped()).toEqual([
        '1 updates were dropped: too many were waiting',
        '1 updates were dropped: too many were waiting',
      ]);
      behind.set('f', '1234567890');
      expect(behind.get('f')).toBe('1234567890');
    });

    it('counts the weight of values until they are written', async () => {
      let finish: (error?: Error) => void = () => undefined;
      const behind = weighed(() => new Promise((resolve, reject) => (finish = (e) => (e ? reject(e) : resolve()))));
      behind.set('a', '123456');
      behind.set('b', '1234');
      const failing = behind.flush();
      await Promise.resolve();
      behind.set('c', '1');
      behind.set('a', '');
      expect([behind.get('c'), behind.get('a')]).toEqual([undefined, '']);
      finish(new Error('the database is away'));
      await failing;
      expect([behind.get('a'), behind.get('b')]).toEqual(['', '1234']);
      behind.set('d', '1234567');
      behind.set('d', '123456');
      const writing = behind.flush();
      await Promise.resolve();
      finish();
      await writing;
      behind.set('e', '1234567890');
      expect(behind.get('e')).toBe('1234567890');
    });
  });

  it('merges values of one key, those of a failed write under newer ones, and drops those of further keys', async () => {
    const batches: Record<string, string>[] = [];
    let fail: (error: Error) => void = () => undefined;
    const write = (batch: Map<string, string>) => {
      batches.push(Object.fromEntries(batch));
      return batches.length > 1 ? Promise.resolve() : new Promise<void>((_, reject) => (fail = reject));
    };
    const merge = (newer: string, older: string) => older + newer;
    const behind = new WriteBehind<string, string>('merged', write, { rowsMax: 2, merge });
    for (const [key, value] of ['a1', 'b1', 'c1', 'a2']) behind.set(key, value);
    const failing = behind.flush();
    await Promise.resolve();
    behind.set('a', '3');
    fail(new Error('the database is away'));
    await failing;
    await behind.flush();
    expect(batches).toEqual([
      { a: '12', b: '1' },
      { a: '123', b: '1' },
    ]);
    expect(behind.dropped).toBe(1);
  });

  it('does not put back values that were deleted during their write', async () => {
    const batches: Record<string, number>[] = [];
    let fail: (error: Error) => void = () => undefined;
    const behind = new WriteBehind<string, number>('bookkeeping', (batch) => {
      batches.push(Object.fromEntries(batch));
      return batches.length > 1 ? Promise.resolve() : new Promise((_, reject) => (fail = reject));
    });
    behind.set('gone', 1);
    behind.set('stays', 2);
    const failing = behind.flush();
    await Promise.resolve();
    behind.delete('gone');
    fail(new Error('the database is away'));
    await failing;
    await behind.flush();
    expect(batches).toEqual([{ gone: 1, stays: 2 }, { stays: 2 }]);
  });
});
