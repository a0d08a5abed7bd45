import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DataSource, QueryFailedError } from 'typeorm';
import type { QueryConfig } from 'pg';
import { dataSourceOptions, poolOf } from '../../../src/platform/database/data-source-options.js';
import { isDatabaseUnreachable } from '../../../src/platform/database/postgres-errors.js';
import { PreparedStatement } from '../../../src/platform/database/prepared-statement.js';
import { cloneDatabase, startApp, type TestApp } from '../../support/app.js';
import { startDatabaseRelay, type DatabaseRelay } from '../../support/database/database-relay.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { tracker } from '../../support/special-upstreams/tracker.js';
import { until } from '../../support/until.js';
import { startUpstream } from '../../support/upstream/upstream.js';

const quotient = new PreparedStatement<{ quotient: number }>('SELECT 12 / $1::int AS quotient');
const none = new PreparedStatement<object>('SELECT 1 WHERE $1::int IS NULL');

describe('a prepared statement', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let relay: DatabaseRelay;
  let source: DataSource;

  beforeAll(async () => {
    database = await cloneDatabase();
    relay = await startDatabaseRelay(database.url);
    source = new DataSource(dataSourceOptions(relay.url, 1));
    await source.initialize();
  });
  afterAll(async () => {
    await relay.open();
    await source.destroy();
    await relay.close();
    await database.drop();
  });

  /** How often the statement was executed on the only connection of the pool, once per time that it was prepared. */
  async function uses(): Promise<number[]> {
    const rows = await source.query<{ uses: number }[]>(
      `SELECT (generic_plans + custom_plans)::int AS uses FROM pg_prepared_statements WHERE statement LIKE '%AS quotient'`,
    );
    return rows.map((row) => row.uses);
  }

  it('finds null when there is no row', async () => {
    expect(await none.findOne(source, [1])).toBeNull();
  });

  it('fails like any other query, and the next one succeeds', async () => {
    const error: unknown = await quotient.findOne(source, [0]).catch((thrown: unknown) => thrown);
    const other: unknown = await source.query('SELECT 12 / $1::int', [0]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(QueryFailedError);
    expect(error).toMatchObject({ code: '22012', parameters: [0] });
    expect(String(error)).toBe(String(other));
    expect(isDatabaseUnreachable(error)).toBe(false);
    expect(await quotient.findOne(source, [6])).toEqual({ quotient: 2 });
  });

  it('fails once when a column changes its type', async () => {
    await source.query('CREATE TABLE changing AS SELECT 1 AS value');
    const value = new PreparedStatement<{ value: unknown }>('SELECT value FROM changing');
    expect(await value.findOne(source, [])).toEqual({ value: 1 });
    await source.query('ALTER TABLE changing ALTER value TYPE text');
    await expect(value.findOne(source, [])).rejects.toMatchObject({ code: '0A000' });
    expect(await value.findOne(source, [])).toEqual({ value: '1' });
  });

  it('reports an unavailable database, and is prepared again afterwards', async () => {
    await relay.shut();
    const error: unknown = await quotient.findOne(source, [1]).catch((thrown: unknown) => thrown);
    expect(isDatabaseUnreachable(error)).toBe(true);
    await relay.open();
    expect(await quotient.findOne(source, [1])).toEqual({ quotient: 12 });
    expect(await uses()).toEqual([1]);
  });

  it('reports it also in a transaction whose connection broke between two queries', async () => {
    const thrown: unknown = await source
      .transaction(async (tx) => {
        await tx.query('SELECT 1');
        await relay.shut();
        await until(() => tx.queryRunner?.isReleased, 'the connection is gone');
        await tx.query('SELECT 1');
      })
      .catch((error: unknown) => error);
    expect(isDatabaseUnreachable(thrown)).toBe(true);
    await relay.open();
  });
});

describe('the reads of a request', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await startApp();
  });
  afterAll(() => app.close());

  it('are prepared: the key, the server, the namespace, the connection and its credential', async () => {
    const upstream = await startUpstream();
    const owner = await app.account();
    const namespace = await createNamespace(app, owner);
    const server = await createServer(app, owner, { namespace });
    await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
    // Its caches are empty.
    const sibling = await app.sibling();
    const queries = jest.spyOn(poolOf(sibling.database), 'query');
    const client = sibling.as(owner);
    expect((await client.get(`/servers/${server.replace('/', '%2F')}`)).status).toBe(200);
    expect((await client.post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(200);
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await client.post(`/run/${server.replace('/', '--')}`, list)).status).toBe(200);
    const sent = queries.mock.calls.map(([statement]) => statement as unknown as QueryConfig);
    const named = sent.filter(({ name }) => name !== undefined);
    const tables = named.map(({ text }) => [...text.matchAll(/(?<!EXISTS \(SELECT )FROM (\w+)/g)].at(-1)?.[1]);
    // The detail of a server ends with the accounts that may find it.
    expect(tables).toEqual(['api_keys', 'memberships', 'targets', 'connections', 'upstream_credentials', 'servers']);
    await sibling.close();
    await upstream.close();
  });
});
