/**
 * `slipway doctor`: checks what the service needs, with the checks of its start and of `/ready`, and changes nothing.
 * It runs beside the service and without it.
 *
 * Each check prints one line: `ok`, `warning` or `failed`, its name, and what was found or what to do. Checks:
 * settings, login by URL, database and its version, migrations, keys, connections to Postgres, names of namespaces,
 * queue, clock, storage, files, open files, isolation of hosted code, egress rules. Checks that need the database are
 * left out when it cannot be reached.
 *
 * Exit code 1 when a check failed; warnings do not count.
 */
import { access, constants } from 'node:fs/promises';
import { NestFactory } from '@nestjs/core';
import { createApp } from '../app.setup.js';
import { ConfigModule } from '../config/config.module.js';
import { loadEnv, type Env } from '../config/env.js';
import { Sandbox } from '../hosting/sandbox/sandbox.js';
import { startDatabase } from '../infrastructure.js';
import { issuerOf, offReason } from '../modules/authorization-server/protected-resource.js';
import { BlobsModule, blobStore } from '../platform/blobs/blobs.module.js';
import { DatabaseModule } from '../platform/database/database.module.js';
import { DatabaseSnapshot } from '../platform/database/database-copy.js';
import { pendingMigrations } from '../platform/database/migrations.js';
import { databaseFault } from '../platform/database/postgres-errors.js';
import { AddressPolicy, parseEgressAllow } from '../platform/egress/address-policy.js';
import { egressChecks } from '../platform/egress/egress.module.js';
import { holdsDatabase } from '../platform/embedded/server-account.js';
import type { DomainError } from '../platform/errors/domain-error.js';
import { loadExternalModules } from '../platform/external-modules/load-external-modules.js';
import { RESERVED_NAMESPACES } from '../platform/http/resource-names.js';
import { openFilesFault } from '../platform/open-files.js';
import { chooseQueueBackend, POSTGRES_CONNECTIONS_MAX } from '../platform/queue/queue-backend.js';
import { QueueModule } from '../platform/queue/queue.module.js';
import { HealthController } from '../platform/telemetry/health.controller.js';
import type { ReadinessDto } from '../platform/telemetry/health.dto.js';
import { TelemetryModule } from '../platform/telemetry/telemetry.module.js';
import { requireKeys } from '../platform/vault/sealed-values.repository.js';
import { Vault } from '../platform/vault/vault.js';

/** The service works, but not as it should; the message says what to do. */
class Warning extends Error {}

let failures = 0;

/**
 * Prints one line: `ok` with the result, `warning` or `failed` with what the check throws.
 *
 * @returns the result; null after a warning or a failure
 */
async function check<T>(
  name: string,
  ask: () => T | Promise<T>,
  tell: (result: T) => string = String,
): Promise<T | null> {
  const line = (level: string, text: string) =>
    process.stdout.write(`${`${level.padEnd(8)} ${name.padEnd(11)} ${text}`.trimEnd()}\n`);
  try {
    const result = await ask();
    line('ok', tell(result));
    return result;
  } catch (error) {
    const isWarning = error instanceof Warning;
    if (!isWarning) failures += 1;
    const lines = (databaseFault(error) ?? (error as Error).message).split('\n');
    for (const text of lines) line(isWarning ? 'warning' : 'failed', text);
    return null;
  }
}

/** Runs all checks. @returns 1 when a check failed */
export async function run(): Promise<number> {
  const readSettings = () => loadEnv(undefined, egressChecks);
  const env = await check('settings', readSettings, ({ roles }) => `roles ${roles.join(', ')}`);
  if (env === null) return 1;
  if (env.roles.includes('api')) {
    // That clients cannot log in by URL is what many services want, so it is no warning.
    await check('login', () => {
      const reason = offReason(env);
      if (reason !== null) return `clients need an API key, since they cannot log in by URL: ${reason}`;
      return `clients${env.isLocalOnly ? ' on this machine' : ''} log in by URL at ${issuerOf(env)}`;
    });
  }
  if (env.databaseUrl === null && !holdsDatabase(env.dataDir)) {
    await check('database', () => `none in ${env.dataDir}: the first start makes it`);
  } else await checkDatabase(env);
  await check('files', () => filesOf(env));
  await check('open files', () => {
    const fault = openFilesFault(env);
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
  return failures > 0 ? 1 : 0;
}

/** Checks that need the database. */
async function checkDatabase(settings: Env): Promise<void> {
  const started = await check(
    'database',
    () => startDatabase(settings),
    () => (settings.databaseUrl === null ? 'embedded' : 'of DATABASE_URL'),
  );
  if (started === null) return;
  const { env, stop } = started;
  try {
    const version = await check('postgres', () =>
      withSnapshot(env, async (snapshot) => {
        const number = await snapshot.serverVersion();
        if (Number.parseInt(number) < 14) throw new Error(`Postgres ${number} is too old: use 14 or newer.`);
        return number;
      }),
    );
    if (version === null) return;
    const migrations = await check('migrations', async () => {
      const modules = await loadExternalModules(env.modules ?? []);
      if (!(await pendingMigrations(env.databaseUrl ?? '', modules))) return 'at this version';
      throw env.migrate === 'off'
        ? new Error('The database is older than this version: run `npm run migrate`.')
        : new Warning('The database is older than this version: the next start migrates it. Take a backup before.');
    });
    if (migrations !== null) await checkService(env);
  } finally {
    await stop();
  }
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
  await check('connections', () => withSnapshot(env, (snapshot) => connectionsOf(env, snapshot)));
  if (env.roles.includes('api')) await check('namespaces', () => withSnapshot(env, (rows) => namespacesOf(env, rows)));
  chooseQueueBackend(env);
  const imports = [ConfigModule.forRoot(env), DatabaseModule, QueueModule, BlobsModule, TelemetryModule];
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

/**
 * Compares the connections that the processes may open with those that Postgres gives to accounts that are not superusers.
 * The sum takes the settings of this process for all, and has one process more than are registered: workers without another
 * role are not, and a restart starts the next process before the last one ends.
 *
 * @throws Warning when Postgres has too few
 */
async function connectionsOf(env: Env, snapshot: DatabaseSnapshot): Promise<string> {
  const { registered, usable } = await snapshot.connections();
  const processes = registered + 1;
  const sum = processes * (env.databasePoolMax + (env.redisUrl === null ? POSTGRES_CONNECTIONS_MAX : 0));
  const text = `${processes} process${processes === 1 ? '' : 'es'} may hold ${sum}, and Postgres has ${usable}`;
  if (sum > usable) throw new Warning(`${text}: lower DATABASE_POOL_MAX or raise max_connections.`);
  return text;
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
  await access(env.dataDir, constants.W_OK).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw new Error(`${env.dataDir} cannot be written (${error.code}): change its owner.`);
  });
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
