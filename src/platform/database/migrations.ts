import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { DataSource, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import type { ExternalModule } from '../external-modules/load-external-modules.js';
import { dataSourceOptions } from './data-source-options.js';
import { COPY_NAME, MIGRATING } from './session.js';

/** Number of the lock on which processes that start together wait for each other. TypeORM itself takes no lock. */
const MIGRATION_LOCK = 7_265_017;

const BASELINE = 'Baseline1795490000000';

/**
 * SQLSTATE of `RAISE EXCEPTION`, and of a lock that a statement did not get within `lock_timeout` or lost to a
 * deadlock.
 */
const RAISED = 'P0001';
const NOT_LOCKED = ['55P03', '40P01'];

const logger = new Logger('migrations');

const EXTERNAL_TABLE = 'module_migrations';

/** The database has a schema that this version can neither use nor migrate; the message says what to do. */
export class SchemaVersionError extends Error {}

/**
 * Returns the names of the migrations that a database has, Slipway's first, in the order in which they ran; none for
 * an empty database.
 */
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

/**
 * Rejects a database that this version would misread: one from before 0.1.0, and one that a newer version, or a newer
 * version of a loaded module outside the tree, has migrated.
 *
 * @param knownNames Slipway's, and those of loaded modules
 * @throws SchemaVersionError
 */
function requireKnown(applied: string[], knownNames: string[]): void {
  if (applied.length > 0 && applied[0] !== BASELINE) {
    throw new SchemaVersionError(
      'This database was made by a commit before version 0.1.0, whose data cannot be converted. Use another database for ' +
        'this version, or go on with the commit that made it.',
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

function namesOf({ migrations }: DataSource): string[] {
  return migrations.map((migration) => migration.name ?? migration.constructor.name);
}

/** Checks that no backup runs, which holds its locks for minutes. @throws SchemaVersionError while a backup reads the database */
async function requireNoBackup(source: DataSource): Promise<void> {
  const copies = await source.query<object[]>(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1 AND xact_start IS NOT NULL`,
    [COPY_NAME],
  );
  if (copies.length > 0) {
    throw new SchemaVersionError('A backup of this database is running. Start again when it has finished.');
  }
}

/**
 * Runs each migration in its own transaction. A migration that gets no lock for 3 s is repeated after other queries have passed, so
 * that calls continue during a long read.
 *
 * @throws SchemaVersionError, or an error of Postgres
 */
async function runMigrations(source: DataSource): Promise<void> {
  for (let waitMs = 1_000; ; waitMs = Math.min(2 * waitMs, 30_000)) {
    try {
      await source.runMigrations();
      return;
    } catch (error) {
      const { code } = (error as { driverError?: { code?: string } }).driverError ?? {};
      // Migrations reject rows by `RAISE EXCEPTION` with a message for the operator.
      if (code === RAISED) throw new SchemaVersionError((error as Error).message);
      if (!NOT_LOCKED.includes(code ?? '')) throw error;
      const holders = await source.query<{ pid: number; name: string; seconds: number }[]>(
        `SELECT pid, application_name AS name, extract(epoch FROM now() - xact_start)::int AS seconds FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now() - interval '2 s'
          ORDER BY xact_start LIMIT 3`,
      );
      const list = holders.map(({ pid, name, seconds }) => `${name || 'unnamed'} (pid ${pid}, since ${seconds} s)`);
      logger.warn(
        `A migration waits for a lock and is repeated in ${waitMs / 1_000} s. Open transactions: ${list.join()}`,
      );
      await setTimeout(waitMs);
    }
  }
}

/**
 * Returns Slipway's migrations and, if there are any, those of modules outside the tree. The caller destroys the data sources.
 */
async function migrationSources(options: DataSourceOptions, modules: ExternalModule[]): Promise<DataSource[]> {
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

/**
 * Returns pending migrations, including those of these modules outside the tree.
 *
 * @throws SchemaVersionError if a start would be refused: by a newer schema, or by a backup that runs before migrations
 */
export async function pendingMigrations(databaseUrl: string, modules: ExternalModule[] = []): Promise<string[]> {
  const sources = await migrationSources(dataSourceOptions(databaseUrl, 1), modules);
  try {
    const applied = await appliedMigrations(sources[0]);
    const knownNames = sources.flatMap(namesOf);
    requireKnown(applied, knownNames);
    const pending = knownNames.filter((name) => !applied.includes(name));
    if (pending.length > 0) await requireNoBackup(sources[0]);
    return pending;
  } finally {
    await Promise.all(sources.map((source) => source.destroy()));
  }
}

/**
 * Migrates Slipway, then modules outside the tree, and runs `afterwards` before another process may start: work needed
 * once per database belongs there. Safe to call from any number of processes at the same time.
 *
 * @param only runs these migrations and no others, so that the tables are those of an earlier version
 * @throws SchemaVersionError, or an error of Postgres: it is unreachable or a migration failed, which leaves nothing
 * behind
 */
export async function migrate(
  databaseUrl: string,
  afterwards: (source: DataSource) => Promise<void> = async () => undefined,
  modules: ExternalModule[] = [],
  only?: string[],
): Promise<void> {
  const sources = await migrationSources(dataSourceOptions(databaseUrl, 2, MIGRATING), modules);
  const [source] = sources;
  const lock = source.createQueryRunner();
  try {
    await lock.query('SET lock_timeout = 0');
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const knownNames = sources.flatMap(namesOf);
    const applied = await appliedMigrations(source);
    requireKnown(applied, knownNames);
    const unknown = (only ?? []).filter((name) => !knownNames.includes(name));
    if (unknown.length > 0) {
      throw new SchemaVersionError(`This version, with its SLIPWAY_MODULES, has no migration ${unknown.join(', ')}.`);
    }
    for (const each of sources) {
      const names = namesOf(each);
      if (only) Object.assign(each, { migrations: each.migrations.filter((_, at) => only.includes(names[at])) });
      if (names.some((name) => !applied.includes(name) && (only?.includes(name) ?? true))) {
        await requireNoBackup(source);
        await runMigrations(each);
      }
    }
    await afterwards(source);
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
    await lock.release();
    await Promise.all(sources.map((each) => each.destroy()));
  }
}
