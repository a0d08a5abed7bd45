/**
 * Reads the recorded requests of everything that an account can see, newest first, of connections and servers together.
 *
 * Access is that of the logs of a single target: the owner, editors and grantees with level `manage` read all requests
 * of a connection; other callers read those of their own account. A request that both sides recorded is one row, of the
 * connection.
 *
 * Requests are read in windows of the newest {@link WINDOW}, regardless of the filters: along the index of each of a
 * few targets, or along the ids of all requests. If few match, the read continues in the next window. Requests beyond a
 * window are counted by a sample of the table's pages.
 *
 * A statement runs on one core for at most 10 s; an account can run two concurrently.
 */
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import {
  Env,
  errorOf,
  grantsTo,
  KeyedLimiter,
  namespacesOf,
  type Caller,
  type InvocationOutcome,
  type LogException,
  type LogLine,
} from '../../extension.js';

/** Limit of a statement, and of the wait for others. */
const STATEMENT_MS_MAX = 10_000;

/** Number of requests in a window, and of requests that are counted without a sample. */
export const WINDOW = 10_000;

/** Limit of targets whose requests are read along their own index. */
const FEW_TARGETS_MAX = 50;

/** Number of Postgres pages (8 KB) in the sample of a count. */
const SAMPLE_PAGES = 1_000;
const PAGE_BYTES = 8_192;

const QUERY_CANCELED = '57014';

const TOO_LONG = 'The search took longer than 10 s: choose a shorter period or a target';

class CallsTimeoutError extends errorOf('timeout') {}

export interface CallFilter {
  from: Date;
  target?: string;
  account?: string;
  tool?: string;
  outcome?: InvocationOutcome;
  /** True to include requests of the protocol itself, such as `initialize`. */
  isAll: boolean;
  before?: string;
  least?: string;
}

export interface FoundCalls {
  calls: FoundCall[];
  /** The id before which more might match; null if all were read. */
  end: string | null;
}

export interface FoundCall {
  id: string;
  at: Date;
  kind: 'connection' | 'server';
  target: string;
  tool: string | null;
  /** JSON-RPC method; null if the message could not be parsed. */
  method: string | null;
  outcome: InvocationOutcome;
  durationMs: number;
  /** Null for a request of Slipway itself. */
  callerId: string | null;
  /** Null after the deletion of the account. */
  accountName: string | null;
  credentialId: string | null;
  credentialKind: 'key' | 'oauth' | 'session' | null;
  /** The name of an API key or an app; null after it was revoked or has expired. */
  credentialName: string | null;
  /** The name that the MCP client reports. */
  client: string | null;
  exceptions: LogException[];
}

export interface StoredCall extends FoundCall {
  lines: LogLine[];
  /** Null unless the owner of the server records payloads and the reader manages the server. */
  payload: { arguments: string | null; result: string | null } | null;
}

export interface CallCounts {
  counts: CallCount[];
  isEstimated: boolean;
}

/** The number of requests with an outcome in a part of the range, from `start` on, in milliseconds since 1970. */
export interface CallCount {
  start: number;
  outcome: InvocationOutcome;
  calls: number;
}

/** Matches requests that every client sends before and between calls. */
const isProtocol = (method: string) =>
  `coalesce(${method} LIKE '%/list' OR ${method} LIKE 'notifications/%'
     OR ${method} IN ('initialize', 'ping', 'server/discover', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'), false)`;

/**
 * SQL of the targets of the account $1: $2 are the accounts of which it reads all requests, $3 those of which it reads at
 * least its own; $4: the name of some targets; $5: the only namespaces.
 */
const TARGETS = `held AS MATERIALIZED ${grantsTo('$1::uuid')},
  visible AS MATERIALIZED (
    SELECT false AS "isServer", c.id, n.name || '/' || c.connection_id AS name,
           CASE WHEN n.account_id = ANY ($3::uuid[]) THEN n.account_id = ANY ($2::uuid[])
                ELSE EXISTS (SELECT FROM held g WHERE g."ownLevel" = 'manage' AND (g.connection_id = c.id OR g.namespace_id = n.id))
           END AS "isOpen"
      FROM connections c JOIN namespaces n ON n.id = c.namespace_id
     WHERE n.account_id = ANY ($3::uuid[]) OR c.id IN (SELECT g.connection_id FROM held g)
        OR n.id IN (SELECT g.namespace_id FROM held g)
     UNION ALL
    SELECT true, s.id, concat_ws('/', n.name, nullif(s.name, '')), true
      FROM servers s JOIN namespaces n ON n.id = s.namespace_id
     WHERE n.account_id = ANY ($2::uuid[])
        OR EXISTS (SELECT FROM held g WHERE g."ownLevel" = 'manage' AND (g.server_id = s.id OR g.namespace_id = n.id))),
  chosen AS MATERIALIZED (
    SELECT * FROM visible WHERE ($4::text IS NULL OR name = $4 OR starts_with(name, $4 || '/'))
       AND ($5::text[] IS NULL OR split_part(name, '/', 1) = ANY ($5)))`;

