/**
 * Requirements for Postgres. Everything is read with two sessions, and nothing is written: a refused start leaves no
 * table behind.
 *
 * A pooler is recognized because two sessions share or lose a setting: the first session sets it, the second one holds
 * a transaction, then both read it. `application_name` would not show this, since poolers preserve it.
 */
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { Env } from '../../config/env.js';
import { openClient, UNLIMITED } from '../database/session.js';
import { POSTGRES_CONNECTIONS_MAX } from '../queue/queue-backend.js';
import { faultsOf, type Check, type Fault } from './check.js';
import { connectChecks } from './connect-checks.js';

export interface PostgresFacts {
  role: string;
  database: string;
  /** Schema for new tables; null: `search_path` names no existing schema. */
  schema: string | null;
  version: string;
  encoding: string;
  isStandby: boolean;
  isReadOnly: boolean;
  mayMakeSchemas: boolean;
  mayMakeTables: boolean;
  isOurs: boolean;
  hasQueue: boolean;
  mayUseQueue: boolean;
  /** Tables of the schema that belong neither to this service nor to an extension. */
  foreign: string[];
  /** Tables of this service that the role cannot read or write. */
  refused: string[];
  /** Tables of this service that belong to another role. */
  notOwned: string[];
  missing: string[];
  /** Extensions of the machine that the role cannot add to the database. */
  notAllowed: string[];
  /** True if a session keeps its settings between transactions, invisible to other sessions. */
  keepsSessions: boolean;
  processes: number;
  wanted: number;
  /** Number of connections available within the limits of Postgres, the database and the role. */
  usable: number;
  isWorker: boolean;
}

const OLDEST_MAJOR = 14;

const toNames = (names: string[]) => (names.length > 0 ? { names: names.slice(0, 5).join(', ') } : null);

/** Checks the version of Postgres; without a supported one, no other fact is read. */
const versionCheck: Check<Pick<PostgresFacts, 'version'>> = {
  asks: 'the version of Postgres',
  find: ({ version }) => (Number.parseInt(version) < OLDEST_MAJOR ? { version } : null),
  fault: 'Postgres {version} is too old',
  remedy: `use ${OLDEST_MAJOR} or newer`,
};

