import { beforeAll, beforeEach, describe, expect } from '@jest/globals';
import type { ConnectionCall, Invocation } from '../../../src/modules/logs/invocation.types.js';
import { dayOf, partitionOf } from '../../../src/modules/logs/store/invocation-days.js';
import { InvocationStore } from '../../../src/modules/logs/store/invocation-store.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testApp, type TestAccount } from '../../support/app.js';
import { createConnection, createServer } from '../../support/factories.js';
import { invocationOf, readLog } from '../../support/logs/invocations.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { metricsOf } from '../../support/logs/prometheus.js';
import { times } from '../../support/mcp/calls.js';
import { verifies } from '../../support/verifies.js';

/** What a day may have with the default settings, and the quarter of it that is the share of one account. */
const DAY_BYTES = Math.floor((10 * 1024 ** 3) / 14);
const SHARE = Math.floor(DAY_BYTES / 4);

const app = testApp({ METRICS_TOKEN: 'open' });
let store: InvocationStore;
let job = 0;

beforeAll(async () => {
  store = app.get(InvocationStore);
});
beforeEach(() => app.database.query('DELETE FROM account_log_days'));

async function owner(): Promise<{ account: TestAccount; name: string; serverId: string }> {
  const account = await app.account();
  const name = await createServer(app, account);
  return { account, name, serverId: await serverIdOf(app, name) };
}

const rows = (serverId: string, count: number): Invocation[] =>
  times(count, () => ({ ...invocationOf(serverId), payload: null, leftOut: 0 }));

const keep = (invocations: Invocation[]) => store.store(invocations, (job += 1));

/** What the account has written today, in bytes as they are counted. */
async function writtenBy({ id }: TestAccount): Promise<number> {
  const { body } = await app.as(app.operator).get(`/accounts/${id}/usage`);
  return (body as { limits: { name: string; used: number }[] }).limits.find((one) => one.name === 'logBytesPerDay')!
    .used;
}

/** Lets an account have written so many bytes today. */
async function write({ id }: TestAccount, bytes: number): Promise<void> {
  await app.database.query(
    `INSERT INTO account_log_days VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2)
         ON CONFLICT (account_id, day) DO UPDATE SET bytes = excluded.bytes`,
    [id, bytes],
  );
}

const sizeOfToday = async () =>
  Number(
    (await app.database.query(`SELECT pg_total_relation_size($1) AS size`, [partitionOf(dayOf(Date.now()))]))[0].size,
  );

const overShare = async () => metricsOf(await app.as().get('/metrics')).value('slipway_log_rows_over_share_total');

describe('the log of an account with default settings', () => {
  verifies('limits:log-share', 'is charged about what it takes on disk', async () => {
    const { account, serverId } = await owner();
    const user = await app.account();
    const { path } = await createConnection(app, user, { transport: 'uplink' });
    const [{ id: connectionId }] = await app.database.query<[{ id: string }]>(
      'SELECT id FROM connections WHERE connection_id = $1',
      [path.split('/').pop()],
    );
    const timing = { guardMs: 0.2, queueMs: 0.1, connectMs: 1.4, firstByteMs: 20.2, totalMs: 22.5 };
    const call = (): ConnectionCall => {
      const { serverId: _serverId, ...fields } = invocationOf(serverId);
      return { ...fields, id: uuidV7(), connectionId, timing };
    };
    const before = await sizeOfToday();
    for (let n = 0; n < 20; n += 1) await keep(rows(serverId, 500));
    const between = await sizeOfToday();
    for (let n = 0; n < 20; n += 1) await store.keepCalls(times(500, call));
    const after = await sizeOfToday();
    // 1.6 calls in each second of a day fit into the share of an account.
    expect(((await writtenBy(account)) / 10_000) * 1.6 * 86_400).toBeLessThan(SHARE);
    for (const [charged, taken] of [
      [await writtenBy(account), between - before],
      [await writtenBy(user), after - between],
    ]) {
      expect(charged / taken).toBeGreaterThan(0.7);
      expect(charged / taken).toBeLessThan(1.4);
    }
  });

  verifies('limits:log-share', 'loses no row beyond its share while the log of the day has room', async () => {
    const { account, name, serverId } = await owner();
    await write(account, SHARE);
    for (let n = 0; n < 10; n += 1) await keep(rows(serverId, 500));
    expect(await readLog(app, account, name, '?limit=1')).toMatchObject({ total: 5_000, leftOut: 0 });
    const sent = await app.as(account).post(pathOf(name, '/logs'), [{ response: { status: 200 } }]);
    expect(sent.status).toBe(202);
  });

  verifies(
    ['limits:log-share', 'runtime-log:left-out'],
    'loses what is beyond its share on a day whose log is full, which its log and the metrics say',
    async () => {
      const [loud, quiet] = [await owner(), await owner()];
      await write(loud.account, DAY_BYTES);
      await write(quiet.account, SHARE - 1);
      const before = await overShare();
      await keep([...rows(loud.serverId, 30), ...rows(quiet.serverId, 3)]);
      await keep(rows(loud.serverId, 12));
      expect((await overShare()) - before).toBe(42);
      const find = (query = '') => readLog(app, loud.account, loud.name, query);
      expect(await find()).toMatchObject({ total: 0, leftOut: 42 });
      expect(await find('?search=word&outcome=ok')).toMatchObject({ total: 0, leftOut: 42 });
      expect(await find('?to=2026-01-01')).toMatchObject({ leftOut: 0 });
      expect(await readLog(app, quiet.account, quiet.name)).toMatchObject({ total: 3, leftOut: 0 });
      const sent = await app.as(loud.account).post(pathOf(loud.name, '/logs'), [{ response: { status: 200 } }]);
      expect(sent.status).toBe(429);
    },
  );

  verifies('limits:log-share', 'is bounded by a limit of its own also while the log of the day has room', async () => {
    const { account, name, serverId } = await owner();
    await app.as(app.operator).patch(`/accounts/${account.id}/limits`, { limits: { logBytesPerDay: 500 } });
    for (const count of [2, 5]) await keep(rows(serverId, count));
    expect(await readLog(app, account, name)).toMatchObject({ total: 2, leftOut: 5 });
  });
});
