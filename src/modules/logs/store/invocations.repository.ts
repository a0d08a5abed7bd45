/**
 * Writes the table `invocations`: one row per request, with the columns of the server's view and the JSON of the
 * connection's view. The table has a partition per day, by the time in the id (UUID version 7).
 *
 * Parts of one request arrive from several processes in any order: the caller's record, the runtime's outcome, lines
 * and exceptions. One `INSERT … ON CONFLICT` merges them; `jobs` lists the batches of a row, so that a repeated batch
 * changes nothing. `invocation_hours` counts a server's requests by hour, `account_log_days` the bytes of an account by
 * day.
 *
 * A row is deleted when its server and its connection no longer exist. Skips parts of owners that do not exist, or that
 * name another server than the row.
 */
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { PreparedStatement } from '../../../platform/database/prepared-statement.js';
import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { ENTRIES_MAX } from '../ingest/invocation-bounds.js';
import { answeredErrors, type ConnectionCall, type Invocation } from '../invocation.types.js';
import { dayOfId, HOUR_MS } from './invocation-days.js';

/** Maximum number of jobs that can add to one row. */
const JOBS_MAX = 200;

/** Maximum number of characters of an invocation that search reads. */
export const SEARCH_CHARS_MAX = 65_536;

/** Maximum number of rows per statement: longer statements would hold their locks for too long. */
const CLEAR_MAX = 5_000;

/** Time until a row that was being inserted during the deletion is visible: an insert takes at most 35 s. */
const LAST_CLEARING_AFTER = `interval '1 minute'`;

/** Time until a deleted owner is claimed again, even if the process that claimed it died. */
const NEXT_CLEARING_AFTER = `interval '2 minutes'`;

/** The sides of an invocation that can be deleted. */
export type InvocationOwnerKind = 'server' | 'connection';

/** A deleted server or connection that still has rows. */
export interface DeletedOwner {
  kind: InvocationOwnerKind;
  id: string;
  /** True if no insert that started before the deletion can still be running. */
  isLast: boolean;
}

/** SQL condition that both rows have the part with `method`: servers elsewhere can send a record again. */
const IS_REPEATED = 'stored.method IS NOT NULL AND excluded.method IS NOT NULL';

/**
 * Returns the SQL of new entries that are not among the old ones, in their order. Among equal entries, only those beyond the old
 * number are new.
 */
const notIn = (stored: string, added: string): string => `
  coalesce((SELECT jsonb_agg(entry ORDER BY place)
              FROM (SELECT entry, place, row_number() OVER (PARTITION BY entry ORDER BY place) AS copy
                      FROM jsonb_array_elements(${added}) WITH ORDINALITY AS numbered(entry, place)) AS news
              LEFT JOIN (SELECT entry, count(*) AS copies FROM jsonb_array_elements(${stored}) AS old(entry) GROUP BY entry)
                AS olds USING (entry)
             WHERE copy > coalesce(copies, 0)), '[]')`;

/** Returns the SQL of both lists in time order, the earliest 1,000 entries. */
const mergeLists = (stored: string, added: string, isRepeated: string): string => `
  CASE WHEN ${added} = '[]' THEN ${stored} WHEN ${stored} = '[]' THEN ${added}
       ELSE (SELECT jsonb_agg(entry ORDER BY at, place) FROM (
               SELECT entry, (entry ->> 'at')::bigint AS at, place
                 FROM jsonb_array_elements(${stored} || CASE WHEN ${isRepeated} THEN ${notIn(stored, added)} ELSE ${added} END)
                      WITH ORDINALITY AS both_of(entry, place)
                ORDER BY at, place LIMIT ${ENTRIES_MAX}) AS earliest) END`;

const ANSWERED_ERRORS = answeredErrors.map((outcome) => `'${outcome}'`).join(', ');

const mergedColumn = (name: string): string => mergeLists(`stored.${name}`, `excluded.${name}`, IS_REPEATED);

const mergedMember = (name: string): string =>
  mergeLists(`(stored.call -> '${name}')`, `(excluded.call -> '${name}')`, 'true');

const surplus = (column: string): string =>
  `greatest(0, jsonb_array_length(stored.${column}) + jsonb_array_length(excluded.${column}) - ${ENTRIES_MAX})`;