const SIDES = {
  connection: {
    key: 'i.connection_id',
    caller: `i.call #>> '{caller,account}'`,
    credential: `i.call #>> '{caller,credential}'`,
    tool: `i.call ->> 'toolName'`,
    method: `i.call ->> 'rpcMethod'`,
    outcome: `coalesce(i.call ->> 'outcome', 'unknown')`,
    columns: `round((i.call #>> '{timing,totalMs}')::numeric)::int AS "durationMs", i.call #>> '{caller,kind}' AS "credentialKind",
      i.call #>> '{caller,client}' AS client,
      CASE WHEN t."isOpen" THEN coalesce(i.call -> 'exceptions', '[]') ELSE '[]' END AS exceptions`,
    lines: `CASE WHEN t."isOpen" THEN coalesce(i.call -> 'lines', '[]') ELSE '[]' END`,
    condition: `i.call -> 'status' IS NOT NULL AND (t."isOpen" OR i.call #>> '{caller,account}' = $1::text)`,
  },
  server: {
    key: 'i.server_id',
    caller: 'i.caller_account::text',
    credential: 'i.caller_id::text',
    tool: 'i.tool_name',
    method: 'i.rpc_method',
    outcome: `coalesce(i.outcome, 'unknown')`,
    columns: `round(i.wall_ms)::int AS "durationMs", i.caller_kind AS "credentialKind", i.caller_client AS client, i.exceptions`,
    lines: 'i.lines',
    condition: 'true',
  },
} as const;

/** Compares a boolean: Postgres estimates that half of the rows match, and chooses the join accordingly. */
const kindIs = (kind: keyof typeof SIDES) => (kind === 'server' ? 't."isServer"' : 'NOT t."isServer"');

/** Reads at most `limit` of all requests, or of each target along its index. */
function sideOf(kind: keyof typeof SIDES, { conditions, limit, columns, isWide, sample = '' }: SideQuery): string {
  const side = SIDES[kind];
  const columnsOf = `i.id, i.at, ${side.outcome} AS outcome${columns(side)}`;
  const condition = `${side.key} = t.id AND ${side.condition} AND ${conditions(side)}`;
  const newest = limit === null ? '' : `ORDER BY i.id DESC LIMIT ${limit}`;
  return isWide
    ? `(SELECT '${kind}' AS kind, t.name AS target, ${columnsOf} FROM chosen t JOIN invocations i ${sample} ON ${condition} WHERE ${kindIs(kind)} ${newest})`
    : `SELECT '${kind}' AS kind, t.name AS target, x.* FROM chosen t CROSS JOIN LATERAL
        (SELECT ${columnsOf} FROM invocations i WHERE ${condition} ${newest || 'OFFSET 0'}) x WHERE ${kindIs(kind)}`;
}

const ofEachTarget = (query: (key: string) => string) =>
  (['connection', 'server'] as const)
    .map((kind) => `SELECT x.* FROM chosen t CROSS JOIN LATERAL (${query(SIDES[kind].key)}) x WHERE ${kindIs(kind)}`)
    .join(' UNION ALL ');

type Side = (typeof SIDES)[keyof typeof SIDES];

interface SideQuery {
  conditions: (side: Side) => string;
  /** Null for all. */
  limit: number | null;
  columns: (side: Side) => string;
  /** Reads along the ids of all requests, because there are many targets. */
  isWide: boolean;
  sample?: string;
}

const bothSides = (query: SideQuery) =>
  `found AS (${sideOf('connection', query)} UNION ALL ${sideOf('server', query)}),
   calls AS (SELECT DISTINCT ON (id) * FROM found ORDER BY id DESC, kind)`;

const shownColumns = (side: Side) =>
  `, ${side.tool} AS tool, ${side.method} AS method, ${side.caller} AS "callerId", ${side.credential} AS "credentialId", ${side.columns}`;

const NAMED = `SELECT c.id, c.at, c.kind, c.target, c.tool, c.method, c.outcome, coalesce(c."durationMs", 0) AS "durationMs", c."callerId",
    (SELECT a.name FROM accounts a WHERE a.id = c."callerId"::uuid) AS "accountName", c."credentialId", c."credentialKind",
    coalesce((SELECT k.name FROM api_keys k WHERE k.id = c."credentialId"::uuid),
             (SELECT g.client_name FROM as_grants g WHERE g.id = c."credentialId"::uuid)) AS "credentialName", c.client, c.exceptions`;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The last millisecond of the year 9999. Later times do not fit a date of Postgres. */
const TIME_MAX = 253_402_300_799_999;

