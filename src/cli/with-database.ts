import { DataSource } from 'typeorm';
import { loadEnv, type Env } from '../config/env.js';
import { startInfrastructure } from '../infrastructure.js';
import { requireSurroundings } from '../platform/checks/surroundings.js';
import { dataSourceOptions } from '../platform/database/data-source-options.js';
import { UNLIMITED } from '../platform/database/session.js';

export interface CommandDatabase {
  env: Env;
  source: DataSource;
  /** The operator's first key, made by this command on an empty database; else null. */
  firstKey: string | null;
}

/**
 * Runs a command on the service's database, which is started if it is embedded, and stops what was started. Queries
 * have no time limit.
 */
export async function withDatabase<T>(
  changes: Parameters<Env['copyWith']>[0],
  command: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const settings = loadEnv().copyWith(changes);
  await requireSurroundings(settings, ['postgres']);
  const { env, firstKey, stop } = await startInfrastructure(settings);
  const source = new DataSource(dataSourceOptions(env.databaseUrl ?? '', 1, UNLIMITED));
  try {
    await source.initialize();
    return await command({ env, source, firstKey });
  } finally {
    if (source.isInitialized) await source.destroy();
    await stop();
  }
}
