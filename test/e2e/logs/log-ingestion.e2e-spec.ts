// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { DAY_MS, dayOf, HOUR_MS, partitionOf } from '../../../src/modules/logs/store/invocation-days.js';
import { InvocationStore } from '../../../src/modules/logs/store/invocation-store.js';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import { PartitionMaintenance } from '../../../src/modules/logs/store/partition-maintenance.js';
import { DeletedOwnerCleaner } from '../../../src/modules/logs/store/deleted-owner-cleaner.js';
import { PartitionsRepository } from '../../../src/modules/logs/store/partitions.repository.js';
import { timeOfUuidV7, uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { Schedule } from '../../../src/platform/schedule/schedule.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { cloneDatabase, startApp, testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { startDatabaseRelay } from '../../support/database/database-relay.js';
import { createServer } from '../../support/factories.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

/** A row as it is in the table. */
interface Kept {
  id: string;
  day: string;
  server_id: string;
  method: string | null;
  status: number | null;
  outcome: string | null;
  cpu_ms: number | null;
  lines: { at: number; level: string; message: string }[];
  exceptions: { at: number; name: string; message: string }[];
  search_text: string;
  left_out: number;
}

const app = testApp();
const owner = testAccount(app);
let name: string;
let serverId: string;
let maintain: PartitionMaintenance['run'];

beforeAll(async () => {
  name = await createServer(app, owner);
  serverId = await serverIdOf(app, name);
  // The scheduled maintenance does not run between the runs of a test.
  const maintenance = app.get(PartitionMaintenance);
  maintain = maintenance.run.bind(maintenance);
  Object.assign(maintenance, { run: () => Promise.resolve() });
  await app.get(Schedule).idle();
  await maintain();
}, SLOW_MS);

const line = (message: string, at = Date.now()) => ({ at, level: 'log', message });

function invocation(more: Partial<Invocation> = {}): Invocation {
  return {
    id: uuidV7(),
    serverId,
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

/** As it comes out of the queue. */
function row(more: Partial<Invocation> = {}): Invocation {
  return invocation({ payload: null, leftOut: 0, ...more });
}

/** A row whose record has not come. */
function pieceRow(id: string, more: Partial<Invocation> = {}): Invocation {
  const unknown = { at: null, method: null, url: null, rpcMethod: null, toolName: null, status: null };
  return row({ id, ...unknown, outcome: null, cpuMs: null, wallMs: null, ...more });
}

async function kept(ids: string[], on: Pick<TestApp, 'database'> = app): Promise<Kept[]> {
  return on.database.query<Kept[]>('SELECT *, day::text AS day FROM invocations WHERE id = ANY ($1) ORDER BY id', [
    ids,
  ]);
}

async function keptOne(id: string, holds: (row: Kept) => boolean = () => true, on = app): Promise<Kept> {
  return until(async () => (await kept([id], on)).find(holds), `${id} is kept`);
}

const messages = ({ lines }: Kept) => lines.map(({ message }) => message);

describe('an invocation', () => {
  for (const order of ['main part first', 'addition first'])
    verifies('log-ingestion:merge', `becomes one row with what another process has of it: ${order}`, async () => {
      const other = await app.sibling({ ROLES: 'api' });
      try {
        const one = invocation({ lines: [line('middle', 2_000)], outcome: 'exception', cpuMs: 1 });
        const record = () => app.get(InvocationsService).record(one);
        const append = () =>
          other
            .get(InvocationsService)
            .record({
              id: one.id,
              serverId,
              outcome: 'exceededCpu',
              cpuMs: 40,
              lines: [line('last', 3_000), line('first', 1_000)],
              exceptions: [{ at: Date.now(), name: 'RangeError', message: 'Out of Bounds' }],
            });
        const [first, second] = order === 'main part first' ? [record, append] : [append, record];
        first();
        await keptOne(one.id);
        second();
        const whole = await keptOne(one.id, ({ method, lines }) => method !== null && lines.length === 3);
        expect(messages(whole)).toEqual(['first', 'middle', 'last']);
        expect(whole).toMatchObject({ outcome: 'exceededCpu', cpu_ms: 40, status: 200, server_id: serverId });
        expect(whole.search_text.split('\n').sort()).toEqual(['first', 'last', 'middle', 'rangeerror: out of bounds']);
      } finally {
        await other.close();
      }
    });

  verifies(
    'runtime-log:answered-errors',
    'keeps an error of its response when the runtime says ok, in either order, but not when it reports worse',
    async () => {
      const store = app.get(InvocationStore);
      const ends = [
        ['toolError', 'ok', 'toolError'],
        ['rpcError', 'ok', 'rpcError'],
        ['toolError', 'exceededCpu', 'exceededCpu'],
        ['ok', 'canceled', 'canceled'],
      ] as const;
      let job = 900;
      for (const [recorded, added, stored] of ends) {
        for (const isRecordFirst of [true, false]) {
          const whole = row({ outcome: recorded });
          const parts = [whole, pieceRow(whole.id, { outcome: added })];
          for (const part of isRecordFirst ? parts : parts.reverse()) await store.store([part], (job += 1));
          expect([recorded, added, (await kept([whole.id]))[0].outcome]).toEqual([recorded, added, stored]);
        }
      }
    },
  );

  verifies('log-ingestion:once', 'is written once, also if its job runs several times', async () => {
    const store = app.get(InvocationStore);
    const late = row({ lines: [{ at: 1, level: 'log', message: 'once' }] });
    for (const job of [71, 71]) await store.store([late], job);
    for (const job of [72, 72, 71]) {
      await store.store([pieceRow(late.id, { lines: [{ at: 2, level: 'log', message: `by ${job}` }] })], job);
    }
    expect((await kept([late.id])).map(messages)).toEqual([['once', 'by 72']]);
  });

  verifies('runtime-log:own', 'cannot be added to for another server', async () => {
    const theirs = await serverIdOf(app, await createServer(app, await app.account()));
    const one = row();
    await app.get(InvocationStore).store([one], 81);
    const foreign = pieceRow(one.id, { serverId: theirs, lines: [{ at: 1, level: 'log', message: 'forged' }] });
    await app.get(InvocationStore).store([foreign], 82);
    expect((await kept([one.id])).map(messages)).toEqual([[]]);
  });

  it('keeps its first 1,000 lines, and counts the others', async () => {
    const one = row();
    for (const job of [1, 2, 3]) {
      const lines = Array.from({ length: 400 }, (_, n) => ({ at: job * 1_000 + n, level: 'log', message: `${job}` }));
      await app.get(InvocationStore).store([job === 1 ? { ...one, lines } : pieceRow(one.id, { lines })], job);
    }
    const [whole] = await kept([one.id]);
    expect([whole.lines.length, whole.lines.at(-1)?.at, whole.left_out]).toEqual([1_000, 3_199, 200]);
  });

  it('is sent to streams of the log of its server', async () => {
    const heard = new Set<string>();
    await app.get(PubSub).subscribe('logs.ingested', ({ serverIds }) => serverIds.forEach((id) => heard.add(id)));
    const followed = await serverIdOf(app, await createServer(app, owner));
    app.get(InvocationsService).record(invocation({ serverId: followed }));
    await until(() => heard.has(followed), 'the hint comes');
  });
});

describe('a batch', () => {
  it('stores texts with the characters of array literals unchanged', async () => {
    const texts = ['say "hi"', 'C:\\logs\\', '{a,b}', 'NULL', '', '\\"', 'two\nlines\t', "it's", 'größer 🌧'];
    const given = texts.map((text) =>
      row({ toolName: text, lines: [line(text)], payload: { arguments: text, result: null } }),
    );
    await app.get(InvocationStore).store(given, 95);
    const stored = await app.database.query<unknown[]>(
      `SELECT tool_name, lines -> 0 ->> 'message' AS message, payload ->> 'arguments' AS arguments
         FROM invocations WHERE id = ANY ($1) ORDER BY id`,
      [given.map(({ id }) => id)],
    );
    const ordered = given.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ toolName }) => toolName);
    expect(stored).toEqual(ordered.map((text) => ({ tool_name: text, message: text, arguments: text })));
  });

  verifies('log-ingestion:once', 'loses only the rows that cannot be kept', async () => {
    const store = app.get(InvocationStore);
    const { refused } = store;
    const good = Array.from({ length: 9 }, () => row());
    const unstorable = row({ lines: [{ at: 1, level: 'log', message: 'NUL \0' }] });
    const noId = row({ id: 'f5b6a5a0-0000-4000-8000-000000000000' });
    const tooOld = row({ id: uuidV7(Date.now() - 30 * DAY_MS) });
    const tooNew = row({ id: uuidV7(Date.now() + 3 * DAY_MS) });
    const ofNobody = row({ serverId: '00000000-0000-4000-8000-000000000000' });
    const bad = [unstorable, noId, tooOld, tooNew, ofNobody];
    await store.store([...good.slice(0, 4), ...bad, ...good.slice(4)], 91);
    expect((await kept([...good, ...bad].map(({ id }) => id))).map(({ id }) => id)).toEqual(
      good.map(({ id }) => id).sort(),
    );
    expect(store.refused - refused).toBe(4);
  });
});