const dayOf = (time: number) => new Date(Math.min(time, TIME_MAX)).toISOString().slice(0, 10);
function leastIdAt(time: number): string {
  const hex = time.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
const timeOfId = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

@Injectable()
export class CallsRepository {
  private readonly slots: KeyedLimiter;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    env: Env,
  ) {
    this.slots = KeyedLimiter.fair(Math.max(2, Math.floor(env.databasePoolMax / 4)), STATEMENT_MS_MAX);
  }

  /**
   * Returns the newest matching requests, of one window, and of further ones while there are fewer than `limit`.
   *
   * @param forMs time after which no further window is read @throws CallsTimeoutError, NoSlotError
   */
  list(caller: Caller, filter: CallFilter, limit: number, forMs: number): Promise<FoundCalls> {
    return this.read(caller, async (tx) => {
      const startedMs = performance.now();
      const calls: FoundCall[] = [];
      let end: string | null | undefined = filter.before;
      do {
        const before = end;
        const window = await windowOf(tx, caller, { ...filter, before });
        const { isWide } = window;
        end = window.end;
        const { conditions, values } = conditionsOf(caller, { ...filter, before, least: end ?? undefined });
        const missing = limit - calls.length;
        const newest = await tx.query<FoundCall[]>(
          `WITH ${TARGETS}, ${bothSides({ conditions, limit: missing, columns: shownColumns, isWide })}
           ${NAMED} FROM (SELECT * FROM calls ORDER BY id DESC LIMIT ${missing}) c ORDER BY c.id DESC`,
          values,
        );
        calls.push(...newest);
      } while (calls.length < limit && end !== null && performance.now() - startedMs < forMs);
      return { calls, end };
    });
  }

  /** Returns the newest matching requests, of all windows. @throws as `list` */
  async listAll(caller: Caller, filter: CallFilter, limit: number): Promise<FoundCall[]> {
    const { calls, end } = await this.list(caller, filter, limit, STATEMENT_MS_MAX);
    if (calls.length < limit && end !== null) throw new CallsTimeoutError(TOO_LONG);
    return calls;
  }

  /** Returns the numbers of matching requests. @param partMs length of the parts @throws as `list` */
  count(caller: Caller, filter: CallFilter, partMs: number): Promise<CallCounts> {
    return this.read(caller, async (tx) => {
      const isWide = (await sizeOf(tx, caller, filter)).total > WINDOW;
      const share = isWide ? await sampleShare(tx, filter) : 1;
      const { conditions, values } = conditionsOf(caller, filter);
      const sample = share < 1 ? `TABLESAMPLE SYSTEM (${100 * share}) REPEATABLE (0)` : '';
      const counts = await tx.query<CallCount[]>(
        `WITH ${TARGETS}, ${bothSides({ conditions, limit: null, columns: () => '', isWide, sample })}
         SELECT floor(extract(epoch FROM at) * 1000 / ${partMs})::float8 * ${partMs} AS start, outcome, round(count(*) / ${share})::int AS calls
           FROM calls GROUP BY 1, 2`,
        values,
      );
      return { counts, isEstimated: share < 1 };
    });
  }

  /**
   * Returns a request with all stored fields; null if it does not exist or is hidden from the caller. @throws as `list`
   */
  async find(caller: Caller, id: string): Promise<StoredCall | null> {
    if (!UUID.test(id)) return null;
    const { conditions, values } = conditionsOf(caller, { from: new Date(0), isAll: true });
    const [day, key] = [`$${values.push(dayOf(timeOfId(id)))}::date`, `$${values.push(id)}::uuid`];
    const columns = (side: Side) =>
      `${shownColumns(side)}, ${side.lines} AS lines,
       CASE WHEN i.server_id IN (SELECT v.id FROM visible v WHERE v."isServer") THEN i.payload END AS payload`;
    const conditionsOfOne = (side: Side) => `i.id = ${key} AND i.day = ${day} AND ${conditions(side)}`;
    const sql = `WITH ${TARGETS}, ${bothSides({ conditions: conditionsOfOne, limit: 1, columns, isWide: true })} ${NAMED}, c.lines, c.payload FROM calls c`;
    const [call] = await this.read(caller, (tx) => tx.query<StoredCall[]>(sql, values));
    return call ?? null;
  }

  private read<T>(caller: Caller, work: (tx: EntityManager) => Promise<T>): Promise<T> {
    return this.slots.run(caller.accountId, async () => {
      try {
        return await this.database.transaction(async (tx) => {
          // With the default page cost, Postgres would scan the primary key, past the requests of all others.
          await tx.query(
            `SELECT set_config('statement_timeout', '${STATEMENT_MS_MAX}', true), set_config('jit', 'off', true),
                    set_config('max_parallel_workers_per_gather', '0', true), set_config('random_page_cost', '1.1', true)`,
          );
          return work(tx);
        });
      } catch (error) {
        if ((error as { driverError?: { code?: string } }).driverError?.code !== QUERY_CANCELED) throw error;
        throw new CallsTimeoutError(TOO_LONG);
      }
    });
  }
}

