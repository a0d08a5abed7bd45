import { DataSource } from 'typeorm';
import type { Env } from './config/env.js';
import { migrate, pendingMigrations, SchemaVersionError } from './platform/database/migrations.js';
import { dataSourceOptions } from './platform/database/data-source-options.js';
import type { EmbeddedPostgres, EmbeddedPostgresOptions } from './platform/embedded/embedded-postgres.js';
import { holdsDatabase } from './platform/embedded/server-account.js';
import { loadExternalModules } from './platform/external-modules/load-external-modules.js';
import { migrateQueue } from './platform/queue/queue-backend.js';
import { requireKeys } from './platform/vault/sealed-values.repository.js';
import { keysFromFile, Vault } from './platform/vault/vault.js';
import { ApiKeysRepository } from './modules/auth/api-keys.repository.js';

/** Receives what an operator may want to know of the embedded Postgres. */
export type DatabaseReport = Pick<EmbeddedPostgresOptions, 'log' | 'warn' | 'lost'>;

/** The running parts that the application needs. */
export interface Infrastructure {
  /** The settings, with the database and the keys filled in. */
  env: Env;
  /** The operator's first key, made just now; null when there was one. */
  firstKey: string | null;
  /** Stops what was started here. Call it after the app has closed. */
  stop: () => Promise<void>;
}

/**
 * Starts the embedded Postgres unless `DATABASE_URL` names another.
 *
 * @throws StartError without the keys of the embedded one, or when that does not start
 */
export async function startDatabase(
  env: Env,
  report: DatabaseReport = { log: () => undefined },
): Promise<Omit<Infrastructure, 'firstKey'>> {
  const { dataDir } = env;
  // Before the database is made: a crash between the two leaves a key too many, not a database without its key.
  const encryptionKeys = env.encryptionKeys ?? (await keysFromFile(dataDir, !holdsDatabase(dataDir)));
  let embedded: EmbeddedPostgres | null = null;
  if (env.databaseUrl === null) {
    const { startEmbeddedPostgres } = await import('./platform/embedded/embedded-postgres.js');
    embedded = await startEmbeddedPostgres({ dataDir, ...report });
  }
  const databaseUrl = embedded?.url ?? env.databaseUrl ?? '';
  return { env: env.with({ databaseUrl, encryptionKeys }), stop: async () => embedded?.stop() };
}

/**
 * Starts the database and brings it to this version unless `MIGRATE=off`.
 *
 * @throws StartError when the keys do not open what is stored, SchemaVersionError, or what Postgres
 * says
 */
export async function startInfrastructure(env: Env, report?: DatabaseReport): Promise<Infrastructure> {
  const { env: complete, stop } = await startDatabase(env, report);
  try {
    const firstKey = await prepareDatabase(complete);
    // Without the usual time limits of statements: large tables are counted.
    const source = new DataSource({ ...dataSourceOptions(complete.databaseUrl ?? '', 1), extra: {} });
    await source.initialize();
    try {
      await requireKeys(source, new Vault(complete.encryptionKeys ?? []));
    } finally {
      await source.destroy();
    }
    return { env: complete, firstKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Tables of ours and of the queue, and the operator. @returns the first key, if it was made just now */
async function prepareDatabase({ databaseUrl, migrate: mode, bootstrapApiKey, modules }: Env): Promise<string | null> {
  const url = databaseUrl ?? '';
  const external = await loadExternalModules(modules ?? []);
  if (mode === 'off') {
    if (!(await pendingMigrations(url, external))) return null;
    throw new SchemaVersionError('The database is older than this version: run `npm run migrate` first.');
  }
  let firstKey: string | null = null;
  const once = async (source: DataSource) => {
    await migrateQueue(url);
    firstKey = await new ApiKeysRepository(source).ensureOperator(bootstrapApiKey);
  };
  await migrate(url, once, external);
  return firstKey;
}
