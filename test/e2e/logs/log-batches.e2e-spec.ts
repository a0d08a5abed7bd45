// Also run with the queue on Redis by test:long: jobs.
import { afterEach, beforeAll, describe, expect } from '@jest/globals';
import { LogBatchesRepository, WAITING_BYTES_MAX } from '../../../src/modules/logs/batches/log-batches.repository.js';
import { LogsQueue } from '../../../src/modules/logs/batches/logs.queue.js';
import { LogsProcessor } from '../../../src/modules/logs/batches/logs.processor.js';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { invocationOf, logWith, readLog } from '../../support/logs/invocations.js';
import { exportJson } from '../../support/logs/otlp.js';
import { metricsOf } from '../../support/logs/prometheus.js';
import { times } from '../../support/mcp/calls.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';
import { StorageFullError, StorageSpace } from '../../../src/platform/blobs/storage-space.js';

const app = testApp({ ROLES: 'api', METRICS_TOKEN: 'open' });
const owner = testAccount(app);
let name: string;
let serverId: string;

beforeAll(async () => {
  name = await createServer(app, owner);
  serverId = await serverIdOf(app, name);
});

const message = (text: string) => ({ logs: [{ message: text }] });
const send = (body: object, account = owner, to = name) => app.as(account).post(pathOf(to, '/logs'), body);
const sendExport = (texts: string[]) =>
  app.as(owner).post(pathOf(name, '/otlp/v1/logs'), exportJson(texts.map((body) => ({ body }))));

const waiting = () =>
  app.database.query<{ id: string; bytes: number; records: number; account_id: string }[]>(
    'SELECT * FROM log_batches ORDER BY created_at, id',
  );

const metric = async (of: TestApp, metricName: string) => metricsOf(await of.as().get('/metrics')).value(metricName);

/** Bytes that an account has written today. */
async function charged({ id }: TestAccount): Promise<number> {
  const [row] = await app.database.query<{ bytes: string }[]>(
    'SELECT bytes FROM account_log_days WHERE account_id = $1',
    [id],
  );
  return Number(row?.bytes ?? 0);
}

describe('records that are sent while no worker runs', () => {
  afterEach(() => app.database.query('DELETE FROM log_batches'));

  verifies('log-batches:accepted', 'are one row for each request, and are found in the metrics', async () => {
    const sent = await send([message('one'), message('two'), message('Bearer abcdefghijklmnop')]);
    expect([sent.status, sent.body]).toEqual([202, { accepted: 3, ids: Array(3).fill(expect.any(String)) }]);
    const exported = await sendExport(['three', 'four']);
    expect([exported.status, exported.body]).toEqual([200, {}]);
    expect((await send([])).status).toBe(202);
    const rows = await waiting();
    expect(rows).toMatchObject([
      { server_id: serverId, account_id: owner.id, records: 3, bytes: expect.any(Number) },
      { server_id: serverId, records: 1 },
    ]);
    expect(JSON.stringify(rows)).toContain('Bearer [redacted]');
    expect(JSON.stringify(rows)).not.toContain('abcdefghijklmnop');
    const jobs = () => app.get(LogsQueue)['queue'].getJobs(['waiting', 'delayed']);
    const [job] = await until(async () => (await jobs()).length > 0 && jobs(), 'a job is there');
    expect(job.data).toEqual({});
    expect(await metric(app, 'slipway_log_batches_waiting')).toBe(2);
    expect((await readLog(app, owner, name)).total).toBe(0);
  });

  verifies('log-ingestion:full-disk', 'are refused with 507 while the disk has no room, and calls go on', async () => {
    const space = app.get(StorageSpace);
    Object.assign(space, { requireLogRoom: () => Promise.reject(new StorageFullError()) });
    const refused = await send([message('one')]);
    expect([refused.status, refused.body]).toEqual([507, { error: expect.stringContaining('no space left') }]);
    expect((await sendExport(['two'])).status).toBe(507);
    expect(await waiting()).toEqual([]);
    expect((await app.as(owner).get(pathOf(name))).status).toBe(200);
    Reflect.deleteProperty(space, 'requireLogRoom');
    expect((await send([message('one')])).status).toBe(202);
  });

  verifies('log-batches:bounded', 'are refused with 503 while 64 MB wait, or a quarter of one account', async () => {
    const other = await app.account();
    const theirs = await createServer(app, other);
    const fill = (account: TestAccount, bytes: number) =>
      app.database.query(
        `INSERT INTO log_batches (id, server_id, account_id, bytes, records, payload)
         VALUES (gen_random_uuid(), $1, $2, $3, 0, '[]')`,
        [serverId, account.id, bytes],
      );
    const small = 8_000;
    await fill(owner, WAITING_BYTES_MAX / 4 - small);
    const texts = ['x'.repeat(3_000), 'y'.repeat(3_000)];
    const refused = await send(texts.map(message));
    expect([refused.status, refused.headers['retry-after'], Object.keys(refused.body as object)]).toEqual([
      503,
      '5',
      ['error'],
    ]);
    expect((await sendExport(texts)).status).toBe(503);
    expect((await waiting()).length).toBe(1);
    expect((await send([message('small')])).status).toBe(202);
    expect((await send(texts.map(message), other, theirs)).status).toBe(202);
    // Each insert sums the rows that wait, so that their number is bounded, too.
    await app.database.query('DELETE FROM log_batches');
    expect((await send([{}])).status).toBe(202);
    const [empty] = await app.database.query<[{ bytes: number }]>('SELECT bytes FROM log_batches');
    expect(empty.bytes).toBeGreaterThanOrEqual(WAITING_BYTES_MAX / 16_384);
    await app.database.query('DELETE FROM log_batches');
    for (let quarter = 0; quarter < 4; quarter += 1) await fill(await app.account(), WAITING_BYTES_MAX / 4);
    expect((await send([message('small')], other, theirs)).status).toBe(503);
    expect(await metric(app, 'slipway_log_batches_refused_total')).toBe(3);
    await app.database.query('DELETE FROM log_batches');
    expect((await send([message('small')], other, theirs)).status).toBe(202);
  });

  verifies('log-batches:accepted', 'go with their server', async () => {
    const gone = await createServer(app, owner);
    await send([message('late')], owner, gone);
    expect(await waiting()).toHaveLength(1);
    expect((await app.as(owner).delete(pathOf(gone))).status).toBe(200);
    expect(await waiting()).toEqual([]);
  });
});

