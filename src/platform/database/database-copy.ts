import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { escapeIdentifier, type Client } from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { ExternalModule } from '../external-modules/load-external-modules.js';
import { appliedMigrations, migrate } from './migrations.js';
import { COPY_NAME, openClient, UNLIMITED } from './session.js';

export interface TableOutline {
  name: string;
  columns: string[];
  rows: number;
  /** Null for a table that is not a partition; otherwise its parent and its range, as SQL. */
  partition: { of: string; bound: string } | null;
}

export interface DatabaseOutline {
  migrations: string[];
  tables: TableOutline[];
  sequences: Record<string, string>;
}

/** Tables that are not copied: migrations record themselves, and processes and their leases do not outlive the service. */
const OWN_ROWS = ['migrations', 'module_migrations', 'processes'];

/** Days of logs without a parent are about to be dropped. */
const TABLES = `
  SELECT c.relname AS name,
         (SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns,
         CASE WHEN c.relispartition
              THEN json_build_object('of', p.relname, 'bound', pg_get_expr(c.relpartbound, c.oid)) END AS partition
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
   WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1)
     AND (c.relispartition OR c.relname !~ '^invocations_[0-9]{8}$')
   ORDER BY c.relname`;

const SEQUENCES = `
  SELECT sequencename AS name, last_value::text AS value FROM pg_sequences
   WHERE schemaname = current_schema() AND last_value IS NOT NULL`;

const FOREIGN_KEYS = `
  SELECT conrelid::regclass::text AS table, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
    FROM pg_constraint
   WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace`;

/** Range of a day of logs, as `pg_get_expr` writes it. It becomes part of a statement, so nothing else is accepted. */
const BOUND_OF_DAY = /^FOR VALUES FROM \('\d{4}-\d\d-\d\d'\) TO \('\d{4}-\d\d-\d\d'\)$/;

/** A snapshot of the database. Tables cannot be altered or dropped until it is closed. */
export class DatabaseSnapshot {
  private constructor(private readonly client: Client) {}

  /** @throws the error of Postgres */
  static async open(databaseUrl: string): Promise<DatabaseSnapshot> {
    const client = await connect(databaseUrl);
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const tables = (await tablesOf(client)).map(({ name }) => escapeIdentifier(name));
    if (tables.length > 0) await client.query(`LOCK TABLE ${tables.join()} IN ACCESS SHARE MODE`);
    return new DatabaseSnapshot(client);
  }

  async outline(): Promise<DatabaseOutline> {
    const tables: TableOutline[] = [];
    for (const table of await tablesOf(this.client)) tables.push({ ...table, rows: await count(this.client, table) });
    const sequences = await this.query<{ name: string; value: string }[]>(SEQUENCES);
    return {
      migrations: await appliedMigrations(this),
      tables,
      sequences: Object.fromEntries(sequences.map(({ name, value }) => [name, value])),
    };
  }

  /** Reads a table in Postgres' text format. Read the stream to the end before the next query. */
  read({ name, columns }: TableOutline): Readable {
    return this.client.query(copyTo(`COPY ${escapeIdentifier(name)} (${listOf(columns)}) TO STDOUT`));
  }

  async query<T>(sql: string, parameters?: unknown[]): Promise<T> {
    return (await this.client.query(sql, parameters)).rows as T;
  }

  async namespacesAmong(names: string[]): Promise<string[]> {
    const rows = await this.query<{ name: string }[]>(
      'SELECT name FROM namespaces WHERE name = ANY ($1) ORDER BY name',
      [names],
    );
    return rows.map(({ name }) => name);
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}

/**
 * Fills an empty database in one transaction. The version remains that of the outline; the next start migrates the
 * tables.
 *
 * @param read rows of a table, as {@link DatabaseSnapshot.read} returns them
 * @param beforeCommit runs when all rows are loaded; nothing is stored if it fails
 * @throws Error when a table already has rows, or not as many as in the outline, or the range of a partition is not a
 * day; SchemaVersionError
 */
export async function loadDatabase(
  databaseUrl: string,
  { migrations, tables, sequences }: DatabaseOutline,
  modules: ExternalModule[],
  read: (table: TableOutline) => Readable,
  beforeCommit: () => Promise<void>,
): Promise<void> {
  for (const { name, partition } of tables) {
    if (partition && !BOUND_OF_DAY.test(partition.bound)) {
      throw new Error(`${name} has the bound ${partition.bound}, which is not that of a day. Use another backup.`);
    }
  }
  const client = await connect(databaseUrl);
  try {
    for (const table of await tablesOf(client)) {
      if ((await count(client, table)) > 0) {
        throw new Error(`The database is not empty, it has rows in ${table.name}: use another one.`);
      }
    }
    await migrate(databaseUrl, undefined, modules, migrations);
    await client.query('BEGIN');
    const { rows: foreignKeys } = await client.query<{ table: string; name: string; definition: string }>(FOREIGN_KEYS);
    // The order of the tables then does not matter, and each key is checked once for all rows.
    for (const { table, name } of foreignKeys) await client.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
    for (const table of tables) {
      const name = escapeIdentifier(table.name);
      if (table.partition) {
        const parent = escapeIdentifier(table.partition.of);
        await client.query(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING ALL)`);
        await client.query(`ALTER TABLE ${parent} ATTACH PARTITION ${name} ${table.partition.bound}`);
      }
      // Triggers fill columns that the rows already contain.
      await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
      await pipeline(read(table), client.query(copyFrom(`COPY ${name} (${listOf(table.columns)}) FROM STDIN`)));
      await client.query(`ALTER TABLE ${name} ENABLE TRIGGER USER`);
      const rows = await count(client, table);
      if (rows !== table.rows) throw new Error(`${table.name} has ${rows} rows, and should have ${table.rows}.`);
    }
    for (const { table, name, definition } of foreignKeys) {
      await client.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`);
    }
    for (const [name, value] of Object.entries(sequences)) {
      await client.query('SELECT setval(quote_ident($1)::regclass, $2)', [name, value]);
    }
    await beforeCommit();
    await client.query('COMMIT');
  } finally {
    await client.end();
  }
}

/** Connects without time limits: tables can be large, and the connection waits while files are copied. */
function connect(databaseUrl: string): Promise<Client> {
  return openClient(databaseUrl, COPY_NAME, { ...UNLIMITED, datestyle: 'ISO', intervalstyle: 'postgres' });
}

async function tablesOf(client: Client): Promise<Omit<TableOutline, 'rows'>[]> {
  return (await client.query<Omit<TableOutline, 'rows'>>(TABLES, [OWN_ROWS])).rows;
}

async function count(client: Client, { name }: { name: string }): Promise<number> {
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM ${escapeIdentifier(name)}`);
  return Number(rows[0].count);
}

function listOf(columns: string[]): string {
  return columns.map((column) => escapeIdentifier(column)).join();
}