async function sizeOf(tx: EntityManager, caller: Caller, filter: CallFilter) {
  const { range, values } = rangeOf(caller, filter);
  const some = ofEachTarget((key) => `SELECT FROM invocations i WHERE ${key} = t.id AND ${range} LIMIT ${WINDOW + 1}`);
  const [size] = await tx.query<[{ targets: number; total: number }]>(
    `WITH ${TARGETS}
     SELECT (SELECT count(*)::int FROM (SELECT FROM chosen LIMIT ${FEW_TARGETS_MAX + 1}) t) AS targets,
            (SELECT count(*)::int FROM (${some} LIMIT ${WINDOW + 1}) r) AS total`,
    values,
  );
  return size;
}

async function windowOf(tx: EntityManager, caller: Caller, filter: CallFilter) {
  const { targets, total } = await sizeOf(tx, caller, filter);
  if (total <= WINDOW) return { end: null, isWide: false };
  const isWide = targets > FEW_TARGETS_MAX;
  const { range, values } = rangeOf(caller, filter);
  const nth = (count: number, condition = 'true') =>
    `SELECT i.id FROM invocations i WHERE ${condition} AND ${range} ORDER BY i.id DESC OFFSET ${count - 1} LIMIT 1`;
  // A target with more than its share limits the window, because its older requests are not read.
  const few = ofEachTarget((key) => nth(Math.ceil(WINDOW / targets), `${key} = t.id`));
  const [{ end }] = await tx.query<[{ end: string | null }]>(
    `WITH ${TARGETS}
     SELECT least((${nth(WINDOW)}), ${isWide ? 'NULL' : `(SELECT f.id FROM (${few}) f ORDER BY f.id DESC LIMIT 1)`}) AS end`,
    values,
  );
  return { end, isWide: isWide && end !== null };
}

async function sampleShare(tx: EntityManager, { from }: CallFilter): Promise<number> {
  const [{ pages }] = await tx.query<[{ pages: number }]>(
    `SELECT coalesce(sum(pg_relation_size(oid)), 0)::float8 / ${PAGE_BYTES} AS pages FROM pg_class
      WHERE relname ~ '^invocations_[0-9]{8}$' AND relkind = 'r' AND pg_table_is_visible(oid)
        AND right(relname, 8) >= $1`,
    [dayOf(from.getTime()).replaceAll('-', '')],
  );
  return Math.min(1, SAMPLE_PAGES / pages);
}

function rangeOf(caller: Caller, { from, target, before, least }: CallFilter) {
  const { accountId, memberships } = caller;
  const accountsWith = (...roles: string[]) => [
    accountId,
    ...[...memberships].filter(([, role]) => roles.includes(role)).map(([id]) => id),
  ];
  const values: unknown[] = [
    accountId,
    accountsWith('owner', 'editor'),
    accountsWith('owner', 'editor', 'member'),
    target ?? null,
    namespacesOf(caller),
  ];
  const add = (value: unknown) => `$${values.push(value)}`;
  const end = before === undefined ? null : [add(dayOf(timeOfId(before))), add(before)];
  const first = least === undefined ? from.getTime() : timeOfId(least);
  const range = [
    `i.day >= ${add(dayOf(first))}::date AND i.id >= ${add(least ?? leastIdAt(first))}::uuid`,
    ...(end ? [`i.day <= ${end[0]}::date AND i.id < ${end[1]}::uuid`] : []),
  ].join(' AND ');
  return { range, values, add };
}

function conditionsOf(caller: Caller, filter: CallFilter) {
  const { account, tool, outcome, isAll } = filter;
  const { range, values, add } = rangeOf(caller, filter);
  const toolValue = tool === undefined ? null : add(tool);
  const outcomeValue = outcome === undefined ? null : add(outcome);
  const name = account === undefined ? null : add(account);
  const uuid = account !== undefined && UUID.test(account) ? `${add(account.toLowerCase())}::text` : null;
  const conditions = (side: Side) =>
    [
      range,
      toolValue && `${side.tool} = ${toolValue}`,
      outcomeValue && `${side.outcome} = ${outcomeValue}`,
      name &&
        `(${side.caller} = (SELECT a.id::text FROM accounts a WHERE a.name = ${name})${uuid ? ` OR ${uuid} IN (${side.caller}, ${side.credential})` : ''})`,
      !isAll && `NOT ${isProtocol(side.method)}`,
    ]
      .filter((part) => typeof part === 'string')
      .join(' AND ');
  return { conditions, values };
}