describe('partitions', () => {
  const partitions = async () => (await app.get(PartitionsRepository).list()).map(({ day }) => day);
  const indexes = async (day: string) =>
    (await app.get(PartitionsRepository).searchIndexes()).filter((index) => index.name.startsWith(partitionOf(day)));

  /** Rows of a day, a millisecond apart. */
  const fill = (from: number, count: number, day: string) =>
    app.database.query(
      `INSERT INTO invocations (id, server_id, at, day, search_text, jobs)
       SELECT (lpad(to_hex($1::bigint + n), 12, '0') || '70008' || lpad(n::text, 15, '0'))::uuid, $2, now(), $3, 'word', '{}'
         FROM generate_series(1, $4::int) n`,
      [from, serverId, day, count],
    );

  it('are there ahead, and made by a row that finds none', async () => {
    const today = dayOf(Date.now());
    await maintain();
    const ahead = [0, 1, 2].map((days) => dayOf(Date.parse(today) + days * DAY_MS));
    expect(await partitions()).toEqual(expect.arrayContaining(ahead));
    const late = row({ id: uuidV7(Date.parse(today) - 5 * DAY_MS) });
    await app.get(InvocationStore).store([late], 101);
    expect(await kept([late.id])).toMatchObject([{ day: dayOf(Date.parse(today) - 5 * DAY_MS) }]);
  });

  it('are maintained by one run at a time, whose session ends', async () => {
    await Promise.all([maintain(), maintain(), maintain()]);
    const sessions = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'slipway logs'`;
    expect(await app.database.query(sessions)).toEqual([]);
  });

  it('get their index of search when they are closed, again where a build was cut off', async () => {
    const start = Date.parse(dayOf(Date.now())) - 3 * DAY_MS;
    const day = dayOf(start);
    const whole = [{ from: start, to: start + DAY_MS, isValid: true }];
    await app.get(InvocationStore).store([row({ id: uuidV7(start) })], 111);
    await maintain(start + DAY_MS + HOUR_MS / 2);
    expect(await indexes(day)).toEqual([]);
    const writer = app.database.createQueryRunner();
    await writer.startTransaction();
    // A build waits for whoever writes, and has made its index by then.
    await writer.query(`DELETE FROM ${partitionOf(day)} WHERE false`);
    const keeping = maintain().catch(() => undefined);
    await until(async () => (await indexes(day)).length > 0, 'the build has begun');
    const [{ pid }] = await app.database.query<{ pid: number }[]>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%'`,
    );
    await app.database.query('SELECT pg_terminate_backend($1)', [pid]);
    await keeping;
    await writer.commitTransaction();
    await writer.release();
    expect(await indexes(day)).toMatchObject([{ isValid: false }]);
    await maintain();
    expect(await indexes(day)).toMatchObject(whole);
  });

  it('get an index for each full part while they are open, which the index of the whole replaces', async () => {
    const start = Date.parse(dayOf(Date.now())) - 9 * DAY_MS;
    const day = dayOf(start);
    await app.get(PartitionsRepository).make(day);
    await fill(start, 50_000, day);
    await maintain(start + HOUR_MS);
    const first = { from: start, to: start + HOUR_MS - 60_000, isValid: true };
    expect(await indexes(day)).toMatchObject([first]);
    await fill(start + HOUR_MS, 1_000, day);
    await maintain(start + 2 * HOUR_MS);
    expect(await indexes(day)).toHaveLength(1);
    await maintain();
    expect(await indexes(day)).toMatchObject([{ from: start, to: start + DAY_MS, isValid: true }]);
  });

  verifies('delete:two-clocks', 'stay while the clock of the process is a year ahead of the database', async () => {
    const day = dayOf(Date.now());
    const clock = jest
      .spyOn(Date, 'now')
      .mockImplementation(() => Math.round(performance.timeOrigin + performance.now()) + 366 * DAY_MS);
    await maintain().finally(() => clock.mockRestore());
    expect(await partitions()).toContain(day);
  });

  verifies('log-ingestion:retention', 'go as a whole with their age, while rows come in', async () => {
    const old = dayOf(Date.now() - 20 * DAY_MS);
    const lingering = dayOf(Date.now() - 1 * DAY_MS);
    const manager = app.get(PartitionsRepository);
    for (const day of [old, lingering]) await manager.make(day);
    const counted = () =>
      app.database.query('SELECT FROM invocation_hours WHERE hour = $1', [Date.parse(old) / HOUR_MS]);
    await app.database.query('INSERT INTO invocation_hours VALUES ($1, $2, 1)', [serverId, Date.parse(old) / HOUR_MS]);
    expect(await counted()).toHaveLength(1);
    // As a process leaves it that dies in the middle.
    await app.database.query(`ALTER TABLE invocations DETACH PARTITION ${partitionOf(lingering)}`);
    const reader = app.database.createQueryRunner();
    await reader.startTransaction();
    try {
      await reader.query(`SELECT FROM invocations WHERE day = '${dayOf(Date.now())}'`);
      const keeping = maintain();
      const one = row();
      await app.get(InvocationStore).store([one], 121);
      expect(await kept([one.id])).toHaveLength(1);
      await reader.commitTransaction();
      await keeping;
    } finally {
      await reader.release();
    }
    await maintain();
    expect(await partitions()).not.toEqual(expect.arrayContaining([old]));
    expect(await counted()).toHaveLength(0);
    const yesterday = row({ id: uuidV7(Date.now() - DAY_MS) });
    await app.get(InvocationStore).store([yesterday], 122);
    expect(await kept([yesterday.id])).toHaveLength(1);
  });
});

