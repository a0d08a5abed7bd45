/**
 * `slipway doctor`: checks what the service needs, with the checks of its start and of `/ready`, and changes nothing.
 * It runs beside the service and without it.
 *
 * Each check prints one line: `ok`, `warning` or `failed`, its name, and what was found or what to do. Checks: settings;
 * their names, unsafe defaults, folders, Redis and Postgres with the rows of `platform/checks`, which the start runs too; migrations, keys,
 * address, login by URL, workers that run, API keys, events of modules, names of namespaces, queue, clock, storage, files, open files,
 * isolation of hosted code, egress rules. Checks that need the database are left out when it cannot be used.
 *
 * `--tuning` prints bounds and times that are no settings, and checks nothing.
 *
 * Exit code 1 when a check failed; warnings do not count.
 */
import { NestFactory } from '@nestjs/core';
import { createApp } from '../app.setup.js';
import { ConfigModule } from '../config/config.module.js';
import { loadEnv, type Env } from '../config/env.js';
import { Tuning, tuningOf } from '../config/tuning.js';
import { Sandbox } from '../hosting/sandbox/sandbox.js';
import { failedHandlers } from '../extensions/events/event-deliveries.repository.js';
import { issuerOf, offReason } from '../modules/authorization-server/protected-resource.js';
import { publicWithSecrets } from '../modules/servers/settings/server-secrets.repository.js';
import { keyFaults } from '../modules/auth/api-keys.repository.js';
import { BlobsModule, blobStore } from '../platform/blobs/blobs.module.js';
import { DatabaseModule } from '../platform/database/database.module.js';
import { DatabaseSnapshot } from '../platform/database/database-copy.js';
import { pendingMigrations } from '../platform/database/migrations.js';
import { AddressPolicy, parseEgressAllow } from '../platform/egress/address-policy.js';
import { egressChecks } from '../platform/egress/egress.module.js';
import { holdsDatabase } from '../platform/embedded/server-account.js';
import type { DomainError } from '../platform/errors/domain-error.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { RESERVED_NAMESPACES } from '../platform/http/resource-names.js';
import { openFilesFault } from '../platform/open-files.js';
import { runningBaseUrl, runningWorkers } from '../platform/processes/processes.repository.js';
import { chooseQueueBackend } from '../platform/queue/queue-backend.js';
import { QueueModule } from '../platform/queue/queue.module.js';
import { HealthController } from '../platform/telemetry/health.controller.js';
import type { ReadinessDto } from '../platform/telemetry/health.dto.js';
import { TelemetryModule } from '../platform/telemetry/telemetry.module.js';
import { requireKeys } from '../platform/vault/sealed-values.repository.js';
import { Vault } from '../platform/vault/vault.js';
import { check, checkDatabase, checkSurroundings, exitCode, modulesOf, Warning } from './check-lines.js';

/** Keys that a warning names. */
const KEYS_NAMED = 5;

/** Runs all checks, or prints the fixed values as JSON for `--tuning`. @returns 1 when a check failed */
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
  await check('files', () => filesOf(env));
  await check('open files', () => {
    const fault = openFilesFault(tuning);
    if (fault !== null) throw new Warning(fault);
    return '';
  });
  if (env.roles.includes('host')) {
    await check('isolation', async () => {
      const sandbox = new Sandbox(env);
      const reason = await sandbox.whyNot();
      if (reason !== null) throw new Warning(`${reason} Uploads of code are refused meanwhile.`);
      return `hosted code runs at the level ${(await sandbox.describeIsolation()).level}`;
    });
  }
  await check('egress', () => egressOf(env));
  return exitCode();
}

/**
 * Checks the address of the service for its users.
 *
 * @param running the address of the service that runs; null without one, and then the settings of this command count
 */
async function checkLogin(settings: Env, running: string | null): Promise<void> {
  if (!settings.roles.includes('api')) return;
  await check('address', () => {
    if (running !== null) return `${running}, of the service that runs`;
    const setting = settings.publicUrl === null ? 'HOST and PORT' : 'PUBLIC_URL';
    return `${settings.baseUrl}, from ${setting} of this command, since no service runs`;
  });
  const env = running === null ? settings : settings.copyWith({ publicUrl: running });
  // That clients cannot log in by URL is what many services want, so it is no warning.
  await check('login', () => {
    const reason = offReason(env);
    if (reason !== null) return `clients need an API key, since they cannot log in by URL: ${reason}`;
    return `clients${env.isLocalOnly ? ' on this machine' : ''} log in by URL at ${issuerOf(env)}`;
  });
}

/** Checks that need the tables of this version, if the database has them. */
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

