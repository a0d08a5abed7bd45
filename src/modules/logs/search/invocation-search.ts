import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { codeOf } from '../../../platform/database/postgres-errors.js';
import { FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { DAY_MS, dayOfId } from '../store/invocation-days.js';
import { condition, part, rangeOf, type Condition, type InvocationQuery } from './invocation-query.js';
import { LogRetention } from '../store/log-retention.js';
import type { InvocationRow } from '../store/invocation-row.js';
import { SearchTooLongError } from '../logs.errors.js';
import { SearchIndexes } from '../store/search-indexes.js';
import { searchRanges, type IndexedRange } from '../store/search-ranges.js';

/** `total` is counted up to here, and not exact beyond: ten times as much takes a common word hundreds of milliseconds. */
export const TOTAL_MAX = 1_000;

/** The newest invocations, which are read for a word before its index is asked: enough to count one that every fourth has. */
const NEAREST_MAX = 4_000;

/** What one search may take. With server and a day given it takes some milliseconds. */
const SEARCH_MS_MAX = 10_000;

/** How long a search waits for others. */
const TURN_MS_MAX = 10_000;

/** An invocation as it is kept. `method` is null while its record has not come. */
export type FoundInvocation = Omit<InvocationRow, 'serverId' | 'at'> & { at: Date };

/** How often an invocation was written to: another number, and there is more to it. */
export interface InvocationVersion {
  id: string;
  version: number;
}

const COLUMNS = `id, release_id AS "releaseId", at, method, url, rpc_method AS "rpcMethod", tool_name AS "toolName",
  status, outcome, cpu_ms AS "cpuMs", wall_ms AS "wallMs", lines, exceptions, payload, left_out AS "leftOut"`;

/** How many match, counted to one beyond 1,000 or more, and the ids of the newest, newest first. */
interface Counted {
  total: number;
  ids: string[];
}

/**
 * Finds invocations. Every statement is held to one server and to the days that are asked for. For a word the newest of
 * the server are read along `(server_id, id)` first: a common one is found there at once, whatever the planner takes it for.
 * What is older is read part by part (`searchRanges`), so that Postgres can use the index over the texts of each, and
 * from the newest on, so that it is over as soon as enough are found.
 */
@Injectable()
export class InvocationSearch {
  private readonly slots: FairSemaphore;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly days: LogRetention,
    private readonly indexes: SearchIndexes,
    @Inject(Env) env: Env,
  ) {
    // Half of the connections at most, and a quarter for one server.
    this.slots = new FairSemaphore(Math.max(2, Math.floor(env.databasePoolMax / 2)), TURN_MS_MAX);
  }

  /**
   * The newest that match, newest first, and how many do: exactly up to 1,000, and 1,000 beyond.
   *
   * @throws SearchTooLongError after 10 s, NoSlotError while too many others search
   */
  async find(
    serverId: string,
    query: InvocationQuery,
    limit: number,
  ): Promise<{ invocations: FoundInvocation[]; total: number; totalIsExact: boolean }> {
    const indexed = query.search === undefined ? null : await this.indexes.ranges();
    const oldest = Date.parse(await this.days.oldest());
    return this.bounded(serverId, async (tx) => {
      const counted = indexed
        ? await searched(tx, serverId, query, limit, oldest, indexed)
        : await count(tx, [part(rangeOf(query, oldest))], condition(serverId, query), limit, TOTAL_MAX + 1);
      const invocations = await byIds(tx, serverId, counted.ids);
      return { invocations, total: Math.min(counted.total, TOTAL_MAX), totalIsExact: counted.total <= TOTAL_MAX };
    });
  }

  /** The newest that match since a moment, newest first, with how often each was written to. @throws as `find` */
  async versions(serverId: string, query: InvocationQuery, since: Date, limit: number): Promise<InvocationVersion[]> {
    const { sql, values } = condition(serverId, query);
    const to = new Date(Date.now() + DAY_MS);
    return this.bounded(serverId, (tx) =>
      tx.query<InvocationVersion[]>(
        `SELECT id, cardinality(jobs) AS version FROM invocations
          WHERE ${part({ from: since, to })} AND ${sql} ORDER BY id DESC LIMIT ${limit}`,
        values,
      ),
    );
  }

  /** These, newest first; those that are gone are missing. */
  async byIds(serverId: string, ids: string[]): Promise<FoundInvocation[]> {
    return byIds(this.database.manager, serverId, ids);
  }

  /**
   * Runs statements one at a time for a server, on one core, and not for long. What is read together lies together: with
   * the usual cost of a page Postgres would walk the primary key, past everybody's invocations.
   */
  private bounded<T>(serverId: string, work: (tx: EntityManager) => Promise<T>): Promise<T> {
    return this.slots.run(serverId, async () => {
      try {
        return await this.database.transaction(async (tx) => {
          await tx.query(
            `SELECT set_config('statement_timeout', '${SEARCH_MS_MAX}', true), set_config('jit', 'off', true),
                    set_config('max_parallel_workers_per_gather', '0', true), set_config('random_page_cost', '1.1', true)`,
          );
          return work(tx);
        });
      } catch (error) {
        if (codeOf(error) === QUERY_CANCELED) throw new SearchTooLongError();
        throw error;
      }
    });
  }
}