export const postgresFactChecks: Check<PostgresFacts>[] = [
  {
    asks: 'the encoding of the database',
    find: ({ encoding }) => (encoding === 'UTF8' ? null : { encoding }),
    fault: 'The encoding of the database is {encoding}',
    remedy: "use a database created with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`",
  },
  {
    asks: 'a primary',
    find: ({ isStandby }) => (isStandby ? {} : null),
    fault: 'Postgres is a standby, which takes no writes',
    remedy: 'name the primary in DATABASE_URL',
  },
  {
    asks: 'writes',
    find: ({ isReadOnly, isStandby, ...facts }) => (isReadOnly && !isStandby ? { ...roleOf(facts) } : null),
    fault: 'Transactions of the role "{role}" are read-only',
    remedy: '`ALTER DATABASE "{database}" RESET default_transaction_read_only`, or the same for the role',
  },
  {
    asks: 'session pooling',
    find: ({ keepsSessions }) => (keepsSessions ? null : {}),
    fault: 'The pooler in front of Postgres gives a session to other clients between transactions',
    remedy:
      'set its mode to session pooling (PgBouncer: `pool_mode = session`), or name Postgres itself in DATABASE_URL',
  },
  {
    asks: 'a schema for the tables',
    find: ({ schema, role }) => (schema === null ? { role } : null),
    fault: 'The `search_path` of the role "{role}" names no schema that it may use',
    remedy: '`CREATE SCHEMA IF NOT EXISTS public; GRANT USAGE, CREATE ON SCHEMA public TO "{role}"`',
  },
  {
    asks: 'no tables of another program',
    find: ({ foreign, schema, database }) =>
      foreign.length > 0 ? { ...toNames(foreign), schema: schema ?? '', database } : null,
    fault: 'The schema "{schema}" of the database "{database}" has tables of another program ({names})',
    remedy: 'use a database of its own: `CREATE DATABASE slipway`',
  },
  {
    asks: 'the right to make tables',
    find: ({ mayMakeTables, schema, isOurs, isWorker, role }) =>
      mayMakeTables || schema === null || (isOurs && !isWorker) ? null : { role, schema },
    fault: 'The role "{role}" cannot create tables in the schema "{schema}"',
    remedy: '`GRANT CREATE ON SCHEMA "{schema}" TO "{role}"`',
  },
  {
    asks: 'the right to make the schema of the queue',
    find: ({ mayMakeSchemas, hasQueue, ...facts }) => (mayMakeSchemas || hasQueue ? null : roleOf(facts)),
    fault: 'The role "{role}" cannot create the schema "bullmq" of the queue',
    remedy: '`GRANT CREATE ON DATABASE "{database}" TO "{role}"`',
  },
  {
    asks: 'rights on the schema of the queue',
    find: ({ hasQueue, mayUseQueue, role }) => (hasQueue && !mayUseQueue ? { role } : null),
    fault: 'The role "{role}" cannot use the schema "bullmq" of the queue',
    remedy: '`GRANT ALL ON SCHEMA bullmq TO "{role}"; GRANT ALL ON ALL TABLES IN SCHEMA bullmq TO "{role}"`',
  },
  {
    asks: 'rights on the tables',
    find: ({ refused, schema, role }) =>
      refused.length > 0 ? { ...toNames(refused), schema: schema ?? '', role } : null,
    fault: 'The role "{role}" cannot read and write all tables of the service ({names})',
    remedy: '`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO "{role}"`',
  },
  {
    asks: 'ownership of the tables',
    find: ({ notOwned, isWorker, role }) => (notOwned.length > 0 && isWorker ? { ...toNames(notOwned), role } : null),
    fault: 'Tables of the service do not belong to the role "{role}", which must alter them ({names})',
    remedy: '`REASSIGN OWNED BY … TO "{role}"`, or name their owner in DATABASE_URL',
  },
  {
    asks: 'the extensions on the machine of Postgres',
    find: ({ missing }) => toNames(missing),
    fault: 'Postgres has no extension {names}',
    remedy: 'install the package of its additional modules (Debian: `postgresql-contrib`)',
  },
  {
    asks: 'the right to the extensions',
    find: ({ notAllowed, ...facts }) => (notAllowed.length > 0 ? { ...toNames(notAllowed), ...roleOf(facts) } : null),
    fault: 'The role "{role}" cannot add the extensions {names} to the database',
    remedy:
      '`GRANT CREATE ON DATABASE "{database}" TO "{role}"`, or as a superuser in that database: ' +
      '`CREATE EXTENSION btree_gin; CREATE EXTENSION pg_trgm`',
  },
  {
    asks: 'enough connections',
    isFatal: false,
    find: ({ processes, wanted, usable }) => (wanted > usable ? { processes, wanted, usable } : null),
    fault: '{processes} processes of the service can open {wanted} connections, and Postgres has {usable} for them',
    remedy:
      'lower DATABASE_POOL_MAX, or raise `max_connections` or the limit of the role or the database (`CONNECTION LIMIT`); the ' +
      'number of processes includes one more for a restart',
  },
];

function roleOf({ role, database }: Pick<PostgresFacts, 'role' | 'database'>) {
  return { role, database };
}

export const postgresChecks: Check<never>[] = [...connectChecks, versionCheck, ...postgresFactChecks];

