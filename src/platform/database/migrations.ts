import { DataSource, QueryFailedError, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import type { ExternalModule } from '../external-modules/load-external-modules.js';
import { dataSourceOptions } from './data-source-options.js';

/** Any constant: processes that start together wait for each other on it. TypeORM itself takes no lock. */
const MIGRATION_LOCK = 7_265_017;

/** The first migration. Databases that were made before it have other ones, and cannot be migrated. */
const BASELINE = 'Baseline1795350000000';

/** The database has a schema that this version can neither use nor migrate; the message says what to do. */
export class SchemaVersionError extends Error {}

/** @throws SchemaVersionError for a database that was made before the baseline migration */
async function requireBaseline(source: DataSource): Promise<void> {
  const [{ table }] = await source.query<[{ table: string | null }]>(
    `SELECT to_regclass('migrations')::text AS "table"`,
  );
  if (table === null) return;
  const rows = await source.query<{ name: string }[]>('SELECT name FROM migrations ORDER BY id LIMIT 1');
  if (rows.length === 0 || rows[0]?.name === BASELINE) return;
  throw new SchemaVersionError(
    'This database was made by a version before 0.2, which was never released and cannot be migrated: use an empty database.',
  );
}

/** Migrations refuse rows by `RAISE EXCEPTION` (P0001) with a sentence for the operator. @throws always */
function explainRefusal(error: unknown): never {
  const isRefusal = error instanceof QueryFailedError && (error.driverError as { code?: string }).code === 'P0001';
  throw isRefusal ? new SchemaVersionError(error.message) : error;
}

/** The migrations of modules outside the tree, each under its module's name, and the table that records them. */
function externalMigrations(modules: ExternalModule[]): Pick<DataSourceOptions, 'migrations' | 'migrationsTableName'> {
  const migrations = modules.flatMap(({ name, migrations: own = [] }) =>
    own.map(
      (Migration): new () => MigrationInterface =>
        class extends Migration {
          override name = `${name}:${Migration.name}`;
        },
    ),
  );
  return { migrations, migrationsTableName: 'module_migrations' };
}

/** True if the database lacks migrations of this version or of these modules outside the tree. @throws SchemaVersionError */
export async function pendingMigrations(databaseUrl: string, modules: ExternalModule[] = []): Promise<boolean> {
  const options = dataSourceOptions(databaseUrl, 1);
  const all = modules.length === 0 ? [options] : [options, { ...options, ...externalMigrations(modules) }];
  for (const one of all) {
    const source = await new DataSource(one).initialize();
    try {
      await requireBaseline(source);
      if (await source.showMigrations()) return true;
    } finally {
      await source.destroy();
    }
  }
  return false;
}

/**
 * Brings the database to this version, then to that of modules outside the tree, and runs `afterwards` before another
 * process may start: what must happen once per database belongs there. Safe to call from any number of processes at once.
 *
 * @throws SchemaVersionError, or an error of Postgres: it is unreachable or a migration failed, which leaves nothing behind
 */
export async function migrate(
  databaseUrl: string,
  afterwards: (source: DataSource) => Promise<void> = async () => undefined,
  modules: ExternalModule[] = [],
): Promise<void> {
  const options = { ...dataSourceOptions(databaseUrl, 2), extra: { statement_timeout: 0 } };
  const source = await new DataSource(options).initialize();
  const lock = source.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await requireBaseline(source);
    await source.runMigrations().catch(explainRefusal);
    if (modules.length > 0) {
      const external = await new DataSource({ ...options, ...externalMigrations(modules) }).initialize();
      await external
        .runMigrations()
        .catch(explainRefusal)
        .finally(() => external.destroy());
    }
    await afterwards(source);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
    await source.destroy();
  }
}