const QUERY_CANCELED = '57014';

/** What has a word: among the newest of the server, then among the rest, unless those are enough. */
async function searched(
  tx: EntityManager,
  serverId: string,
  query: InvocationQuery,
  limit: number,
  oldest: number,
  indexed: readonly IndexedRange[],
): Promise<Counted> {
  const near = await nearest(tx, part(rangeOf(query, oldest)), condition(serverId, query), limit);
  if (near.last === null || near.total > TOTAL_MAX) return near;
  const rest = { ...query, before: near.last };
  const { from, to } = rangeOf(rest, oldest);
  const slices = searchRanges(from, to, indexed).map(
    ({ day, fromId, toId }) => `day = '${day}' AND id >= '${fromId}' AND id < '${toId}'`,
  );
  const far = await count(tx, slices, condition(serverId, rest), limit, TOTAL_MAX + 1 - near.total);
  return { total: near.total + far.total, ids: [...near.ids, ...far.ids].slice(0, limit) };
}

/** Of the newest of the server; `last` is the last one that was read, null when there are no others. */
async function nearest(
  tx: EntityManager,
  whole: string,
  { sql, values }: Condition,
  limit: number,
): Promise<Counted & { last: string | null }> {
  const [row] = await tx.query<(Counted & { last: string | null })[]>(
    `SELECT coalesce(cardinality(ids), 0) AS total, coalesce(ids[1:${limit}], '{}')::text[] AS ids,
            CASE WHEN read = ${NEAREST_MAX} THEN last END AS last
       FROM (SELECT array_agg(id ORDER BY id DESC) FILTER (WHERE ${sql}) AS ids,
                    count(*) AS read, min(id::text COLLATE "C") AS last
               FROM (SELECT * FROM invocations WHERE server_id = $1 AND ${whole}
                      ORDER BY id DESC LIMIT ${NEAREST_MAX}) AS newest) AS found`,
    values,
  );
  return row;
}

/**
 * Counts to `countMax` in branches that follow each other in time, the newest first. Each is read newest first and no
 * further than that, so that Postgres takes the index over the texts for a rare word; and it reads the next one only
 * when those before were not enough, since it runs what is not parallel in the order in which it is written.
 */
async function count(
  tx: EntityManager,
  branches: string[],
  { sql, values }: Condition,
  limit: number,
  countMax: number,
): Promise<Counted> {
  if (branches.length === 0) return { total: 0, ids: [] };
  const found = branches.map(
    (branch) => `(SELECT id FROM invocations WHERE ${branch} AND ${sql} ORDER BY id DESC LIMIT ${countMax})`,
  );
  const [row] = await tx.query<Counted[]>(
    `SELECT count(*)::int AS total, coalesce((array_agg(id ORDER BY id DESC))[1:${limit}], '{}')::text[] AS ids
       FROM (SELECT id FROM (${found.join(' UNION ALL ')}) AS found LIMIT ${countMax}) AS counted`,
    values,
  );
  return row;
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
