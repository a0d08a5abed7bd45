/**
 * Finds invocations of one server, or of one connection; each view reads only its own columns.
 *
 * For a word or another filter than time, the newest 4,000 invocations of the server are read along `(server_id, id)` first, which finds a
 * common word immediately, whatever the planner estimates. Older ones are read range by range (`searchRanges`), because Postgres uses a
 * search index only for a condition within its range, and newest first, so that the search stops once enough are found.
 *
 * A search runs on one core for at most 10 s (504) and waits 10 s for others (NoSlotError, 503); one server or connection gets at most half
 * of the slots.
 */
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { RowCache } from '../../../platform/database/row-cache.js';
import { codeOf } from '../../../platform/database/postgres-errors.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import type { ConnectionCall, ConnectionCallQuery, FoundCall, Invocation, NamedCaller } from '../invocation.types.js';
import { errorOf } from '../../../platform/errors/domain-error.js';
import { DAY_MS, dayOf, dayOfId, HOUR_MS, searchRanges, type IndexedRange } from '../store/invocation-days.js';
import { PartitionsRepository } from '../store/partitions.repository.js';
import { condition, part, rangeOf, wholeHoursOf, type InvocationQuery } from './invocation-query.js';

/** Number of matches of a filter above which `totalIsExact` is false. */
const TOTAL_MAX = 10_000;

/** Number of invocations read first, without the search index: enough to find 1,000 matches if every fourth has the word. */
const NEAREST_MAX = 4_000;

const CALLS_MAX = 1_000;

/** Limits a search, and the wait for other searches. With a server and a day, a search takes milliseconds. */
const SEARCH_MS_MAX = 10_000;

class SearchTooLongError extends errorOf('timeout') {}

const QUERY_CANCELED = '57014';

/** A found invocation; `method` is null while only later parts have arrived. */
export type FoundInvocation = Omit<Invocation, 'serverId' | 'at' | 'caller'> & { at: Date; caller: NamedCaller | null };

/** Version of an invocation, which changes when a part is added to the server's view. */
export interface InvocationVersion {
  id: string;
  version: number;
}

/** Returns the SQL of the name of an API key, an app authorized by OAuth, or a browser. */
const credentialName = (id: string) => `coalesce((SELECT name FROM api_keys WHERE id = ${id}),
    (SELECT client_name FROM as_grants WHERE id = ${id}),
    (SELECT concat_ws(' on ', 'browser', substring(agent FROM '(?:Windows|Android|iPhone|iPad|Mac OS|CrOS|Linux(?!; Android))'))
       FROM sessions WHERE id = ${id}))`;

const COLUMNS = `id, release_id AS "releaseId", at, method, url, rpc_method AS "rpcMethod", tool_name AS "toolName",
  status, outcome, cpu_ms AS "cpuMs", wall_ms AS "wallMs", lines, exceptions, payload, left_out AS "leftOut",
  CASE WHEN caller_account IS NOT NULL THEN jsonb_build_object(
    'account', caller_account, 'kind', caller_kind, 'credential', caller_id, 'client', caller_client,
    'accountName', (SELECT name FROM accounts WHERE id = caller_account),
    'credentialName', ${credentialName('caller_id')}) END AS caller`;

/**
 * The newest 1,000 requests of a connection, or those of one account ($9). Always at least one row, without an id if nothing matches.
 * Postgres reads the requests of all callers along `(connection_id, id)` until it has those of the account.
 */
