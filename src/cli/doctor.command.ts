/**
 * `slipway doctor`: checks what the service needs, with the checks of its start and of `/ready`, and changes nothing.
 *
 * Each check prints one line: `ok`, `warning` or `failed`, its name, and the result or the next step. Checks that need
 * the database are left out when it cannot be used. `--tuning` prints limits and times that are not settings, and
 * checks nothing.
 *
 * Exit code 1 when a check failed; 0 with warnings only.
 */
import { NestFactory } from '@nestjs/core';
import { createApp } from '../app.setup.js';
import { ConfigModule } from '../config/config.module.js';
import { loadEnv, type Env } from '../config/env.js';
import { Tuning, tuningOf } from '../config/tuning.js';
import { Sandbox } from '../hosting/sandbox/sandbox.js';
import { BlobsModule } from '../platform/blobs/blobs.module.js';
import { DatabaseModule } from '../platform/database/database.module.js';
import { DatabaseSnapshot } from '../platform/database/database-copy.js';
import { pendingMigrations } from '../platform/database/migrations.js';
import { egressChecks } from '../platform/egress/egress.module.js';
import { holdsDatabase } from '../platform/embedded/server-account.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { RESERVED_NAMESPACES } from '../platform/http/resource-names.js';
import { runningBaseUrl, runningWorkers } from '../platform/processes/processes.repository.js';
import { chooseQueueBackend } from '../platform/queue/queue-backend.js';
import { QueueModule } from '../platform/queue/queue.module.js';
import { HealthController } from '../platform/telemetry/health.controller.js';
import { TelemetryModule } from '../platform/telemetry/telemetry.module.js';
import { requireKeys } from '../platform/vault/sealed-values.repository.js';
import { Vault } from '../platform/vault/vault.js';
import { loginOf, processChecks, readinessChecks, tableChecks, Warning } from '../service-checks.js';
import { check, checkDatabase, checkSurroundings, exitCode, modulesOf } from './check-lines.js';

export async function run(args: string[]): Promise<number> {
  if (args.at(-1) === '--tuning') {
    process.stdout.write(`${JSON.stringify(new Tuning(), null, 2)}\n`);
    return 0;
  }
  const tuning = tuningOf(args);
  const readSettings = () => loadEnv(undefined, egressChecks);
  const env = await check('settings', readSettings, ({ roles }) => `roles ${roles.join(', ')}`);
  if (env === null) return 1;
  await checkSurroundings(env, ['names', 'defaults', 'folders', 'redis']);
  if (env.modules || env.source.OIDC_ISSUER) await check('modules', () => modulesOf(env, true));
  if (env.databaseUrl === null && !holdsDatabase(env.dataDir)) {
    await checkLogin(env, null);
    await check('database', () => `none in ${env.dataDir}: the first start makes it`);
  } else await checkDatabase(env, checkTables);
  for (const [name, ask] of processChecks) {
    if (name === 'isolation' && !env.roles.includes('host')) continue;
    await check(name, () => ask(env, tuning, () => new Sandbox(env)));
  }
  return exitCode();
}

/**
 * @param running the address of the running service; null if it does not run: the settings of this command then apply
 */
async function checkLogin(settings: Env, running: string | null): Promise<void> {
  if (!settings.roles.includes('api')) return;
  await check('address', () => {
    if (running !== null) return `${running}, of the service that runs`;
    const setting = settings.publicUrl === null ? 'HOST and PORT' : 'PUBLIC_URL';
    return `${settings.baseUrl}, from ${setting} of this command, since no service runs`;
  });
  const env = running === null ? settings : settings.copyWith({ publicUrl: running });
  await check('login', () => loginOf(env));
}

async function checkTables(env: Env): Promise<void> {
  const migrations = await check('migrations', async () => {
    const pending = await pendingMigrations(env.databaseUrl ?? '', await loadExternalModules(env));
    if (pending.length === 0) return 'at this version';
    throw env.migrate === 'off'
      ? new Error('The database is older than this version: run `npm run migrate`.')
      : new Warning('The database is older than this version: the next start migrates it. Take a backup before.');
  });
  if (migrations !== null) await checkService(env);
  else await checkLogin(env, null);
}

async function withSnapshot<T>(env: Env, use: (snapshot: DatabaseSnapshot) => Promise<T>): Promise<T> {
  const snapshot = await DatabaseSnapshot.open(env.databaseUrl ?? '');
  return use(snapshot).finally(() => snapshot.close());
}

async function checkService(env: Env): Promise<void> {
  const vault = new Vault(env.encryptionKeys ?? []);
  await check(
    'keys',
    () => withSnapshot(env, (snapshot) => requireKeys(snapshot, vault)),
    () => 'open what is stored',
  );
  await checkLogin(env, await withSnapshot(env, runningBaseUrl));
  const workers = await withSnapshot(env, runningWorkers);
  if (workers.length > 0) {
    const machines = workers.map(({ machine, numbers }) => `${numbers.join(', ')} on ${machine}`);
    await check('workers', () => machines.join('; '));
  }
  for (const [name, ask] of tableChecks) await check(name, () => withSnapshot(env, async (snapshot) => ask(snapshot)));
  if (env.roles.includes('api')) await check('namespaces', () => withSnapshot(env, (rows) => namespacesOf(env, rows)));
  chooseQueueBackend(env);
  const imports = [ConfigModule.forRoot(env, new Tuning()), DatabaseModule, QueueModule, BlobsModule, TelemetryModule];
  const quiet = { logger: false, abortOnError: false } as const;
  const parts = await NestFactory.createApplicationContext({ module: class Doctor {}, imports }, quiet);
  const ready = await parts.get(HealthController, { strict: false }).readiness();
  await parts.close();
  for (const [name, ask] of readinessChecks) await check(name, () => ask(ready));
}

/** @throws Warning that names the namespaces whose short form is a route */
async function namespacesOf(env: Env, snapshot: DatabaseSnapshot): Promise<string> {
  await createApp(env, { preview: true });
  const shadowed = await snapshot.namespacesAmong([...RESERVED_NAMESPACES]);
  if (shadowed.length === 0) return 'each is reached by its short form /{namespace}';
  throw new Warning(
    `The short form /{namespace} does not reach ${shadowed.join(', ')}: paths of the service begin with these words. ` +
      'Use /connect/{namespace} in clients and scripts; /run and /servers are not concerned.',
  );
}
