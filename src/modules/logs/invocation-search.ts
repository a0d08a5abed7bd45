import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { codeOf } from '../../platform/database/postgres-errors.js';
import { Slots } from '../../platform/limits/slots.js';
import { timeOfUuidV7 } from '../../platform/database/uuid-v7.js';
import { DAY_MS, dayOf, dayOfId, leastIdAt } from './invocation-days.js';
import { KeptDays } from './kept-days.js';
import { searchForm, type InvocationRow } from './invocation-row.js';
import type { InvocationOutcome } from './invocation.types.js';
import { SearchTooLongError } from './logs.errors.js';
import { ID_SLACK_MS } from './sent-id.js';
import { SearchIndexes } from './search-indexes.js';
import { searchSlices } from './search-slices.js';

/** `total` is counted up to here, and not exact beyond: ten times as much takes a common word hundreds of milliseconds. */
export const TOTAL_MAX = 1_000;

/** Invocations that are read for a word before its index is asked: enough to count one that every fourth has. */
const WALKED_MAX = 4_000;

/** What one search may take. With server and a day given it takes some milliseconds. */
const SEARCH_MS_MAX = 10_000;

/** How long a search waits for others. */
const TURN_MS_MAX = 10_000;

/** Which invocations of a server are meant. Everything given must match. */
export interface InvocationQuery {
  /** From this moment on. */
  from?: Date;
  /** Before this moment. */
  to?: Date;
  /** Older than the invocation with this id. */
  before?: string;
  /** Occurs in a message or an exception, in any case. */
  search?: string;
  outcome?: InvocationOutcome;
  tool?: string;
  /** The MCP method. */
  method?: string;
  minDurationMs?: number;
}

/** An invocation as it is kept. `method` is null while its record has not come. */
export type FoundInvocation = Omit<InvocationRow, 'serverId' | 'at'> & { at: Date };

/** How often an invocation was written to: another number, and there is more to it. */
export interface InvocationVersion {
  id: string;
  version: number;
}

const COLUMNS = `id, release_id AS "releaseId", at, method, url, rpc_method AS "rpcMethod", tool_name AS "toolName",
  status, outcome, cpu_ms AS "cpuMs", wall_ms AS "wallMs", lines, exceptions, payload, left_out AS "leftOut"`;

/** A condition with its values; ids and days in it are made here. */
interface Condition {
  sql: string;
  values: unknown[];
}

/**
 * Finds invocations. Every statement is held to one server and to the days that are asked for. Without a word the newest
 * are read along `(server_id, id)`, also for a word: a common one is found there at once, whatever the planner takes it for.
 * Then each part of the range is a branch of its own, so that Postgres can choose
 * between that index and the one over the texts where there is one (`searchSlices`).
 */
