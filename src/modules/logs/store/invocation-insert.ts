import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { dayOfId } from './invocation-days.js';
import { LINES_MAX, SEARCH_CHARS_MAX, searchTextOf, type InvocationRow } from './invocation-row.js';

/** Flushes that may add to one invocation. */
const JOBS_MAX = 200;

/** A record came before: it was sent again from elsewhere. Records of our own come once. */
const IS_REPEATED = 'kept.method IS NOT NULL AND excluded.method IS NOT NULL';

/** What is new in a list: of a record that was sent again, what was not in it before. */
const added = (column: string): string => `
  CASE WHEN ${IS_REPEATED} THEN coalesce((
         SELECT jsonb_agg(entry) FROM (SELECT jsonb_array_elements(excluded.${column})
                            EXCEPT ALL SELECT jsonb_array_elements(kept.${column})) AS news(entry)), '[]')
       ELSE excluded.${column} END`;

/** Both lists as one in the order of time, the earliest 1,000. */
const merged = (column: string): string => `
  CASE WHEN excluded.${column} = '[]' THEN kept.${column} WHEN kept.${column} = '[]' THEN excluded.${column}
       ELSE (SELECT jsonb_agg(entry ORDER BY at, place) FROM (
               SELECT entry, (entry ->> 'at')::bigint AS at, place
                 FROM jsonb_array_elements(kept.${column} || ${added(column)}) WITH ORDINALITY AS both_of(entry, place)
                ORDER BY at, place LIMIT ${LINES_MAX}) AS earliest) END`;

const surplus = (column: string): string =>
  `greatest(0, jsonb_array_length(kept.${column}) + jsonb_array_length(excluded.${column}) - ${LINES_MAX})`;

const columns = [
  ['id', 'uuid'],
  ['day', 'date'],
  ['server_id', 'uuid'],
  ['release_id', 'uuid'],
  ['at', 'timestamptz'],
  ['method', 'text'],
  ['url', 'text'],
  ['rpc_method', 'text'],
  ['tool_name', 'text'],
  ['status', 'integer'],
  ['outcome', 'text'],
  ['cpu_ms', 'real'],
  ['wall_ms', 'real'],
  ['lines', 'jsonb'],
  ['exceptions', 'jsonb'],
  ['payload', 'jsonb'],
  ['search_text', 'text'],
  ['left_out', 'integer'],
] as const;

const names = columns.map(([name]) => name).join(', ');
const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ');

/**
 * Keeps rows, or adds them to what is kept of the same invocations. A job that ran before changes nothing: each row
 * remembers the jobs it came from. Rows of servers that do not exist are passed over, and nobody adds to the invocation
 * of another server. A record that is sent again adds only what was not in it before. What a piece says of outcome and CPU time overrules what the record says, whichever came first.
 */
export const INSERT_INVOCATIONS = `
  INSERT INTO invocations AS kept (${names}, jobs)
  SELECT given.*, ARRAY[$${columns.length + 1}::integer]
    FROM unnest(${arrays}) AS given(${names})
   WHERE EXISTS (SELECT FROM servers WHERE servers.id = given.server_id)
  ON CONFLICT (id, day) DO UPDATE SET
    release_id = coalesce(kept.release_id, excluded.release_id),
    at = CASE WHEN excluded.method IS NULL THEN kept.at ELSE excluded.at END,
    method = coalesce(kept.method, excluded.method),
    url = coalesce(kept.url, excluded.url),
    rpc_method = coalesce(kept.rpc_method, excluded.rpc_method),
    tool_name = coalesce(kept.tool_name, excluded.tool_name),
    status = coalesce(kept.status, excluded.status),
    outcome = CASE WHEN excluded.method IS NULL THEN coalesce(excluded.outcome, kept.outcome)
                   ELSE coalesce(kept.outcome, excluded.outcome) END,
    cpu_ms = CASE WHEN excluded.method IS NULL THEN coalesce(excluded.cpu_ms, kept.cpu_ms)
                  ELSE coalesce(kept.cpu_ms, excluded.cpu_ms) END,
    wall_ms = coalesce(kept.wall_ms, excluded.wall_ms),
    lines = ${merged('lines')},
    exceptions = ${merged('exceptions')},
    payload = coalesce(kept.payload, excluded.payload),
    search_text = left(concat_ws(chr(10), nullif(kept.search_text, ''), nullif(excluded.search_text, '')), ${SEARCH_CHARS_MAX}),
    left_out = CASE WHEN ${IS_REPEATED} THEN greatest(kept.left_out, excluded.left_out)
                    ELSE kept.left_out + excluded.left_out + ${surplus('lines')} + ${surplus('exceptions')} END,
    jobs = kept.jobs || excluded.jobs
  WHERE kept.server_id = excluded.server_id AND NOT kept.jobs @> excluded.jobs
    AND cardinality(kept.jobs) < ${JOBS_MAX}`;

/** The values of {@link INSERT_INVOCATIONS}. `job` is a random number that stays the same when the job runs again. */
export function insertValues(rows: InvocationRow[], job: number): unknown[] {
  const column = <T>(pick: (row: InvocationRow) => T): T[] => rows.map(pick);
  return [
    column(({ id }) => id),
    column(({ id }) => dayOfId(id)),
    column(({ serverId }) => serverId),
    column(({ releaseId }) => releaseId),
    column(({ id, at }) => new Date(at ?? timeOfUuidV7(id)).toISOString()),
    column(({ method }) => method),
    column(({ url }) => url),
    column(({ rpcMethod }) => rpcMethod),
    column(({ toolName }) => toolName),
    column(({ status }) => status),
    column(({ outcome }) => outcome),
    column(({ cpuMs }) => cpuMs),
    column(({ wallMs }) => wallMs),
    column(({ lines }) => JSON.stringify(lines)),
    column(({ exceptions }) => JSON.stringify(exceptions)),
    column(({ payload }) => payload && JSON.stringify(payload)),
    column(searchTextOf),
    column(({ leftOut }) => leftOut),
    job,
  ];
}
