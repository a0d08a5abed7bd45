import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { uuidV7 } from '../../../platform/database/uuid-v7.js';
import { until } from '../../../../test/support/until.js';
import { verifies } from '../../../../test/support/verifies.js';
import type { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationBuffer, WAITING_CHARS_MAX } from './invocation-buffer.js';
import type { ConnectionCall, Invocation } from '../invocation.types.js';
import { InvocationsService } from './invocations.service.js';
import type { PubSub } from '../../../platform/queue/pub-sub.js';
import type { InvocationStore } from '../store/invocation-store.js';
import type { StorageSpace } from '../../../platform/blobs/storage-space.js';

const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

function invocation(more: Partial<Invocation> = {}): Invocation {
  return {
    id: uuidV7(),
    serverId: idOf(1),
    releaseId: null,
    at: Date.now(),
    method: 'POST',
    url: '/run/acme/weather/mcp',
    rpcMethod: 'tools/call',
    toolName: 'echo',
    status: 200,
    outcome: 'ok',
    cpuMs: 0,
    wallMs: 3,
    lines: [],
    exceptions: [],
    ...more,
  };
}

const noMetrics = { gauge: () => undefined, counter: () => undefined };

/** A service on a store that does what it is told, and the batches that the store was given. */
function on(store: { keep?: () => Promise<void>; keepCalls?: () => Promise<void> }) {
  const jobs: { job: number; rows: Invocation[] }[] = [];
  const calls: ConnectionCall[] = [];
  const whole = {
    store: (rows: Invocation[], job: number) =>
      (store.keep ?? (() => Promise.resolve()))().finally(() => jobs.push({ job, rows })),
    keepCalls: (rows: ConnectionCall[]) =>
      (store.keepCalls ?? (() => Promise.resolve()))().finally(() => calls.push(...rows)),
  } as unknown as InvocationStore;
  const pubSub = { publish: () => undefined } as unknown as PubSub;
  const space = { requireLogRoom: () => Promise.resolve() } as unknown as StorageSpace;
  return { service: new InvocationsService(whole, pubSub, space, noMetrics as unknown as Metrics), jobs, calls };
}

const never = () => new Promise<void>(() => undefined);

beforeAll(() => Logger.overrideLogger(false));