const CALLS = `
  WITH newest AS (
    SELECT id, call FROM invocations WHERE connection_id = $1 AND call -> 'status' IS NOT NULL
       AND ($9::text IS NULL OR call #>> '{caller,account}' = $9)
     ORDER BY id DESC LIMIT ${CALLS_MAX}),
  ranged AS (
    SELECT id, call FROM newest
     WHERE ($2::float8 IS NULL OR (call ->> 'at')::float8 >= $2) AND ($3::float8 IS NULL OR (call ->> 'at')::float8 < $3)),
  matching AS (
    SELECT id, call, count(*) OVER ()::int AS total FROM ranged
     WHERE ($4::text IS NULL OR call ->> 'outcome' = $4) AND ($5::text IS NULL OR call ->> 'toolName' = $5)
       AND ($8::text IS NULL OR $8 IN (call #>> '{caller,account}', call #>> '{caller,credential}')
            OR call #>> '{caller,account}' = (SELECT id::text FROM accounts WHERE name = $8))
       AND ($6::text IS NULL OR position(lower($6) IN lower(call ->> 'toolName')) > 0
            OR $9 IS NULL AND EXISTS (SELECT FROM jsonb_array_elements((call -> 'exceptions') || (call -> 'lines')) AS entry
                        WHERE position(lower($6) IN lower(concat_ws(chr(10), entry ->> 'name', entry ->> 'message'))) > 0))
     ORDER BY id DESC LIMIT $7)
  SELECT id, call, total, left_out AS "leftOut",
         (SELECT name FROM accounts WHERE id = (call #>> '{caller,account}')::uuid) AS "accountName",
         ${credentialName("(call #>> '{caller,credential}')::uuid")} AS "credentialName"
    FROM (SELECT coalesce(sum((call ->> 'leftOut')::int), 0)::int AS left_out FROM ranged) AS sums
    LEFT JOIN matching ON true ORDER BY id DESC`;

interface CallRow extends Pick<NamedCaller, 'accountName' | 'credentialName'> {
  id: string | null;
  call: Omit<ConnectionCall, 'id' | 'connectionId'>;
  total: number | null;
  leftOut: number;
}

interface Counted {
  total: number;
  ids: string[];
}

interface Partitions {
  /** Start of the oldest day that can have invocations: records sent up to a day later create its table. */
  oldest: number;
  indexed: IndexedRange[];
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Returns the ids of callers for a string, which can itself be an id; undefined without a filter. */
async function callerIds(tx: EntityManager, { caller }: InvocationQuery): Promise<string[] | undefined> {
  if (caller === undefined) return undefined;
  const accounts = await tx.query<{ id: string }[]>('SELECT id FROM accounts WHERE name = $1', [caller]);
  return [...(UUID.test(caller) ? [caller] : []), ...accounts.map(({ id }) => id)];
}

@Injectable()
export class InvocationSearchRepository {
  private readonly slots: KeyedLimiter;
  private readonly cache = new RowCache<Partitions>(async () => {
    const [oldestDay, indexes] = [
      await this.partitionsRepository.oldestDay(),
      await this.partitionsRepository.searchIndexes(),
    ];
    const oldest = Math.min(yesterday(), oldestDay === null ? Infinity : Date.parse(oldestDay));
    return { oldest, indexed: indexes.filter(({ isValid }) => isValid) };
  });

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly partitionsRepository: PartitionsRepository,
    @Inject(Env) env: Env,
  ) {
    // At most half of the pool, and a quarter of it for one server or connection.
    this.slots = KeyedLimiter.fair(Math.max(2, Math.floor(env.databasePoolMax / 2)), SEARCH_MS_MAX);
  }

  /**
   * Finds invocations. The total is exact without a filter, and up to 10,000 with one. `leftOut` counts the invocations in the hours of the range that were
   * not stored, regardless of other filters.
   *
   * @throws SearchTooLongError (504) after 10 s, NoSlotError after waiting 10 s for other searches
   */
  async find(
    serverId: string,
    request: InvocationQuery,
    limit: number,
  ): Promise<{ invocations: FoundInvocation[]; total: number; totalIsExact: boolean; leftOut: number }> {
    const { oldest, indexed } = (await this.cache.get('all')) ?? { oldest: yesterday(), indexed: [] };
    return this.runBounded(serverId, async (tx) => {
      const query = { ...request, callerIds: await callerIds(tx, request) };
      const { from: _from, to: _to, before: _before, ...filters } = query;
      const { total, ids, isExact } = Object.values(filters).every((value) => value === undefined)
        ? await listByTime(tx, serverId, query, { limit, oldest })
        : await searched(tx, serverId, query, { limit, oldest, indexed });
      const { from, to } = rangeOf(query, oldest);
      const [{ leftOut }] = await tx.query<[{ leftOut: number }]>(
        `SELECT coalesce(sum(left_out), 0)::int AS "leftOut" FROM invocation_hours
          WHERE server_id = $1 AND hour >= $2 AND hour < $3`,
        [serverId, Math.floor(from.getTime() / HOUR_MS), Math.ceil(to.getTime() / HOUR_MS)],
      );
      return { invocations: await byIds(tx, serverId, ids), total, totalIsExact: isExact, leftOut };
    });
  }

