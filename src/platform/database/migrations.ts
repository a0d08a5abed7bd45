import { DataSource, QueryFailedError, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import type { ExternalModule } from '../external-modules/load-external-modules.js';
import { dataSourceOptions } from './data-source-options.js';

/** Any constant: processes that start together wait for each other on it. TypeORM itself takes no lock. */
const MIGRATION_LOCK = 7_265_017;

/** The first migration, with the schema of 0.1.0. */
const BASELINE = 'Baseline1795490000000';

/** The last migration of the commits before 0.1.0, which made the schema of the baseline, and the first commit that has it. */
const LAST_BEFORE = 'DropUnusedColumns1795480000000';
const COMMIT_BEFORE = 'a44aa2ad';

/** Records the migrations of modules outside the tree. */
const EXTERNAL_TABLE = 'module_migrations';

/** The database has a schema that this version can neither use nor migrate; the message says what to do. */
export class SchemaVersionError extends Error {}

/** Names of the migrations that a database has, ours first, in the order in which they ran; none for an empty database. */
export async function appliedMigrations(database: Pick<DataSource, 'query'>): Promise<string[]> {
  const names: string[] = [];
  for (const table of ['migrations', EXTERNAL_TABLE]) {
    const [{ exists }] = await database.query<[{ exists: boolean }]>('SELECT to_regclass($1) IS NOT NULL AS "exists"', [
      table,
    ]);
    if (!exists) continue;
    const rows = await database.query<{ name: string }[]>(`SELECT name FROM ${table} ORDER BY id`);
    names.push(...rows.map(({ name }) => name));
  }
  return names;
}

/** The same names, with the baseline in place of all migrations of the commits before 0.1.0. */
export function asReleased(names: string[]): string[] {
  const last = names.indexOf(LAST_BEFORE);
  return last < 0 ? names : [BASELINE, ...names.slice(last + 1)];
}

/**
 * Refuses a database that this version would misread: one from before {@link LAST_BEFORE}, and one that a newer version, or a
 * newer version of a loaded module outside the tree, has migrated. Modules that are not loaded do not matter.
 *
 * @param knownNames ours, and those of loaded modules
 * @throws SchemaVersionError
 */
function requireKnown(applied: string[], knownNames: string[]): void {
  if (applied.length > 0 && applied[0] !== BASELINE) {
    throw new SchemaVersionError(
      'This database was made by a commit before version 0.1.0. Start commit ' +
        `${COMMIT_BEFORE} with it once, which migrates it, and then this version.`,
    );
  }
  const moduleOf = (name: string) => name.split(':').slice(0, -1).join();
  const loaded = new Set(['', ...knownNames.map(moduleOf)]);
  const newer = applied.filter((name) => !knownNames.includes(name) && loaded.has(moduleOf(name)));
  if (newer.length === 0) return;
  throw new SchemaVersionError(
    `The database is newer than this version, which does not know its migrations ${newer.join(', ')}: ` +
      'start the version that made them, or restore the backup from before the upgrade.',
  );
}

/** Names of the migrations of a data source. */
function namesOf({ migrations }: DataSource): string[] {
  return migrations.map((migration) => migration.name ?? migration.constructor.name);
}

/** Data sources for our migrations and, if there are any, those of modules outside the tree. The caller destroys them. */
async function migrationSources(options: DataSourceOptions, modules: ExternalModule[]): Promise<DataSource[]> {
  // Each migration of a module stands under the module's name.
  const migrations = modules.flatMap(({ name, migrations: classes = [] }) =>
    classes.map(
      (Migration): new () => MigrationInterface =>
        class extends Migration {
          override name = `${name}:${Migration.name}`;
        },
    ),
  );
  const external = { ...options, migrations, migrationsTableName: EXTERNAL_TABLE };
  const all = modules.length === 0 ? [options] : [options, external];
  return Promise.all(all.map((each) => new DataSource(each).initialize()));
}

/** True if the database lacks migrations of this version or of these modules outside the tree. @throws SchemaVersionError */
export async function pendingMigrations(databaseUrl: string, modules: ExternalModule[] = []): Promise<boolean> {
  const sources = await migrationSources(dataSourceOptions(databaseUrl, 1), modules);
  try {
    const applied = await appliedMigrations(sources[0]);
    const knownNames = sources.flatMap(namesOf);
    requireKnown(asReleased(applied), knownNames);
    return knownNames.some((name) => !applied.includes(name));
  } finally {
    await Promise.all(sources.map((source) => source.destroy()));
  }
}

/**
 * Brings the database to this version, then to that of modules outside the tree, and runs `afterwards` before another
 * process may start: what must happen once per database belongs there. Safe to call from any number of processes at once.
 *
 * @param only runs these migrations and no others, so that the tables are those of an earlier version
 * @throws SchemaVersionError, or an error of Postgres: it is unreachable or a migration failed, which leaves nothing behind
 */
export async function migrate(
  databaseUrl: string,
  afterwards: (source: DataSource) => Promise<void> = async () => undefined,
  modules: ExternalModule[] = [],
  only?: string[],
): Promise<void> {
  const sources = await migrationSources(dataSourceOptions(databaseUrl, 2, false), modules);
  const [source] = sources;
  const lock = source.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const knownNames = sources.flatMap(namesOf);
    const applied = await appliedMigrations(source);
    requireKnown(asReleased(applied), knownNames);
    if (applied.includes(LAST_BEFORE)) {
      const timestamp = BASELINE.replace(/\D+/, '');
      // One statement, so that no other start finds half of the rows.
      await lock.query(
        `WITH before AS (DELETE FROM migrations) INSERT INTO migrations ("timestamp", name) VALUES ($1, $2)`,
        [timestamp, BASELINE],
      );
    }
    const unknown = (only ?? []).filter((name) => !knownNames.includes(name));
    if (unknown.length > 0) {
      throw new SchemaVersionError(`This version, with its SLIPWAY_MODULES, has no migration ${unknown.join(', ')}.`);
    }
    for (const each of sources) {
      const names = namesOf(each);
      if (only) Object.assign(each, { migrations: each.migrations.filter((_, at) => only.includes(names[at])) });
      await each.runMigrations().catch((error: unknown) => {
        // Migrations refuse rows by `RAISE EXCEPTION` (P0001) with a sentence for the operator.
        const isRefusal =
          error instanceof QueryFailedError && (error.driverError as { code?: string }).code === 'P0001';
        throw isRefusal ? new SchemaVersionError(error.message) : error;
      });
    }
    await afterwards(source);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
    await Promise.all(sources.map((each) => each.destroy()));
  }
}
