/**
 * `slipway doctor` prints these checks, and the page of operators shows those of the process that responds. A row
 * throws a {@link Warning}, or an error with the next step.
 */
import type { ModuleRef } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { Env } from './config/env.js';
import { Tuning } from './config/tuning.js';
import { failedHandlers } from './extensions/events/event-deliveries.repository.js';
import { Sandbox } from './hosting/sandbox/sandbox.js';
import { keyFaults } from './modules/auth/api-keys.repository.js';
import { issuerOf, offReason } from './modules/authorization-server/protected-resource.js';
import { publicWithSecrets } from './modules/servers/settings/server-secrets.repository.js';
import { blobStore } from './platform/blobs/blobs.module.js';
import { databaseFault } from './platform/checks/connect-checks.js';
import { examine } from './platform/checks/surroundings.js';
import { AddressPolicy, parseEgressAllow } from './platform/egress/address-policy.js';
import type { DomainError } from './platform/errors/domain-error.js';
import { openFilesFault } from './platform/open-files.js';
import { HealthController } from './platform/telemetry/health.controller.js';
import type { ReadinessDto } from './platform/telemetry/health.dto.js';
import { requireKeys } from './platform/vault/sealed-values.repository.js';
import { Vault } from './platform/vault/vault.js';

const ANYWHERE = { strict: false } as const;

const KEYS_NAMED = 5;

/** The service works, but not as it should; the message says what to do. */
export class Warning extends Error {}

/** The result of a check, in a line without secrets. @stability preview */
export interface CheckLine {
  level: 'ok' | 'warning' | 'failed';
  name: string;
  text: string;
}

type Row<Facts extends unknown[]> = readonly [name: string, ask: (...facts: Facts) => string | Promise<string>];

/** Returns one line for each problem that a check throws. */
export function linesOf(name: string, error: unknown): CheckLine[] {
  const level = error instanceof Warning ? 'warning' : 'failed';
  return (databaseFault(error) ?? (error as Error).message).split('\n').map((text) => ({ level, name, text }));
}

export const tableChecks: readonly Row<[database: Pick<DataSource, 'query'>]>[] = [
  [
    'API keys',
    async (database) => {
      const { lasting, unused } = await keyFaults(database);
      const listKeys = (keys: string[]) =>
        keys.slice(0, KEYS_NAMED).join(', ') + (keys.length > KEYS_NAMED ? ', …' : '');
      const faults = [
        ...(lasting.length > 0 ? [`${lasting.length} never expire: ${listKeys(lasting)}.`] : []),
        ...(unused.length > 0 ? [`${unused.length} were not used for 90 days: ${listKeys(unused)}. Revoke them.`] : []),
      ];
      if (faults.length > 0) throw new Warning(faults.join('\n'));
      return 'each expires and is used';
    },
  ],
  [
    'secrets',
    async (database) => {
      const names = await publicWithSecrets(database);
      if (names.length === 0) return 'no public server has any';
      throw new Warning(
        `Every account that calls ${names.join(', ')} works with the secrets of its owner, since the server is public: make it ` +
          'private where that is not meant.',
      );
    },
  ],
  [
    'events',
    async (database) => {
      const failed = await failedHandlers(database);
      if (failed.length > 0)
        throw new Warning(`Could not be delivered to ${failed.join('; ')}. The log has the errors.`);
      return 'no delivery to a module was given up';
    },
  ],
];

/** What to do where a member of `/ready` is not ok. */
const NEXT_STEPS: Partial<Record<keyof ReadinessDto, string>> = {
  queue: 'check REDIS_URL; without it run `npm run migrate`, since the queue is in Postgres',
  clock: 'synchronize the clocks (NTP), since calls between processes fail',
  storage: 'free space on the disk of DATA_DIR, since uploads are refused',
};

export const readinessChecks = Object.entries(NEXT_STEPS).map(([name, nextStep]): Row<[ReadinessDto]> => [
  name,
  (ready) => {
    const state = ready[name as keyof ReadinessDto];
    if (state !== 'ok') throw new Error(`${state}: ${nextStep}`);
    return '';
  },
]);

/** Returns a line about the login by URL. Many services do not want it, so its absence is not a warning. */
export function loginOf(env: Env): string {
  const reason = offReason(env);
  if (reason !== null) return `clients need an API key, since they cannot log in by URL: ${reason}`;
  return `clients${env.isLocalOnly ? ' on this machine' : ''} log in by URL at ${issuerOf(env)}`;
}

export const processChecks: readonly Row<[Env, Tuning, () => Sandbox]>[] = [
  ['files', filesOf],
  [
    'open files',
    (_, tuning) => {
      const fault = openFilesFault(tuning);
      if (fault !== null) throw new Warning(fault);
      return '';
    },
  ],
  [
    'isolation',
    async ({ roles }, _, sandboxOf) => {
      if (!roles.includes('host')) return 'other processes run hosted code';
      const sandbox = sandboxOf();
      const reason = await sandbox.whyNot();
      if (reason !== null) throw new Warning(`${reason} Uploads of code are refused meanwhile.`);
      return `hosted code runs at the level ${(await sandbox.describeIsolation()).level}`;
    },
  ],
  ['egress', egressOf],
];

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

/**
 * Examines the service and this process as `slipway doctor` does, apart from what the start requires: migrations and modules.
 * Opens sessions to Postgres and Redis, so cache the lines. For operators.
 *
 * @param parts of the application
 * @stability preview
 */
export async function examineService(parts: ModuleRef): Promise<CheckLine[]> {
  const [env, tuning, database] = [
    parts.get(Env, ANYWHERE),
    parts.get(Tuning, ANYWHERE),
    parts.get(DataSource, ANYWHERE),
  ];
  const [surroundings, ready] = await Promise.all([
    examine(env, ['names', 'defaults', 'folders', 'redis', 'postgres']),
    parts.get(HealthController, ANYWHERE).readiness(),
  ]);
  const lines = surroundings.flatMap(({ part: name, found: summary, faults }): CheckLine[] =>
    faults.length === 0
      ? [{ level: 'ok', name, text: summary }]
      : faults.map(({ text, isFatal }) => ({ level: isFatal ? 'failed' : 'warning', name, text })),
  );
  const bind =
    <Facts extends unknown[]>(...facts: Facts) =>
    ([name, ask]: Row<Facts>): Row<[]> => [name, () => ask(...facts)];
  const rows: Row<[]>[] = [
    ['keys', () => requireKeys(database, parts.get(Vault, ANYWHERE)).then(() => 'open what is stored')],
    ['address', () => env.baseUrl],
    ['login', () => loginOf(env)],
    ...tableChecks.map(bind(database)),
    ...readinessChecks.map(bind(ready)),
    ...processChecks.map(bind(env, tuning, () => parts.get(Sandbox, ANYWHERE))),
  ];
  for (const [name, ask] of rows) {
    try {
      lines.push({ level: 'ok', name, text: await ask() });
    } catch (error) {
      lines.push(...linesOf(name, error));
    }
  }
  return lines;
}
