import { DataSource, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import type { ExternalModule } from '../external-modules/external-module.types.js';
import { dataSourceOptions } from './data-source-options.js';

/** Any constant: processes that start together wait for each other on it. TypeORM itself takes no lock. */
const MIGRATION_LOCK = 7_265_017;

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

/** True when the database lacks migrations of this version, or of these modules outside the tree. */
export async function pendingMigrations(databaseUrl: string, modules: ExternalModule[] = []): Promise<boolean> {
  const options = dataSourceOptions(databaseUrl, 1);
  const all = modules.length === 0 ? [options] : [options, { ...options, ...externalMigrations(modules) }];
  for (const one of all) {
    const source = await new DataSource(one).initialize();
    try {
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
 * @throws what Postgres says when it is unreachable or a migration fails; a failed migration leaves nothing behind
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
    await source.runMigrations();
    if (modules.length > 0) {
      const external = await new DataSource({ ...options, ...externalMigrations(modules) }).initialize();
      await external.runMigrations().finally(() => external.destroy());
    }
    await afterwards(source);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
    await source.destroy();
  }
}