/** A table `migrations` is TypeORM's if it has its columns. */
const FACTS = `
  WITH tables AS (
    SELECT c.oid, c.relname AS name, c.relowner AS owner FROM pg_class c
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
       AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')),
  ours AS (SELECT count(*) = 3 AS yes FROM tables WHERE name IN ('migrations', 'namespaces', 'api_keys')),
  extensions AS (
    SELECT name, EXISTS (SELECT FROM pg_available_extensions a WHERE a.name = n.name) AS "isThere",
           role.rolsuper OR has_database_privilege(current_database(), 'CREATE') AND EXISTS (
             SELECT FROM pg_available_extension_versions v WHERE v.name = n.name AND trusted) AS "isAllowed"
      FROM unnest(ARRAY['btree_gin', 'pg_trgm']) AS n(name), pg_roles role
     WHERE role.rolname = current_user AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = n.name))
  SELECT current_user AS role, datname AS database, current_schema() AS schema,
         pg_encoding_to_char(encoding) AS encoding, pg_is_in_recovery() AS "isStandby",
         current_setting('transaction_read_only') = 'on' AS "isReadOnly",
         has_database_privilege(datname, 'CREATE') AS "mayMakeSchemas",
         coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayMakeTables",
         ours.yes AS "isOurs", to_regnamespace('bullmq') IS NOT NULL AS "hasQueue",
         coalesce(has_schema_privilege(to_regnamespace('bullmq'), 'USAGE'), false) AS "mayUseQueue",
         ARRAY(SELECT name::text FROM tables WHERE NOT ours.yes AND NOT (name IN ('migrations', 'module_migrations')
                 AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = tables.oid AND attname = 'timestamp'))
               ORDER BY name) AS "foreign",
         ARRAY(SELECT name::text FROM tables WHERE ours.yes AND NOT (
                 has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                 AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
               ORDER BY name) AS "refused",
         ARRAY(SELECT name::text FROM tables WHERE ours.yes AND NOT pg_has_role(owner, 'USAGE') ORDER BY name) AS "notOwned",
         ARRAY(SELECT name FROM extensions WHERE NOT "isThere") AS "missing",
         ARRAY(SELECT name FROM extensions WHERE "isThere" AND NOT "isAllowed") AS "notAllowed",
         least(
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
             - coalesce(current_setting('reserved_connections', true)::int, 0)
             - (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database other WHERE other.datname <> d.datname),
           CASE WHEN NOT rolsuper AND datconnlimit >= 0 THEN datconnlimit END,
           CASE WHEN NOT rolsuper AND rolconnlimit >= 0 THEN rolconnlimit END) AS usable
    FROM pg_database d, pg_roles r, ours WHERE datname = current_database() AND rolname = current_user`;

/** @returns the version, and the problems with it or with the connection */
export async function examinePostgres(env: Env): Promise<{ found: string; faults: Fault[] }> {
  const clients: Client[] = [];
  const open = async () => {
    const client = await openClient(env.databaseUrl ?? '', 'slipway-checks', UNLIMITED);
    clients.push(client);
    return client;
  };
  try {
    const first = await open();
    const { rows: versions } = await first.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    const [{ version }] = versions;
    const old = faultsOf([versionCheck], { version });
    if (old.length > 0) return { found: version, faults: old };
    const keepsSessions = await probeSessions(first, await open());
    const facts = (await first.query<PostgresFacts>(FACTS)).rows[0];
    const processes = facts.isOurs && facts.refused.length === 0 ? (await countProcesses(first)) + 1 : 1;
    const wanted =
      Math.max(processes, env.workers) * (env.databasePoolMax + (env.redisUrl === null ? POSTGRES_CONNECTIONS_MAX : 0));
    const isWorker = env.roles.includes('worker');
    return {
      found: version,
      faults: faultsOf(postgresFactChecks, { ...facts, version, keepsSessions, processes, wanted, isWorker }),
    };
  } catch (error) {
    const faults = faultsOf(connectChecks, error as Error);
    if (faults.length === 0) throw error;
    return { found: '', faults };
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function countProcesses(client: Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM processes WHERE lease_until > now()`,
  );
  return rows[0].count;
}

/** Returns true when the first session keeps a setting while the second one is in a transaction, and the second does not see it. */
async function probeSessions(first: Client, second: Client): Promise<boolean> {
  const value = randomUUID();
  const seenBy = async (client: Client) => {
    const { rows } = await client.query<{ value: string | null }>(
      `SELECT current_setting('slipway.probe', true) AS value`,
    );
    return rows[0].value === value;
  };
  try {
    await first.query(`SELECT set_config('slipway.probe', '${value}', false)`);
    await second.query('BEGIN');
    const isShared = await seenBy(second);
    const isKept = await seenBy(first);
    await second.query('COMMIT');
    return isKept && !isShared;
  } catch (error) {
    // In statement mode the pooler rejects the transaction as a violation of the protocol.
    if (/^(08P01|25...)$/.test((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
