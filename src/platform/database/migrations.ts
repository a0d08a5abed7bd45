import { DataSource } from 'typeorm';
import { dataSourceOptions } from './data-source-options.js';

/** Any constant: processes that start together wait for each other on it. TypeORM itself takes no lock. */
const MIGRATION_LOCK = 7_265_017;

/** True when the database lacks migrations of this version. */
export async function pendingMigrations(databaseUrl: string): Promise<boolean> {
  const source = await new DataSource(dataSourceOptions(databaseUrl, 1)).initialize();
  try {
    return await source.showMigrations();
  } finally {
    await source.destroy();
  }
}

/**
 * Brings the database to this version, and runs `afterwards` before another process may start: what must happen once
 * per database belongs there. Safe to call from any number of processes at once.
 *
 * @throws what Postgres says when it is unreachable or a migration fails; a failed migration leaves nothing behind
 */
export async function migrate(
  databaseUrl: string,
  afterwards: (source: DataSource) => Promise<void> = async () => undefined,
): Promise<void> {
  const options = dataSourceOptions(databaseUrl, 2);
  const source = await new DataSource({ ...options, extra: { statement_timeout: 0 } }).initialize();
  const lock = source.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await source.runMigrations();
    await afterwards(source);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
    await source.destroy();
  }
}
