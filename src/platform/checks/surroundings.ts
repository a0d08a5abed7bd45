import { StartError, type Env } from '../../config/env.js';
import type { Check, Fault } from './check.js';
import { defaultChecks, examineDefaults } from './default-checks.js';
import { examineFolders, folderChecks } from './folder-checks.js';
import { examinePostgres, postgresChecks } from './postgres-checks.js';
import { examineRedis, redisChecks } from './redis-checks.js';
import { examineSettingNames, settingNameChecks } from './setting-names.js';

const examiners = {
  names: (env: Env) => examineSettingNames(env),
  defaults: examineDefaults,
  folders: examineFolders,
  redis: async ({ redisUrl }: Env) => (redisUrl === null ? null : examineRedis(redisUrl)),
  postgres: async (env: Env) => (env.databaseUrl === null ? null : examinePostgres(env)),
};

export const checksByPart: Record<string, Check<never>[]> = {
  Settings: settingNameChecks,
  'Unsafe defaults': defaultChecks,
  Folders: folderChecks,
  Redis: redisChecks,
  Postgres: postgresChecks,
};

export type Part = keyof typeof examiners;

interface Examined {
  part: Part;
  found: string;
  faults: Fault[];
}

/** Runs the checks without changing anything. */
export async function examine(env: Env, parts: Part[]): Promise<Examined[]> {
  const all = await Promise.all(parts.map(async (part) => ({ part, examined: await examiners[part](env) })));
  return all.flatMap(({ part, examined }) => (examined ? [{ part, ...examined }] : []));
}

/**
 * Checks the surroundings of a start or a command, before it changes anything.
 *
 * @returns warnings
 * @throws StartError with all problems that prevent the start
 */
export async function requireSurroundings(
  env: Env,
  parts: Part[] = ['names', 'defaults', 'folders', 'redis', 'postgres'],
): Promise<string[]> {
  const faults = (await examine(env, parts)).flatMap((examined) => examined.faults);
  const fatal = faults.filter(({ isFatal }) => isFatal);
  if (fatal.length > 0) throw new StartError(fatal.map(({ text }) => text).join('\n'));
  return faults.map(({ text }) => text);
}
