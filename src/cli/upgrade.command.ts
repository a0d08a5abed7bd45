/**
 * `slipway upgrade --check`: reports what the start of this version would refuse or change, and changes nothing. Run it
 * from the new version, with the settings of the running service.
 *
 * Exit code 1 when the start would be refused; 0 with warnings only.
 */
import { readFile, statfs } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { LAST_BACKUP, loadEnv, type Env } from '../config/env.js';
import { VERSION } from '../config/version.js';
import { hasLogRoom } from '../platform/blobs/storage-space.js';
import { pendingMigrations } from '../platform/database/migrations.js';
import { egressChecks } from '../platform/egress/egress.module.js';
import { holdsDatabase } from '../platform/embedded/server-account.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { Warning } from '../service-checks.js';
import { check, checkDatabase, checkSurroundings, exitCode, modulesOf } from './check-lines.js';
import { UsageError } from './usage-error.js';

/** Defaults that differ from those of the previous version, with the required action. Emptied when a version is released. */
const CHANGED_DEFAULTS: Record<string, string> = {
  REGISTRY_HOSTS:
    'it is `none` now. Set it to the hosts that published tools write for servers of this registry, as docs/guides/clients.md says',
};

const BACKUP_HOURS_MAX = 24;

/** @returns 1 when the start of this version would be refused */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { check: { type: 'boolean', default: false } } });
  if (!values.check) throw new UsageError('add --check. The upgrade itself is the start of the new version');
  const env = await check(
    'settings',
    () => loadEnv(undefined, egressChecks),
    () => `Slipway ${VERSION} reads them`,
  );
  if (env === null) return 1;
  await check('changes', () => requireSameDefaults(env));
  await checkSurroundings(env, ['names', 'folders', 'redis']);
  const isLoaded = env.modules !== null && (await check('modules', () => modulesOf(env))) !== null;
  const isNew = env.databaseUrl === null && !holdsDatabase(env.dataDir);
  if (isNew) await check('database', () => `none in ${env.dataDir}: the first start makes it`);
  else {
    await check('backup', () => backupOf(env));
    await checkDatabase(env, async (started) => {
      await check('migrations', () => migrationsOf(started, isLoaded));
      await check('space', () => spaceOf(started));
    });
  }
  return exitCode();
}

/** @throws Warning with one line for each setting whose default changed and that is not set */
function requireSameDefaults({ source }: Env): string {
  const changed = Object.entries(CHANGED_DEFAULTS).filter(([name]) => !source[name]?.trim());
  if (changed.length === 0) return 'no default that applies differs';
  throw new Warning(changed.map(([name, action]) => `The default of ${name} changed: ${action}.`).join('\n'));
}

/** @throws Warning when the last backup is older than a day, or its time is not known */
async function backupOf({ databaseUrl, dataDir }: Env): Promise<string> {
  const command = 'run `npm run slipway -- backup FOLDER` with the version that runs.';
  if (databaseUrl !== null) throw new Warning(`The time of the last backup of DATABASE_URL is unknown: ${command}`);
  const time = (await readFile(path.join(dataDir, LAST_BACKUP), 'utf8').catch(() => '')).trim();
  if (time === '') throw new Warning(`The embedded database has no backup: ${command}`);
  const hours = Math.floor((Date.now() - Date.parse(time)) / 3_600_000);
  if (!(hours < BACKUP_HOURS_MAX)) throw new Warning(`The last backup is from ${time}: ${command}`);
  return `from ${time}`;
}

/**
 * @param withModules includes migrations of modules, which must have been loaded
 * @throws Warning that names what will be migrated; SchemaVersionError when the start would be refused
 */
async function migrationsOf(env: Env, withModules: boolean): Promise<string> {
  const pending = await pendingMigrations(env.databaseUrl ?? '', withModules ? await loadExternalModules(env) : []);
  if (pending.length === 0) return 'the database is at this version';
  const runner = env.migrate === 'off' ? '`npm run migrate`, which this version needs before its start,' : 'The start';
  throw new Warning(
    `${pending.length} pending: ${pending.join(', ')}. ${runner} runs them. Afterwards the version before cannot start.`,
  );
}

/** @throws Error when the embedded Postgres has too little space to migrate; Warning when only uploads do */
async function spaceOf({ embeddedFolder, dataDir }: Env): Promise<string> {
  const folder = embeddedFolder ?? dataDir;
  const disk = await statfs(folder).catch(() => null);
  if (disk === null) return `nothing is in ${folder} yet`;
  const free = `${Math.floor((disk.bavail * disk.bsize) / 1e6)} MB are free in ${folder}`;
  if (hasLogRoom(disk)) return free;
  const text = `Only ${free}: free at least 200 MB, and 3 % of the disk up to 2 GB.`;
  throw embeddedFolder === null ? new Warning(text) : new Error(text);
}
