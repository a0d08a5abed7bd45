import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';
import type { DataSource, DataSourceOptions } from 'typeorm';
import { CONNECT_MS_MAX, prepareSession, type SessionSettings } from './session.js';

const here = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** Time limits of requests and jobs. */
const LIMITS = {
  statement_timeout: 30_000,
  // A process that freezes inside a transaction must not hold its locks forever. A token refresh waits for 10 s in one.
  idle_in_transaction_session_timeout: 30_000,
};

/**
 * How every part of the service reaches Postgres: the app, the migrations and TypeORM's command line.
 *
 * @param settings those of migrations and commands, whose statements may take any time
 */
export function dataSourceOptions(
  databaseUrl: string,
  poolMax: number,
  settings: SessionSettings = LIMITS,
): DataSourceOptions {
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
    connectTimeoutMS: CONNECT_MS_MAX,
    extra: {
      idleTimeoutMillis: 30_000,
      // A database behind a dead network cannot keep its own limit.
      ...(settings === LIMITS && { query_timeout: 35_000 }),
      onConnect: (client: ClientBase) => prepareSession(client, settings),
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
