import { setTimeout as wait } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import type { Env } from './config/env.js';
import { migrate, pendingMigrations, SchemaVersionError } from './platform/database/migrations.js';
import { dataSourceOptions } from './platform/database/data-source-options.js';
import { UNLIMITED } from './platform/database/session.js';
import { isDatabaseUnreachable } from './platform/database/postgres-errors.js';
import type { EmbeddedPostgres, EmbeddedPostgresOptions } from './platform/embedded/embedded-postgres.js';
import { holdsDatabase, requireUnmoved } from './platform/embedded/server-account.js';
import { loadExternalModules } from './platform/external-modules/load-external-modules.js';
import { migrateQueue } from './platform/queue/queue-backend.js';
import { requireKeys } from './platform/vault/sealed-values.repository.js';
import { keysFromFile, Vault } from './platform/vault/vault.js';
import { storeSkeletons } from './modules/auth/names/account-names.repository.js';
import { ApiKeysRepository, OPERATOR } from './modules/auth/api-keys.repository.js';

/** Receives messages about the embedded Postgres for the operator. */
export interface DatabaseReport extends Pick<EmbeddedPostgresOptions, 'log' | 'warn'> {
  /**
   * Called at the beginning of a start, which can take long, with a function that stops the database as soon as it
   * runs.
   */
  onStarting?: (stop: () => Promise<void>) => void;
}

export interface Infrastructure {
  /** The settings, with the database and the keys filled in. */
  env: Env;
  /** The operator's first key, just created; null when one existed. */
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
  if (env.databaseUrl === null) await requireUnmoved(dataDir);
  // Before the database is created: a crash between the two leaves an unused key, not a database without its key.
  const encryptionKeys = env.encryptionKeys ?? (await keysFromFile(dataDir, !holdsDatabase(dataDir)));
  let embedded: EmbeddedPostgres | null = null;
  if (env.databaseUrl === null) {
    const { startEmbeddedPostgres } = await import('./platform/embedded/embedded-postgres.js');
    embedded = await startEmbeddedPostgres({
      dataDir,
      processes: env.workers,
      isShared: env.worker !== null,
      ...report,
    });
  }
  const databaseUrl = embedded?.url ?? env.databaseUrl ?? '';
  return {
    env: env.copyWith({
      ...{ databaseUrl, encryptionKeys, embeddedFolder: embedded?.folder ?? null },
      storesKeysWithData: env.encryptionKeys === null,
    }),
    stop: async () => embedded?.stop(),
  };
}

/** Time limit of a restart: a shared server that stopped with its process is started again within 10 s, later after a crash. */
const SERVER_AWAY_MS = 60_000;

/**
 * Starts the database and brings it to this version unless `MIGRATE=off`. If an embedded Postgres stops meanwhile with
 * the other process that started it, waits for it: `keepRunning` starts it again.
 *
 * @throws StartError when the keys do not open what is stored, SchemaVersionError, or the error of Postgres
 */
export async function startInfrastructure(env: Env, report?: DatabaseReport): Promise<Infrastructure> {
  const database = startDatabase(env, report);
  report?.onStarting?.(async () => (await database).stop());
  const { env: complete, stop } = await database;
  const deadline = Date.now() + SERVER_AWAY_MS;
  try {
    let firstKey: string | null = null;
    for (;;) {
      try {
        await prepareDatabase(complete, (key) => (firstKey = key));
        break;
      } catch (error) {
        if (env.databaseUrl !== null || !isDatabaseUnreachable(error) || Date.now() > deadline) throw error;
        await wait(200);
      }
    }
    // This connection has no time limits of statements, since large tables are counted.
    const source = new DataSource(dataSourceOptions(complete.databaseUrl ?? '', 1, UNLIMITED));
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

/** Issues a link by which the operator chooses a password and signs in, once, within 15 minutes. */
export async function operatorLink(env: Env): Promise<string> {
  const { makeInvitation } = await import('./modules/people/invitations.service.js');
  const { PeopleRepository } = await import('./modules/people/people.repository.js');
  const source = new DataSource(dataSourceOptions(env.databaseUrl ?? '', 1));
  await source.initialize();
  try {
    const { accountId, operatorId } = await new ApiKeysRepository(source).ensureAccount(OPERATOR);
    return (await makeInvitation(new PeopleRepository(source), env, accountId, { accountId: operatorId }, 15)).url;
  } finally {
    await source.destroy();
  }
}

/** Creates the tables of Slipway and of the queue, and the operator. @param onFirstKey receives the key just created */
async function prepareDatabase(env: Env, onFirstKey: (key: string) => void): Promise<void> {
  const { databaseUrl, migrate: mode, bootstrapApiKey } = env;
  const url = databaseUrl ?? '';
  const external = await loadExternalModules(env);
  if (mode === 'off') {
    if ((await pendingMigrations(url, external)).length === 0) return;
    throw new SchemaVersionError('The database is older than this version: run `npm run migrate` first.');
  }
  const prepare = async (source: DataSource) => {
    await migrateQueue(url);
    const key = await new ApiKeysRepository(source).ensureOperator(bootstrapApiKey);
    if (key !== null) onFirstKey(key);
    await storeSkeletons(source);
  };
  await migrate(url, prepare, external);
}