  /**
   * Searches the newest 1,000 requests of a connection, or of the account in it. `leftOut` counts those in the range that were not
   * recorded, regardless of other filters.
   *
   * @throws as `find`
   */
  async findCalls(
    connectionId: string,
    { account, from, to, outcome, tool, search, caller }: ConnectionCallQuery,
    limit: number,
  ): Promise<{ calls: FoundCall[]; total: number; leftOut: number }> {
    const rows = await this.runBounded(account ?? connectionId, (tx) =>
      tx.query<CallRow[]>(CALLS, [
        connectionId,
        from?.getTime() ?? null,
        to?.getTime() ?? null,
        outcome ?? null,
        tool ?? null,
        search ?? null,
        limit,
        caller ?? null,
        account ?? null,
      ]),
    );
    const [{ total, leftOut }] = rows;
    const calls = rows.flatMap(({ id, call, accountName, credentialName }) => {
      if (id === null) return [];
      return [{ ...call, id, caller: call.caller ? { ...call.caller, accountName, credentialName } : null }];
    });
    return { calls, total: total ?? 0, leftOut };
  }

  /** @throws as `find` */
  async versions(serverId: string, query: InvocationQuery, since: Date, limit: number): Promise<InvocationVersion[]> {
    return this.runBounded(serverId, async (tx) => {
      const { sql, values } = condition(serverId, { ...query, callerIds: await callerIds(tx, query) });
      const range = part({ from: since, to: new Date(Date.now() + DAY_MS) });
      return tx.query<InvocationVersion[]>(
        `SELECT id, cardinality(jobs) AS version FROM invocations
          WHERE ${range} AND ${sql} ORDER BY id DESC LIMIT ${limit}`,
        values,
      );
    });
  }

  /** Returns the newest first, without missing ones. */
  async byIds(serverId: string, ids: string[]): Promise<FoundInvocation[]> {
    return byIds(this.database.manager, serverId, ids);
  }

  /**
   * Runs on one core and within 10 s. The rows of a search are stored close together: with the default page cost, Postgres would scan the
   * primary key, past all other rows.
   */
  private runBounded<T>(ownerId: string, work: (tx: EntityManager) => Promise<T>): Promise<T> {
    return this.slots.run(ownerId, async () => {
      try {
        return await this.database.transaction(async (tx) => {
          await tx.query(
            `SELECT set_config('statement_timeout', '${SEARCH_MS_MAX}', true), set_config('jit', 'off', true),
                    set_config('max_parallel_workers_per_gather', '0', true), set_config('random_page_cost', '1.1', true)`,
          );
          return work(tx);
        });
      } catch (error) {
        if (codeOf(error) === QUERY_CANCELED) {
          throw new SearchTooLongError(
            'The search took longer than 10 s: give a shorter range of time with from and to',
          );
        }
        throw error;
      }
    });
  }
}

function yesterday(): number {
  return Date.parse(dayOf(Date.now() - DAY_MS));
}

type Found = Counted & { isExact: boolean };

/**
 * Lists all invocations of a time range. Whole hours are counted when they are stored; the rest of the range, and all
 * of it on a later page, is counted along the index of the server. One statement gives a consistent view of both.
 */