/**
 * A column of the server's view: its name, its type, its value for a part, and its value after the server was deleted.
 */
type Column = readonly [name: string, type: string, of: (row: Invocation) => unknown, cleared?: string];

const serverColumns: readonly Column[] = [
  ['release_id', 'uuid', ({ releaseId }) => releaseId],
  ['method', 'text', ({ method }) => method],
  ['url', 'text', ({ url }) => url],
  ['rpc_method', 'text', ({ rpcMethod }) => rpcMethod],
  ['tool_name', 'text', ({ toolName }) => toolName],
  ['status', 'integer', ({ status }) => status],
  ['outcome', 'text', ({ outcome }) => outcome],
  ['cpu_ms', 'real', ({ cpuMs }) => cpuMs],
  ['wall_ms', 'real', ({ wallMs }) => wallMs],
  ['lines', 'jsonb', ({ lines }) => jsonOf(lines), `'[]'`],
  ['exceptions', 'jsonb', ({ exceptions }) => jsonOf(exceptions), `'[]'`],
  ['payload', 'jsonb', ({ payload }) => payload && JSON.stringify(payload)],
  ['search_text', 'text', searchTextOf, `''`],
  ['left_out', 'integer', ({ leftOut }) => leftOut ?? 0, '0'],
  ['caller_account', 'uuid', ({ caller }) => caller?.account],
  ['caller_kind', 'text', ({ caller }) => caller?.kind],
  ['caller_id', 'uuid', ({ caller }) => caller?.credential],
  ['caller_client', 'text', ({ caller }) => caller?.client],
];

const insertedColumns: readonly Column[] = [
  ['id', 'uuid', ({ id }) => id],
  ['day', 'date', ({ id }) => dayOfId(id)],
  ['server_id', 'uuid', ({ serverId }) => serverId],
  ['at', 'timestamptz', timestampOf],
  ...serverColumns,
];

const firstKnown = [
  ...['release_id', 'method', 'url', 'rpc_method', 'tool_name', 'status', 'wall_ms', 'payload'],
  ...['caller_account', 'caller_kind', 'caller_id', 'caller_client'],
]
  .map((name) => `${name} = coalesce(stored.${name}, excluded.${name})`)
  .join(', ');

const names = insertedColumns.map(([name]) => name).join(', ');
const arrays = insertedColumns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ');

/** The values of `input`. A column whose rows are all equal arrives as one element, which unnest() fills with NULL. */
const inputs = insertedColumns
  .map(([name], index) => `CASE cardinality($${index + 1}) WHEN 1 THEN ($${index + 1})[1] ELSE input.${name} END`)
  .join(', ');

/**
 * Inserts parts of the server's view, or merges them into the rows with their ids. A job that ran before changes
 * nothing: `jobs` lists those of a row. Parts of deleted servers are skipped, and a part never changes the invocation
 * of another server. Outcome and CPU time of a part without `method` override those of the part with it, in any order;
 * its `ok` does not override an error that the server returned. The first part of a server, for which `jobs` has one
 * entry, counts the invocation in the hour of its id. Rows and hours are sorted to avoid deadlocks.
 */