describe('InvocationsService', () => {
  verifies('log-ingestion:bounded', 'limits the buffered characters in every member, per server and in all', () => {
    const { service } = on({ keep: never });
    const mb = 1024 * 1024;
    const long = 'x'.repeat(mb);
    const at = Date.now();
    const large: Partial<Invocation>[] = [
      { lines: [{ at, level: 'log', message: long }] },
      { lines: [{ at, level: long, message: '' }] },
      { exceptions: [{ at, name: long, message: '' }] },
      { url: long },
      { toolName: long },
      { method: long },
      { rpcMethod: long },
      { payload: { arguments: long, result: null } },
    ];
    const ofOne = WAITING_CHARS_MAX / 4 / mb - 1;
    for (let n = 0; n < 40; n += 1) service.record(invocation(large[n % large.length]));
    expect(service.stats()).toMatchObject({ waiting: ofOne, dropped: 40 - ofOne });
    const ofAll = WAITING_CHARS_MAX / mb - 1;
    for (let n = 0; n < 100; n += 1) service.record(invocation({ serverId: idOf(2 + (n % 8)), url: long }));
    expect(service.stats()).toMatchObject({ waiting: ofAll, dropped: 140 - ofAll });
  });

  verifies('log-ingestion:bounded', 'counts only buffered invocations: those that were taken free their room', () => {
    const buffer = new InvocationBuffer();
    const long = 'x'.repeat(1024 * 1024);
    for (let n = 0; n < 100; n += 1) {
      buffer.add(invocation({ url: long }));
      expect([buffer.removeOldest(Infinity, Infinity).length, buffer.size, buffer.dropped]).toEqual([1, 0, 0]);
    }
  });

  verifies('log-ingestion:bounded', 'still counts what an owner has buffered after a part of it was taken', () => {
    const buffer = new InvocationBuffer();
    const half = 'x'.repeat(WAITING_CHARS_MAX / 8 - 1_000);
    for (let n = 0; n < 2; n += 1) buffer.add(invocation({ url: half }));
    expect(buffer.removeOldest(half.length, Infinity)).toHaveLength(1);
    for (const dropped of [0, 1]) {
      buffer.add(invocation({ url: half }));
      expect(buffer.dropped).toBe(dropped);
    }
  });

  it('drops a part of an invocation whose id is buffered for another server', () => {
    const { service } = on({ keep: never });
    const one = invocation();
    service.record(one);
    service.record({ ...one, serverId: idOf(2) });
    expect(service.stats()).toMatchObject({ waiting: 1, dropped: 1 });
  });

  it('merges a record and its parts in order of time; the outcome in a part wins', async () => {
    const { service, jobs } = on({});
    const { id, serverId, ...rest } = invocation({ lines: [{ at: 20, level: 'log', message: 'second' }] });
    const early = [{ at: 10, level: 'warn', message: 'first' }];
    service.record({ id, serverId, outcome: 'exceededCpu', cpuMs: 9, lines: early, exceptions: [] });
    service.record({ id, serverId, ...rest });
    const thrown = [{ at: 30, name: 'Error', message: 'third' }];
    service.record({ id, serverId, lines: [], exceptions: thrown });
    await until(() => jobs.length > 0, 'it is written');
    expect(jobs).toHaveLength(1);
    expect(jobs[0].rows).toMatchObject([
      {
        id,
        method: 'POST',
        outcome: 'exceededCpu',
        cpuMs: 9,
        lines: [{ message: 'first' }, { message: 'second' }],
        exceptions: [{ name: 'Error', message: 'third' }],
      },
    ]);
  });

  verifies('runtime-log:answered-errors', 'keeps an error in the response when a part says ok', async () => {
    const { service, jobs } = on({});
    const ends = [
      ['toolError', 'ok', 'toolError'],
      ['rpcError', 'ok', 'rpcError'],
      ['toolError', 'exceededCpu', 'exceededCpu'],
      ['rpcError', 'exception', 'exception'],
      ['exception', 'ok', 'ok'],
    ] as const;
    for (const [recorded, added] of ends) {
      const record = invocation({ outcome: recorded });
      service.record({ id: record.id, serverId: record.serverId, outcome: added, cpuMs: 1, lines: [], exceptions: [] });
      service.record(record);
    }
    await until(() => jobs.length > 0, 'they are written');
    expect(jobs[0].rows.map(({ outcome }) => outcome)).toEqual(ends.map(([, , stored]) => stored));
  });

  it('stores a repeated record once, with the additions', async () => {
    const { service, jobs } = on({});
    const line = { at: 1, level: 'log', message: 'once' };
    const one = invocation({ lines: [line] });
    for (const part of [one, { ...one, toolName: 'other' }]) service.record(part);
    service.record({ id: one.id, serverId: one.serverId, lines: [{ ...line, message: 'added' }], exceptions: [] });
    await until(() => jobs.length > 0, 'it is written');
    expect(jobs[0].rows).toMatchObject([{ toolName: 'echo', lines: [line, { message: 'added' }] }]);
  });

  it('redacts credentials and replaces what Postgres cannot store', async () => {
    const { service, jobs } = on({});
    const lines = [{ at: Date.now(), level: 'log', message: 'Authorization: Bearer abcdefghijkl \0 \ud800 end' }];
    service.record(invocation({ lines, toolName: 'a\0b', wallMs: Infinity, status: NaN }));
    await until(() => jobs.length > 0, 'it is written');
    const [row] = jobs[0].rows;
    expect(row.lines[0].message).toBe('Authorization: Bearer [redacted] \ufffd \ufffd end');
    expect(row).toMatchObject({ toolName: 'a\ufffdb', wallMs: null, status: 0 });
  });

  it('redacts credentials at the place where a long text is cut', async () => {
    const { service, jobs } = on({});
    const secret = 'hunter2hunter2hunter2';
    const message = (before: number) => `${'x '.repeat(before / 2)}postgres://u:${secret}@db ${'y'.repeat(3_000)}`;
    const lines = [8_160, 8_174, 9_570].map((before) => ({ at: Date.now(), level: 'log', message: message(before) }));
    service.record(invocation({ lines: [...lines, { at: Date.now(), level: 'log', message: 'z'.repeat(20_000) }] }));
    await until(() => jobs.length > 0, 'it is written');
    const kept = jobs[0].rows[0].lines.map((line) => line.message);
    expect(kept.filter((text) => text.includes('hunter'))).toEqual([]);
    expect(kept.map((text) => text.length)).toEqual([8_181, 8_181, 8_192, 8_192]);
  });

  it('stores the first 1,000 lines of an invocation and the number of the omitted ones', async () => {
    const { service, jobs } = on({});
    const lines = Array.from({ length: 1_200 }, (_, n) => ({ at: n, level: 'log', message: `line ${n}` }));
    service.record(invocation({ lines: lines.toReversed() }));
    await until(() => jobs.length > 0, 'it is written');
    const [row] = jobs[0].rows;
    expect([row.lines.length, row.lines[0].message, row.leftOut]).toEqual([1_000, 'line 0', 200]);
  });

  it('leaves out an unreadable invocation, and writes the others', async () => {
    const { service, jobs } = on({});
    service.record(invocation({ lines: [{ at: 'noon', level: 1, message: 'x' }] as never }));
    service.record(invocation());
    await until(() => jobs.length > 0, 'it is written');
    expect([jobs[0].rows.length, service.stats().dropped]).toEqual([1, 1]);
  });

  verifies('log-ingestion:once', 'writes a batch that failed again unchanged, under the same number', async () => {
    let failures = 1;
    const { service, jobs, calls } = on({
      keep: () => (failures-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve()),
    });
    service.record(invocation());
    service.recordCall({ id: uuidV7(), connectionId: idOf(3), method: 'POST', lines: [], exceptions: [] });
    await service.settle();
    expect(service.stats()).toMatchObject({ waiting: 2 });
    service.record(invocation());
    await service.settle();
    expect(jobs.map(({ rows }) => rows.length)).toEqual([1, 1, 1]);
    expect(jobs[1]).toEqual(jobs[0]);
    expect([calls.length, service.stats().waiting]).toEqual([1, 0]);
  });

  it('writes invocations once if the calls of their batch fail', async () => {
    let failures = 1;
    const { service, jobs, calls } = on({
      keepCalls: () => (failures-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve()),
    });
    service.record(invocation());
    service.recordCall({ id: uuidV7(), connectionId: idOf(3), method: 'POST', lines: [], exceptions: [] });
    await service.settle();
    await service.settle();
    expect([jobs.length, calls.length, service.stats().waiting]).toEqual([1, 2, 0]);
  });

  it('writes a steady stream in at most 3 batches a second, and for a concurrent read everything recorded before it', async () => {
    jest.useFakeTimers();
    try {
      const { service, jobs } = on({ keep: () => new Promise((resolve) => setTimeout(resolve, 20)) });
      let recorded = 0;
      const stream = setInterval(() => {
        service.record(invocation());
        recorded += 1;
      }, 2);
      await jest.advanceTimersByTimeAsync(4_000);
      expect(jobs.length).toBeLessThanOrEqual(12);
      const rows = () => jobs.reduce((sum, job) => sum + job.rows.length, 0);
      expect(rows()).toBeGreaterThan(recorded * 0.7);
      // During a flush, whose rows were taken before the last record.
      await jest.advanceTimersByTimeAsync(10);
      const before = recorded;
      const settled = service.settle().then(rows);
      await jest.advanceTimersByTimeAsync(50);
      expect(await settled).toBeGreaterThanOrEqual(before);
      clearInterval(stream);
    } finally {
      jest.useRealTimers();
    }
  });

  it('keeps both views of one invocation apart', async () => {
    const { service, jobs, calls } = on({});
    const record = invocation();
    service.record(record);
    service.recordCall({ id: record.id, connectionId: idOf(3), method: 'POST', lines: [], exceptions: [] });
    await service.settle();
    expect([jobs[0].rows.map(({ id }) => id), calls.map(({ id }) => id)]).toEqual([[record.id], [record.id]]);
  });
});
