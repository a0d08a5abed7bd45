import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Pool } from 'pg';
import type { DataSource, DataSourceOptions } from 'typeorm';

const here = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** How every part of the service reaches Postgres: the app, the migrations and TypeORM's command line. */
export function dataSourceOptions(databaseUrl: string, poolMax: number): DataSourceOptions {
  return {
    type: 'postgres',
    url: databaseUrl,
    // Compiled like this file, or not, as in tests.
    migrations: [here(`../../../migrations/*${extname(import.meta.url)}`)],
    migrationsTransactionMode: 'each',
    uuidExtension: 'pgcrypto',
    installExtensions: false,
    poolSize: poolMax,
    applicationName: 'slipway',
    // A connection attempt that hangs must not hang a request; a database that is up answers in milliseconds.
    connectTimeoutMS: 5_000,
    // The second bound is ours: a database behind a dead network cannot keep the first.
    extra: {
      idleTimeoutMillis: 30_000,
      statement_timeout: 30_000,
      query_timeout: 35_000,
      // A process that freezes inside a transaction must not hold its locks for ever. A token refresh waits for 10 s in one.
      idle_in_transaction_session_timeout: 30_000,
    },
  };
}

/** The pool that TypeORM's driver keeps for this database. */
export function poolOf({ driver }: DataSource): Pool {
  return (driver as unknown as { master: Pool }).master;
}

/** All entities, for processes that do not start Nest. */
export const entityFiles = ['modules', 'mcp', 'hosting', 'platform'].map((folder) =>
  here(`../../${folder}/**/*.entity.js`),
);