export const INSERT_INVOCATIONS = `
 WITH written AS (
  INSERT INTO invocations AS stored (${names}, jobs)
  SELECT input.*, ARRAY[$${insertedColumns.length + 1}::integer]
    FROM (SELECT ${inputs} FROM unnest(${arrays}) AS input(${names})) AS input(${names})
   WHERE EXISTS (SELECT FROM servers WHERE servers.id = input.server_id)
   ORDER BY id
  ON CONFLICT (id, day) DO UPDATE SET
    server_id = excluded.server_id,
    at = CASE WHEN excluded.method IS NULL THEN stored.at ELSE excluded.at END,
    ${firstKnown},
    outcome = CASE WHEN stored.outcome = 'ok' AND excluded.outcome IN (${ANSWERED_ERRORS}) THEN excluded.outcome
                   WHEN excluded.outcome = 'ok' AND stored.outcome IN (${ANSWERED_ERRORS}) THEN stored.outcome
                   WHEN excluded.method IS NULL THEN coalesce(excluded.outcome, stored.outcome)
                   ELSE coalesce(stored.outcome, excluded.outcome) END,
    cpu_ms = CASE WHEN excluded.method IS NULL THEN coalesce(excluded.cpu_ms, stored.cpu_ms)
                  ELSE coalesce(stored.cpu_ms, excluded.cpu_ms) END,
    lines = ${mergedColumn('lines')},
    exceptions = ${mergedColumn('exceptions')},
    search_text = left(concat_ws(chr(10), nullif(stored.search_text, ''), nullif(excluded.search_text, '')), ${SEARCH_CHARS_MAX}),
    left_out = CASE WHEN ${IS_REPEATED} THEN greatest(stored.left_out, excluded.left_out)
                    ELSE stored.left_out + excluded.left_out + ${surplus('lines')} + ${surplus('exceptions')} END,
    jobs = stored.jobs || excluded.jobs
  WHERE (stored.server_id IS NULL OR stored.server_id = excluded.server_id) AND NOT stored.jobs @> excluded.jobs
    AND cardinality(stored.jobs) < ${JOBS_MAX}
  RETURNING server_id, id, cardinality(jobs) AS parts)
 INSERT INTO invocation_hours AS stored (server_id, hour, invocations)
 SELECT server_id, ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / ${HOUR_MS} AS hour, count(*)
   FROM written WHERE parts = 1 GROUP BY 1, 2 ORDER BY 1, 2
 ON CONFLICT (server_id, hour) DO UPDATE SET invocations = stored.invocations + excluded.invocations`;

/** Returns the values of each inserted column except `jobs`. */
export function columnValues(rows: Invocation[]): unknown[][] {
  return insertedColumns.map(([, , of]) => rows.map(of));
}

/** Returns the values of {@link INSERT_INVOCATIONS}. @param job a random number, the same if the job is repeated */
export function insertValues(rows: Invocation[], job: number): unknown[] {
  return [...insertedColumns.map(([, , of]) => columnLiteral(rows, of)), job];
}

/** Returns the array literal of a column; with one element if all rows have the same value. */
function columnLiteral(rows: Invocation[], of: (row: Invocation) => unknown): string {
  const first = of(rows[0]);
  const different = rows.findIndex((row) => of(row) !== first);
  if (different === -1) return `{${elementOf(first)}}`;
  let text = '';
  let previous = first;
  let element = elementOf(first);
  for (const row of rows) {
    const value = of(row);
    if (value !== previous) {
      previous = value;
      element = elementOf(value);
    }
    text += `,${element}`;
  }
  return `{${text.slice(1)}}`;
}

/**
 * Returns a column as an array literal of Postgres: strings quoted, numbers as they are, null and undefined as NULL.
 * The driver escapes each value with two replacements, which takes twice as long; JSON instead of arrays costs Postgres
 * more.
 */
function arrayLiteral(values: unknown[]): string {
  return `{${values.map(elementOf).join(',')}}`;
}