/** Checks that need the tables of this version, or are part of `/ready`. */
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
  await check('API keys', () => withSnapshot(env, apiKeysOf));
  await check('secrets', () => withSnapshot(env, secretsOf));
  await check('events', () => withSnapshot(env, eventsOf));
  if (env.roles.includes('api')) await check('namespaces', () => withSnapshot(env, (rows) => namespacesOf(env, rows)));
  chooseQueueBackend(env);
  const imports = [ConfigModule.forRoot(env, new Tuning()), DatabaseModule, QueueModule, BlobsModule, TelemetryModule];
  const quiet = { logger: false, abortOnError: false } as const;
  const parts = await NestFactory.createApplicationContext({ module: class Doctor {}, imports }, quiet);
  const ready = await parts.get(HealthController, { strict: false }).readiness();
  await parts.close();
  for (const [name, nextStep] of Object.entries(NEXT_STEPS)) {
    const state = ready[name as keyof ReadinessDto];
    await check(name, () => {
      if (state !== 'ok') throw new Error(`${state}: ${nextStep}`);
      return '';
    });
  }
}

/** @throws Warning that names keys which never expire, or were not used for 90 days */
async function apiKeysOf(snapshot: DatabaseSnapshot): Promise<string> {
  const { lasting, unused } = await keyFaults(snapshot);
  const listKeys = (keys: string[]) => keys.slice(0, KEYS_NAMED).join(', ') + (keys.length > KEYS_NAMED ? ', …' : '');
  const faults = [
    ...(lasting.length > 0 ? [`${lasting.length} never expire: ${listKeys(lasting)}.`] : []),
    ...(unused.length > 0 ? [`${unused.length} were not used for 90 days: ${listKeys(unused)}. Revoke them.`] : []),
  ];
  if (faults.length > 0) throw new Warning(faults.join('\n'));
  return 'each expires and is used';
}

/** @throws Warning that names public servers with secrets */
async function secretsOf(snapshot: DatabaseSnapshot): Promise<string> {
  const names = await publicWithSecrets(snapshot);
  if (names.length === 0) return 'no public server has any';
  throw new Warning(
    `Every account that calls ${names.join(', ')} works with the secrets of its owner, since the server is public: make it ` +
      'private where that is not meant.',
  );
}

/** @throws Warning that names methods of modules to which events could not be delivered */
async function eventsOf(snapshot: DatabaseSnapshot): Promise<string> {
  const failed = await failedHandlers(snapshot);
  if (failed.length > 0) throw new Warning(`Could not be delivered to ${failed.join('; ')}. The log has the errors.`);
  return 'no delivery to a module was given up';
}

/**
 * Compares all namespaces with the words that paths begin with, those of routes of external modules included.
 *
 * @throws Warning that names the namespaces whose short form is a route
 */
async function namespacesOf(env: Env, snapshot: DatabaseSnapshot): Promise<string> {
  // Reserves the words of the routes.
  await createApp(env, { preview: true });
  const shadowed = await snapshot.namespacesAmong([...RESERVED_NAMESPACES]);
  if (shadowed.length === 0) return 'each is reached by its short form /{namespace}';
  throw new Warning(
    `The short form /{namespace} does not reach ${shadowed.join(', ')}: paths of the service begin with these words. ` +
      'Use /connect/{namespace} in clients and scripts; /run and /servers are not concerned.',
  );
}

/** Members of `/ready`, and what to do where one is not ok. */
const NEXT_STEPS: Partial<Record<keyof ReadinessDto, string>> = {
  queue: 'check REDIS_URL; without it run `npm run migrate`, since the queue is in Postgres',
  clock: 'synchronize the clocks (NTP), since calls between processes fail',
  storage: 'free space on the disk of DATA_DIR, since uploads are refused',
};

async function filesOf(env: Env): Promise<string> {
  if (env.blobUrl) {
    await blobStore(env)
      .has('0'.repeat(64))
      .catch(({ detail }: DomainError) => {
        throw new Error(`BLOB_URL cannot be used (${(detail as Error).message}): check it and its credentials.`);
      });
    return `S3 bucket ${env.blobUrl.bucket}`;
  }
  return env.dataDir;
}

function egressOf({ egressAllow, isLocalOnly }: Env): string {
  const policy = new AddressPolicy(parseEgressAllow(egressAllow ?? ''));
  const open = ['127.0.0.1', '169.254.169.254'].filter((address) => policy.allows(address, address));
  if (open.length > 0 && !isLocalOnly) {
    throw new Warning(
      `EGRESS_ALLOW opens ${open.join(' and ')} to every account: remove it unless you trust all of them.`,
    );
  }
  return `public addresses${egressAllow ? ' and those of EGRESS_ALLOW' : isLocalOnly ? ' and loopback' : ''}`;
}