describe('a worker', () => {
  let worker: TestApp;
  let lostIds: string[];

  beforeAll(async () => {
    const queue = app.get(LogsQueue)['queue'];
    await queue.obliterate({ force: true });
    // A job of this half second may be among those.
    Object.assign(app.get(LogsQueue), { window: 0 });
    const sent = await send([message('of a lost job')]);
    lostIds = (sent.body as { ids: string[] }).ids;
    await until(async () => (await queue.getJobs(['waiting', 'delayed'])).length > 0, 'the job is there');
    await queue.obliterate({ force: true });
    await app.database.query(`UPDATE log_batches SET created_at = now() - interval '1 hour'`);
    worker = await app.sibling({ ROLES: 'worker' });
  });

  const counts = (of: string) => metric(worker, `slipway_log_${of}_total`);

  /** Adds a batch past the API, which accepts only what can be stored. */
  async function addBatch(invocations: Invocation[]): Promise<string> {
    const id = await app.get(LogBatchesRepository).add({ serverId, invocations });
    app.get(LogsQueue).enqueue();
    return id ?? '';
  }

  const isWritten = (id: string) =>
    until(async () => (await waiting()).every((batch) => batch.id !== id), 'the batch is written');

  verifies('log-batches:once', 'writes batches whose jobs were lost, however old they are', async () => {
    const { invocations } = await logWith(app, owner, name, 1);
    expect(invocations.map(({ id }) => id)).toEqual(lostIds);
    expect(await waiting()).toEqual([]);
    expect(await metric(worker, 'slipway_log_batches_waiting')).toBe(0);
  });

  verifies(
    'log-batches:once',
    'writes and charges a batch once, when its connection breaks and its job runs again',
    async () => {
      const before = await charged(owner);
      const blocker = app.database.createQueryRunner();
      await blocker.startTransaction();
      await blocker.query('LOCK TABLE invocations IN SHARE MODE');
      const [{ pid }] = (await blocker.query('SELECT pg_backend_pid() AS pid')) as [{ pid: number }];
      const logs = times(50, (n) => ({ message: `line ${n}`, timestamp: new Date().toISOString() }));
      const sent = await send([{ logs }]);
      const [id] = (sent.body as { ids: string[] }).ids;
      const broken = await until(async () => {
        const rows = await app.database.query<{ pid: number }[]>(
          `SELECT pid FROM pg_stat_activity WHERE query LIKE '%INSERT INTO invocations%' AND $1 = ANY (pg_blocking_pids(pid))`,
          [pid],
        );
        return rows[0];
      }, 'the batch is being written');
      await app.database.query('SELECT pg_terminate_backend($1)', [broken.pid]);
      await until(async () => (await waiting()).length === 1, 'the batch is there');
      expect(await charged(owner)).toBe(before);
      const [{ id: batchId }] = await waiting();
      await blocker.commitTransaction();
      await blocker.release();
      await isWritten(batchId);
      const chargedOnce = (await charged(owner)) - before;
      expect(chargedOnce).toBeGreaterThan(0);
      // As after a worker that died between the transaction and the end of its job.
      await worker.get(LogsProcessor).process();
      const found = (await readLog(app, owner, name)).invocations.filter((invocation) => invocation.id === id);
      expect(found.map((invocation) => invocation.logs.map((line) => line.message))).toEqual([
        times(50, (n) => `line ${n}`),
      ]);
      expect((await charged(owner)) - before).toBe(chargedOnce);
    },
  );

  verifies('log-batches:rejected', 'leaves out a record that cannot be written, and counts it', async () => {
    const [refused, written] = [await counts('rows_refused'), await counts('batches_written')];
    const invocations = times(5, (n) => invocationOf(serverId, { messages: [n === 2 ? 'NUL \0' : `good ${n}`] }));
    await isWritten(await addBatch(invocations));
    const { total } = await readLog(app, owner, name, '?search=good');
    expect([total, (await counts('rows_refused')) - refused]).toEqual([4, 1]);
    expect((await counts('batches_written')) - written).toBe(1);
  });

  verifies(
    ['log-batches:share', 'limits:log-share'],
    'leaves out what is beyond the share of the account',
    async () => {
      const account = await app.account();
      const theirs = await createServer(app, account);
      await app.as(app.operator).patch(`/accounts/${account.id}/limits`, { limits: { logBytesPerDay: 500 } });
      const fill = `INSERT INTO account_log_days VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 500)`;
      await app.database.query(fill, [account.id]);
      expect(
        (
          await send(
            times(3, () => message('beyond')),
            account,
            theirs,
          )
        ).status,
      ).toBe(202);
      await until(async () => (await readLog(app, account, theirs)).leftOut === 3, 'they are counted');
      expect(await readLog(app, account, theirs)).toMatchObject({ total: 0, leftOut: 3 });
      expect([await charged(account), await counts('rows_over_share')]).toEqual([500, 3]);
    },
  );
});
