import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { DAY_MS, dayOf, DURATION_POWER, HOUR_MS, leastIdAt } from '../store/invocation-days.js';
import type { CallFilter } from '../invocation.types.js';
import { ID_SLACK_MS } from '../ingest/ingest-limits.js';

/** Number of powers of two; the highest is more than a year in milliseconds. */
const DURATION_POWERS = 40;

export interface InvocationQuery extends CallFilter {
  /** Id of an invocation; only older ones match. */
  before?: string;
  method?: string;
  minDurationMs?: number;
  /** Ids of callers, which the repository looks up: Postgres estimates the rows of a known id. */
  callerIds?: string[];
}

export interface Condition {
  sql: string;
  values: unknown[];
}

/** A range of times, whose end is exclusive. */
export interface TimeRange {
  from: Date;
  to: Date;
}

/** Returns the range of a query, from the oldest partition until tomorrow by default. */
export function rangeOf({ from, to, before }: InvocationQuery, oldest: number): TimeRange {
  const newest = Date.now() + DAY_MS;
  const clamp = (time: number) => new Date(Math.max(oldest, Math.min(newest, time)));
  return {
    from: clamp((from?.getTime() ?? oldest) - ID_SLACK_MS),
    to: clamp(Math.min((to?.getTime() ?? newest) + ID_SLACK_MS, before ? timeOfUuidV7(before).getTime() + 1 : newest)),
  };
}

/**
 * Returns hours whose invocations all match; an empty range at the end for a later page. Times of records and of their ids differ by up to
 * a minute, so hours at the ends of a range are left out.
 */
export function wholeHoursOf({ from, to, before }: InvocationQuery, range: TimeRange): TimeRange {
  const { from: start, to: end } = range;
  const least = from === undefined ? start.getTime() : Math.max(start.getTime(), from.getTime() + ID_SLACK_MS);
  const most = to === undefined ? end.getTime() : Math.min(end.getTime(), to.getTime() - ID_SLACK_MS);
  const first = Math.ceil(least / HOUR_MS) * HOUR_MS;
  const last = Math.floor(most / HOUR_MS) * HOUR_MS;
  return before === undefined && first < last ? { from: new Date(first), to: new Date(last) } : { from: end, to: end };
}

/** Returns the SQL condition of a query. It compares the times of the records; the times of ids differ by up to a minute. */
export function condition(serverId: string, query: InvocationQuery): Condition {
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
  if (query.minDurationMs !== undefined && query.minDurationMs > 1) {
    // One less, because the column has fewer digits than the number.
    const least = Math.max(0, Math.floor(Math.log2(query.minDurationMs)) - 1);
    const powers = Array.from({ length: Math.max(0, DURATION_POWERS - least) }, (_, n) => least + n);
    parts.push(`${DURATION_POWER} = ANY ('{${powers.join(',')}}'::int[])`);
  }
  // Every character of the word is literal.
  const word = query.search?.toLowerCase().replace(/[\\%_]/g, '\\$&');
  add('search_text LIKE', word === undefined ? undefined : `%${word}%`);
  if (query.callerIds !== undefined) {
    values.push(query.callerIds);
    const ids = `ANY ($${values.length}::uuid[])`;
    parts.push(`(caller_account = ${ids} OR caller_id = ${ids})`);
  }
  return { sql: parts.join(' AND '), values };
}

/** Returns the condition of a range; its values are computed here, so it is safe in a statement. */
export function part({ from, to }: TimeRange): string {
  return `day >= '${dayOf(from)}' AND day <= '${dayOf(to)}' AND id >= '${leastIdAt(from)}' AND id < '${leastIdAt(to)}'`;
}