describe('a deleted server', () => {
  verifies('log-ingestion:deleted', 'leaves no invocations, and none of its late ones stays', async () => {
    const gone = await createServer(app, owner);
    const goneId = await serverIdOf(app, gone);
    const days = [0, 1].map((days) => row({ id: uuidV7(Date.now() - days * DAY_MS), serverId: goneId }));
    const other = row();
    await app.get(InvocationStore).store([...days, other], 131);
    const ids = [...days, other].map(({ id }) => id);
    expect(await kept(ids)).toHaveLength(3);
    expect((await app.as(owner).delete(pathOf(gone))).status).toBe(200);
    // A sweep that fails, as on a database that is too busy to be connected to, is tried again when it is due.
    await until(async () => {
      await app.database.query('UPDATE deleted_invocation_owners SET due_at = now() WHERE owner_id = $1', [goneId]);
      await app.get(DeletedOwnerCleaner).sweep();
      return (await kept(ids)).length === 1;
    }, 'the invocations are gone');
    expect(await kept([other.id])).toHaveLength(1);
    await app.get(InvocationStore).store([{ ...days[0], lines: [{ at: 1, level: 'log', message: 'late' }] }], 132);
    expect(await kept(ids)).toHaveLength(1);
    const noted = () => app.database.query('SELECT FROM deleted_invocation_owners WHERE owner_id = $1', [goneId]);
    expect(await noted()).toHaveLength(1);
    // The second clearing is a minute later.
    await app.database.query(
      `UPDATE deleted_invocation_owners SET due_at = now(), deleted_at = now() - interval '5 minutes' WHERE owner_id = $1`,
      [goneId],
    );
    const counted = () => app.database.query('SELECT FROM invocation_hours WHERE server_id = $1', [goneId]);
    expect(await counted()).toHaveLength(2);
    await app.get(DeletedOwnerCleaner).sweep();
    expect(await noted()).toHaveLength(0);
    expect(await counted()).toHaveLength(0);
  });
});