@Injectable()
export class InvocationSearch {
  private readonly slots: Slots;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly days: KeptDays,
    private readonly indexes: SearchIndexes,
    @Inject(Env) env: Env,
  ) {
    // Half of the connections at most, and a quarter for one server.
    this.slots = new Slots(Math.max(2, Math.floor(env.databasePoolMax / 2)), TURN_MS_MAX);
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
    const matching = condition(serverId, query);
    const { from, to } = await this.rangeOf(query);
    const whole = part(from, to);
    const branches =
      query.search === undefined
        ? [whole]
        : searchSlices(from, to, await this.indexes.ranges()).map(
            ({ day, fromId, toId }) => `day = '${day}' AND id >= '${fromId}' AND id < '${toId}'`,
          );
    return this.bounded(serverId, async (tx) => {
      const walked = query.search === undefined ? null : await walk(tx, whole, matching, limit);
      const isCommon = walked !== null && walked.total > TOTAL_MAX;
      const { total, ids } = isCommon ? walked : await count(tx, branches, matching, limit);
      const isExact = total <= TOTAL_MAX;
      const page = isExact || isCommon || branches.length === 1 ? ids : await newest(tx, branches, matching, limit);
      const invocations = await byIds(tx, serverId, page);
      return { invocations, total: Math.min(total, TOTAL_MAX), totalIsExact: isExact };
    });
  }

  /** The newest that match since a moment, newest first, with how often each was written to. @throws as `find` */
  async versions(serverId: string, query: InvocationQuery, since: Date, limit: number): Promise<InvocationVersion[]> {
    const { sql, values } = condition(serverId, query);
    const to = new Date(Date.now() + DAY_MS);
    return this.bounded(serverId, (tx) =>
      tx.query<InvocationVersion[]>(
        `SELECT id, cardinality(jobs) AS version FROM invocations
          WHERE ${part(since, to)} AND ${sql} ORDER BY id DESC LIMIT ${limit}`,
        values,
      ),
    );
  }

  /** These, newest first; those that are gone are missing. */
  async byIds(serverId: string, ids: string[]): Promise<FoundInvocation[]> {
    return byIds(this.database.manager, serverId, ids);
  }

  /** The range in which something can be: what is older than the oldest day is gone, and nothing comes from far ahead. */
  private async rangeOf({ from, to, before }: InvocationQuery): Promise<{ from: Date; to: Date }> {
    const oldest = Date.parse(await this.days.oldest());
    const newest = Date.now() + DAY_MS;
    const within = (time: number) => new Date(Math.max(oldest, Math.min(newest, time)));
    return {
      from: within((from?.getTime() ?? oldest) - ID_SLACK_MS),
      to: within(
        Math.min((to?.getTime() ?? newest) + ID_SLACK_MS, before ? timeOfUuidV7(before).getTime() + 1 : newest),
      ),
    };
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

/** What is common to all parts. Times are those of the records; the part's ids are only near them. */
function condition(serverId: string, query: InvocationQuery): Condition {
  const values: unknown[] = [serverId];
  const parts = ['server_id = $1'];
  const add = (sql: string, value: unknown) => {
    if (value === undefined) return;
    values.push(value);
    parts.push(`${sql} $${values.length}`);
  };
  add('at >=', query.from);
  add('at <', query.to);
  add('id <', query.before);
  add('outcome =', query.outcome);
  add('tool_name =', query.tool);
  add('rpc_method =', query.method);
  add('wall_ms >=', query.minDurationMs);
  add('search_text LIKE', query.search === undefined ? undefined : likePattern(query.search));
  return { sql: parts.join(' AND '), values };
}

/** Every character stands for itself. */
export function likePattern(word: string): string {
  return `%${searchForm(word).replace(/[\\%_]/g, '\\$&')}%`;
}

/** From one moment to another, as days and ids. */
function part(from: Date, to: Date): string {
  return `day >= '${dayOf(from)}' AND day <= '${dayOf(to)}' AND id >= '${leastIdAt(from)}' AND id < '${leastIdAt(to)}'`;
}

/**
 * How many match, counted to one beyond 1,000, and the newest ids; of more than 1,000 in several branches only some ids.
 * Each branch is read newest first and no further than that, so that Postgres walks `(server_id, id)` for a common word
 * and takes the index over the texts for a rare one. Without an order it takes that index for both.
 */
async function count(
  tx: EntityManager,
  branches: string[],
  { sql, values }: Condition,
  limit: number,
): Promise<{ total: number; ids: string[] }> {
  if (branches.length === 0) return { total: 0, ids: [] };
  const found = branches.map(
    (branch) => `(SELECT id FROM invocations WHERE ${branch} AND ${sql} ORDER BY id DESC LIMIT ${TOTAL_MAX + 1})`,
  );
  return countOf(tx, `(${found.join(' UNION ALL ')}) AS found`, values, limit);
}

/** As `count`, among the newest of the server. */
function walk(
  tx: EntityManager,
  whole: string,
  { sql, values }: Condition,
  limit: number,
): Promise<{ total: number; ids: string[] }> {
  const newest = `SELECT * FROM invocations WHERE server_id = $1 AND ${whole} ORDER BY id DESC LIMIT ${WALKED_MAX}`;
  return countOf(tx, `(${newest}) AS newest WHERE ${sql}`, values, limit);
}

async function countOf(
  tx: EntityManager,
  found: string,
  values: unknown[],
  limit: number,
): Promise<{ total: number; ids: string[] }> {
  const [row] = await tx.query<{ total: number; ids: string[] | null }[]>(
    `SELECT count(*)::int AS total, (array_agg(id ORDER BY id DESC))[1:${limit}]::text[] AS ids
       FROM (SELECT id FROM ${found} LIMIT ${TOTAL_MAX + 1}) AS counted`,
    values,
  );
  return { total: row?.total ?? 0, ids: row?.ids ?? [] };
}

/** The newest ids of more than are counted: branch by branch, from the newest on, which mostly ends with the first. */
async function newest(tx: EntityManager, branches: string[], matching: Condition, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (const branch of branches) {
    if (found.length === limit) break;
    found.push(...(await count(tx, [branch], matching, limit - found.length)).ids);
  }
  return found;
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