async function listByTime(
  tx: EntityManager,
  serverId: string,
  query: InvocationQuery,
  { limit, oldest }: { limit: number; oldest: number },
): Promise<Found> {
  const range = rangeOf(query, oldest);
  const { from, to } = wholeHoursOf(query, range);
  const { sql, values } = condition(serverId, query);
  const counted = [
    `SELECT invocations AS total FROM invocation_hours
      WHERE server_id = $1 AND hour >= ${from.getTime() / HOUR_MS} AND hour < ${to.getTime() / HOUR_MS}`,
    ...[part({ from: range.from, to: from }), part({ from: to, to: range.to })].map(
      (edge) => `SELECT count(*) FROM invocations WHERE ${edge} AND ${sql}`,
    ),
  ];
  const [row] = await tx.query<Counted[]>(
    `SELECT (SELECT coalesce(sum(total), 0) FROM (${counted.join(' UNION ALL ')}) AS counted)::int AS total,
            ARRAY(SELECT id FROM invocations WHERE ${part(range)} AND ${sql} ORDER BY id DESC LIMIT ${limit})::text[] AS ids`,
    values,
  );
  return { ...row, isExact: true };
}

/**
 * Searches branches. The limit of each branch makes Postgres use the search index for a rare match, and the outer limit keeps it from reading unneeded
 * branches: a plan that is not parallel runs them in this order.
 */
async function searched(
  tx: EntityManager,
  serverId: string,
  query: InvocationQuery,
  { limit, oldest, indexed }: { limit: number; oldest: number; indexed: readonly IndexedRange[] },
): Promise<Found> {
  const all = condition(serverId, query);
  // `last` is the id of the oldest row that was read; null if there are no more.
  const [near] = await tx.query<(Counted & { last: string | null })[]>(
    `SELECT coalesce(cardinality(ids), 0) AS total, coalesce(ids[1:${limit}], '{}')::text[] AS ids,
            CASE WHEN read = ${NEAREST_MAX} THEN last END AS last
       FROM (SELECT array_agg(id ORDER BY id DESC) FILTER (WHERE ${all.sql}) AS ids,
                    count(*) AS read, min(id::text COLLATE "C") AS last
               FROM (SELECT * FROM invocations WHERE server_id = $1 AND ${part(rangeOf(query, oldest))}
                      ORDER BY id DESC LIMIT ${NEAREST_MAX}) AS newest) AS matching`,
    all.values,
  );
  if (near.last === null) return { ...near, isExact: true };
  const rest = { ...query, before: near.last };
  const { from, to } = rangeOf(rest, oldest);
  const { sql, values } = condition(serverId, rest);
  const countMax = TOTAL_MAX + 1 - near.total;
  const branches = searchRanges(from, to, indexed).map(
    ({ day, fromId, toId }) =>
      `(SELECT id FROM invocations WHERE day = '${day}' AND id >= '${fromId}' AND id < '${toId}' AND ${sql}
         ORDER BY id DESC LIMIT ${countMax})`,
  );
  if (branches.length === 0) return { ...near, isExact: true };
  const [older] = await tx.query<Counted[]>(
    `SELECT count(*)::int AS total, coalesce((array_agg(id ORDER BY id DESC))[1:${limit}], '{}')::text[] AS ids
       FROM (SELECT id FROM (${branches.join(' UNION ALL ')}) AS matching LIMIT ${countMax}) AS counted`,
    values,
  );
  const total = near.total + older.total;
  return {
    total: Math.min(total, TOTAL_MAX),
    ids: [...near.ids, ...older.ids].slice(0, limit),
    isExact: total <= TOTAL_MAX,
  };
}

async function byIds(tx: EntityManager, serverId: string, ids: string[]): Promise<FoundInvocation[]> {
  if (ids.length === 0) return [];
  const days = [...new Set(ids.map((id) => dayOfId(id)))];
  return tx.query<FoundInvocation[]>(
    `SELECT ${COLUMNS} FROM invocations
      WHERE server_id = $1 AND day = ANY($2) AND id = ANY($3) ORDER BY id DESC`,
    [serverId, days, ids],
  );
}
