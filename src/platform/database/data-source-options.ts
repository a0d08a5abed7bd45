import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';
import type { DataSource, DataSourceOptions } from 'typeorm';
import { CONNECT_MS_MAX, prepareSession, type SessionSettings } from './session.js';

const here = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

const LIMITS = {
  statement_timeout: 30_000,
  // A process that freezes inside a transaction must not hold its locks indefinitely. A token refresh waits for 10 s in
  // one.
  idle_in_transaction_session_timeout: 30_000,
};

/** @param settings those of migrations and commands have no time limits */
export function dataSourceOptions(
  databaseUrl: string,
  poolMax: number,
  settings: SessionSettings = LIMITS,
): DataSourceOptions {
  return {
    type: 'postgres',
    url: databaseUrl,
    // Compiled or not, like this file: tests run the sources.
    migrations: [here(`../../../migrations/*${extname(import.meta.url)}`)],
    migrationsTransactionMode: 'each',
    uuidExtension: 'pgcrypto',
    installExtensions: false,
    poolSize: poolMax,
    applicationName: 'slipway',
    // A connection attempt that hangs must not hang a request; a healthy database responds in milliseconds.
    connectTimeoutMS: CONNECT_MS_MAX,
    extra: {
      idleTimeoutMillis: 30_000,
      // Behind a dead network, the database cannot enforce its own limit.
      ...(settings === LIMITS && { query_timeout: 35_000 }),
      onConnect: (client: ClientBase) => prepareSession(client, settings),
    },
  };
}

export function poolOf({ driver }: DataSource): Pool {
  return (driver as unknown as { master: Pool }).master;
}

/** Patterns of entity files, for processes that do not start Nest. */
export const entityFiles = ['modules', 'mcp', 'hosting', 'platform'].map((folder) =>
  here(`../../${folder}/**/*.entity.js`),
);