describe('with parts of the service away', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  const closing: { close(): Promise<void> }[] = [];
  const folders: string[] = [];

  beforeAll(async () => {
    database = await cloneDatabase();
  }, SLOW_MS);
  afterEach(async () => {
    for (const one of closing.splice(0).reverse()) await one.close();
  }, SLOW_MS);
  afterAll(async () => {
    await database.drop();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  }, SLOW_MS);

  async function settings(): Promise<Record<string, string>> {
    const dataDir = await mkdtemp(join(tmpdir(), 'slipway-logs-'));
    folders.push(dataDir);
    const redis = process.env.TEST_REDIS_URL;
    return {
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      QUEUE_PREFIX: uniqueName('queue'),
      ...(redis === undefined ? {} : { REDIS_URL: redis }),
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
      EGRESS_ALLOW: 'loopback',
      DATABASE_POOL_MAX: '5',
    };
  }

  async function serverOn(on: TestApp): Promise<string> {
    return serverIdOf(on, await createServer(on, await on.account()));
  }

  verifies(
    'log-ingestion:once',
    'loses and doubles nothing when its connection breaks in the middle of a batch',
    async () => {
      const given = await settings();
      const relay = await startDatabaseRelay(given.DATABASE_URL);
      closing.push(relay);
      const whole = await startApp({ ...given, DATABASE_URL: relay.url });
      closing.push(whole);
      const own = await serverOn(whole);
      const locks = new pg.Client(database.url);
      await locks.connect();
      closing.push({ close: () => locks.end() });
      await locks.query('BEGIN; LOCK TABLE invocations IN SHARE MODE');
      const { rows } = await locks.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');

      const many = Array.from({ length: 50 }, (_, n) => invocation({ serverId: own, lines: [line(`line ${n}`)] }));
      for (const one of many) whole.get(InvocationsService).record(one);
      const waiting = `SELECT FROM pg_stat_activity WHERE query LIKE '%INSERT INTO invocations%' AND $1 = ANY (pg_blocking_pids(pid))`;
      await until(
        async () => (await whole.database.query<unknown[]>(waiting, [rows[0].pid])).length > 0,
        'the batch is being written',
        60_000,
      );
      await relay.shut();
      // The statement of the broken connection may still be carried out now.
      await locks.query('ROLLBACK');
      await relay.open();
      const ids = many.map(({ id }) => id);
      const found = await until(
        async () => {
          const all = await kept(ids, whole).catch(() => []);
          return all.length === many.length && whole.get(InvocationsService).stats().waiting === 0 && all;
        },
        'all are kept',
        60_000,
      );
      expect(found.map(({ lines }) => lines.length)).toEqual(many.map(() => 1));
    },
    SLOW_MS,
  );

  it(
    'writes what waits when it stops',
    async () => {
      const stopping = await startApp(await settings());
      const last = invocation({ serverId: await serverOn(stopping) });
      stopping.get(InvocationsService).record(last);
      await stopping.close();
      const client = new pg.Client(database.url);
      await client.connect();
      closing.push({ close: () => client.end() });
      expect((await client.query('SELECT id FROM invocations WHERE id = $1', [last.id])).rows).toHaveLength(1);
    },
    SLOW_MS,
  );

  verifies(
    'log-ingestion:bounded',
    'accepts invocations immediately while the database is unavailable, and stores them when it is back',
    async () => {
      const given = await settings();
      const relay = await startDatabaseRelay(given.DATABASE_URL);
      closing.push(relay);
      const redis =
        process.env.TEST_REDIS_URL === undefined ? null : await startDatabaseRelay(process.env.TEST_REDIS_URL);
      if (redis) closing.push(redis);
      const whole = await startApp({ ...given, DATABASE_URL: relay.url, ...(redis && { REDIS_URL: redis.url }) });
      closing.push(whole);
      const own = await serverOn(whole);
      const before = invocation({ serverId: own });
      whole.get(InvocationsService).record(before);
      await keptOne(before.id, undefined, whole);

      await relay.shut();
      await redis?.shut();
      const many = Array.from({ length: 2_500 }, () => invocation({ serverId: own, lines: [line('while away')] }));
      for (const one of many) whole.get(InvocationsService).record(one);
      expect(whole.get(InvocationsService).stats()).toMatchObject({ waiting: many.length, dropped: 0 });
      expect((await whole.as().get('/health')).status).toBe(200);
      await relay.open();
      await redis?.open();
      const ids = many.map(({ id }) => id);
      await until(async () => (await kept(ids, whole)).length === many.length, 'all are kept');
      expect((await kept(ids, whole)).every(({ lines }) => lines.length === 1)).toBe(true);
      expect(timeOfUuidV7(many[0].id).getTime()).toBeLessThanOrEqual(Date.now());
    },
    SLOW_MS,
  );
});