function elementOf(value: unknown): string {
  if (typeof value !== 'string') return value == null ? 'NULL' : `${value as number}`;
  return TO_ESCAPE.test(value) ? `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `"${value}"`;
}

const TO_ESCAPE = /["\\]/;

/**
 * Inserts parts of the connection's view, or merges them into the rows with their ids; parts can arrive twice. Does not
 * change `jobs`, the version of the server's view. Skips parts of deleted connections; the lock keeps the others until
 * the transaction ends.
 */
const INSERT_CALLS = `
  INSERT INTO invocations AS stored (id, day, at, connection_id, call, jobs)
  SELECT input.*, '{}'
    FROM unnest($1::uuid[], $2::date[], $3::timestamptz[], $4::uuid[], $5::jsonb[]) AS input(id, day, at, connection_id, call)
    JOIN connections ON connections.id = input.connection_id ORDER BY input.id FOR KEY SHARE OF connections
  ON CONFLICT (id, day) DO UPDATE SET
    connection_id = excluded.connection_id,
    call = CASE WHEN stored.call IS NULL THEN excluded.call
                ELSE stored.call || excluded.call
                     || jsonb_build_object('lines', ${mergedMember('lines')}, 'exceptions', ${mergedMember('exceptions')}) END
  WHERE stored.connection_id IS NULL OR stored.connection_id = excluded.connection_id`;

/**
 * Adds to the daily log size of the accounts that own servers or connections, except accounts that have reached their
 * own limit, or the default share `$3` once all together have written `$4`. Accounts are sorted to avoid deadlocks.
 *
 * @returns the servers or connections of the charged accounts
 */
const charge = (table: 'servers' | 'connections') => `
  WITH part AS MATERIALIZED (
         SELECT input.*, n.account_id FROM unnest($1::uuid[], $2::bigint[]) AS input(owner_id, bytes)
           JOIN ${table} held ON held.id = input.owner_id JOIN namespaces n ON n.id = held.namespace_id),
       charged AS (
         INSERT INTO account_log_days AS stored
         SELECT account_id, (now() AT TIME ZONE 'UTC')::date, sum(bytes) FROM part GROUP BY 1 ORDER BY 1
         ON CONFLICT (account_id, day) DO UPDATE SET bytes = stored.bytes + excluded.bytes
          WHERE coalesce(stored.bytes < (SELECT value FROM account_limits l
                                          WHERE l.account_id = stored.account_id AND l.name = 'logBytesPerDay'),
                         stored.bytes < $3 OR $4 > (SELECT sum(bytes) FROM account_log_days
                                                     WHERE day = (now() AT TIME ZONE 'UTC')::date))
         RETURNING account_id)
  SELECT DISTINCT owner_id AS id FROM part
   WHERE account_id NOT IN (SELECT account_id FROM charged)`;

const INSERT_INVOCATIONS_PREPARED = new PreparedStatement(INSERT_INVOCATIONS);
const INSERT_CALLS_PREPARED = new PreparedStatement(INSERT_CALLS);
const CHARGE = {
  servers: new PreparedStatement<{ id: string }>(charge('servers')),
  connections: new PreparedStatement<{ id: string }>(charge('connections')),
};

const COUNT_LEFT_OUT = `
  INSERT INTO invocation_hours AS stored (server_id, hour, invocations, left_out)
  SELECT server_id, hour, 0, count(*) FROM unnest($1::uuid[], $2::integer[]) AS input(server_id, hour)
   GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (server_id, hour) DO UPDATE SET left_out = stored.left_out + excluded.left_out`;

const CLAIM_DELETED = `
  UPDATE deleted_invocation_owners SET due_at = now() + ${NEXT_CLEARING_AFTER}
   WHERE owner_id IN (SELECT owner_id FROM deleted_invocation_owners WHERE due_at <= now()
                       ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING kind, owner_id AS id, deleted_at < now() - ${LAST_CLEARING_AFTER} AS "isLast"`;

/** For each side: its column, the column of the other side, and the values after its deletion. */
const sides = {
  server: {
    own: 'server_id',
    other: 'connection_id',
    cleared: `server_id = NULL, jobs = '{}', ${serverColumns.map(([name, , , cleared = 'NULL']) => `${name} = ${cleared}`).join(', ')}`,
  },
  connection: { own: 'connection_id', other: 'server_id', cleared: 'connection_id = NULL, call = NULL' },
};

@Injectable()
export class InvocationsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Writes server parts. Ids must be UUIDs of version 7 whose days have partitions, and sorted to avoid deadlocks. */
  async insert(rows: Invocation[], job: number, tx?: EntityManager): Promise<void> {
    const values = insertValues(rows, job);
    await (tx ? tx.query(INSERT_INVOCATIONS, values) : INSERT_INVOCATIONS_PREPARED.run(this.database, values));
  }

  /** Writes connection parts, with the same requirements. */
  async insertCalls(calls: ConnectionCall[]): Promise<void> {
    const columns = [
      calls.map(({ id }) => id),
      calls.map(({ id }) => dayOfId(id)),
      calls.map(timestampOf),
      calls.map(({ connectionId }) => connectionId),
      calls.map(({ id: _id, connectionId: _connectionId, ...call }) => JSON.stringify(call)),
    ];
    await INSERT_CALLS_PREPARED.run(this.database, columns.map(arrayLiteral));
  }

  /**
   * Adds bytes to the logs that accounts write today.
   *
   * @param share bytes of an account without its own limit, once all accounts have written `shared` bytes
   * @returns owners whose account cannot write more: their parts were not charged, and must not be stored
   */
  async charge(
    table: 'servers' | 'connections',
    bytes: Map<string, number>,
    { share, shared }: { share: number; shared: number },
    tx?: EntityManager,
  ): Promise<Set<string>> {
    const values = [[...bytes.keys()], [...bytes.values()], share, shared];
    const statement = CHARGE[table];
    const full = await (tx ? tx.query<{ id: string }[]>(statement.text, values) : statement.run(this.database, values));
    return new Set(full.map(({ id }) => id));
  }

  /** Counts unstored invocations in the hours of their ids. */
  async countLeftOut(rows: Invocation[], tx: EntityManager = this.database.manager): Promise<void> {
    const hours = rows.map(({ id }) => Math.floor(timeOfUuidV7(id).getTime() / HOUR_MS));
    await tx.query(COUNT_LEFT_OUT, [rows.map(({ serverId }) => serverId), hours]);
  }

  /** Deletes the counts of the days before yesterday. */
  async forgetCharges(now: Date): Promise<void> {
    await this.database.query(
      `DELETE FROM account_log_days WHERE day < ($1::timestamptz AT TIME ZONE 'UTC')::date - 1`,
      [now],
    );
  }

  /** Claims a deleted server or connection whose rows are due for clearing; undefined without one. */
  async claimDeleted(): Promise<DeletedOwner | undefined> {
    const [[claimed]] = await this.database.query<[DeletedOwner[], number]>(CLAIM_DELETED);
    return claimed;
  }

  /**
   * Clears one side of up to 5,000 rows of a day, and deletes those without another side. Clears first: if two
   * processes clear both sides of a row concurrently, the second sees that the row has no other side.
   *
   * @returns the number of rows changed; call again until 0
   */
  async clear({ kind, id }: DeletedOwner, day: string): Promise<number> {
    const { own: ownColumn, other, cleared } = sides[kind];
    const rowsWhere = (condition: string) =>
      `${condition} AND id = ANY (ARRAY(SELECT id FROM invocations WHERE ${condition} LIMIT ${CLEAR_MAX}))`;
    const has = (state: string) => rowsWhere(`day = $1 AND ${ownColumn} = $2 AND ${other} ${state}`);
    const [, updated] = await this.database.query<[unknown, number]>(
      `UPDATE invocations SET ${cleared} WHERE ${has('IS NOT NULL')}`,
      [day, id],
    );
    const [, deleted] = await this.database.query<[unknown, number]>(
      `DELETE FROM invocations WHERE ${has('IS NULL')}`,
      [day, id],
    );
    return updated + deleted;
  }

  /** Deletes the counts of invocations before a day. */
  async forgetHours(day: string): Promise<void> {
    await this.database.query('DELETE FROM invocation_hours WHERE hour < $1', [Date.parse(day) / HOUR_MS]);
  }

  /** Removes an owner whose rows are cleared. */
  async forgetDeleted({ id }: DeletedOwner): Promise<void> {
    await this.database.query('DELETE FROM invocation_hours WHERE server_id = $1', [id]);
    await this.database.query('DELETE FROM deleted_invocation_owners WHERE owner_id = $1', [id]);
  }
}

function jsonOf(entries: unknown[]): string {
  return entries.length === 0 ? '[]' : JSON.stringify(entries);
}

function timestampOf({ id, at }: Invocation | ConnectionCall): string {
  return new Date(at ?? timeOfUuidV7(id)).toISOString();
}

/** Returns the string that search reads: messages and exceptions, one per line, in lower case. */
function searchTextOf({ lines, exceptions }: Invocation): string {
  if (lines.length === 0 && exceptions.length === 0) return '';
  const messages = lines.map(({ message }) => message);
  const thrown = exceptions.map(({ name, message }) => `${name}: ${message}`);
  return [...messages, ...thrown].join('\n').toLowerCase().slice(0, SEARCH_CHARS_MAX).toWellFormed();
}
