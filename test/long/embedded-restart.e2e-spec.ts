// Runs alone: it kills processes.
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/platform/embedded/embedded-postgres.js';
import { cleanUpPrograms, dataFolder, postgresOf, runProgram, usedDataFolder } from '../support/program.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;
const MIGRATION_LOCK = 7_265_017;

afterAll(cleanUpPrograms, SLOW_MS);

describe('an embedded Postgres that dies and cannot be started again', () => {
  verifies(
    'health:embedded-restart',
    'is tried again without end, while the service goes on, until it can',
    async () => {
      const { dataDir } = await usedDataFolder();
      const service = runProgram('main.js', { DATA_DIR: dataDir, ROLES: 'api' });
      const url = await service.url();
      const postgres = (await postgresOf(dataDir)) as number;
      const [there, away] = [join(dataDir, 'pg', 'PG_VERSION'), join(dataDir, 'pg', 'LOST')];
      await rename(there, away);
      process.kill(postgres, 'SIGKILL');
      const warnings = () => service.logs().filter(({ level, context }) => level === 'warn' && context === 'postgres');
      await until(() => warnings().length > 5, 'it was tried more than five times', 60_000);
      expect((await fetch(`${url}/health`)).status).toBe(200);
      await rename(away, there);
      await until(async () => (await fetch(`${url}/ready`)).status === 200, 'the database is back', 60_000);
    },
    SLOW_MS,
  );

  verifies(
    'health:embedded-restart',
    'starts where a power cut left its lock file empty or full of NUL bytes',
    async () => {
      const { dataDir } = await usedDataFolder();
      for (const content of ['', '\0'.repeat(90)]) {
        await writeFile(join(dataDir, 'pg', 'postmaster.pid'), content);
        const service = await startEmbeddedPostgres({ dataDir, log: () => undefined });
        await service.stop();
      }
    },
    SLOW_MS,
  );
});

describe('an embedded Postgres that ends with another process during the very first start', () => {
  it(
    'is started again, and the service prepares it and prints the first key',
    async () => {
      const dataDir = await dataFolder();
      const other = await startEmbeddedPostgres({ dataDir, log: () => undefined });
      const holder = new pg.Client(other.url);
      holder.on('error', () => undefined);
      await holder.connect();
      await holder.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
      const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
      const service = runProgram('main.js', { DATA_DIR: dataDir, ENCRYPTION_KEYS, LOG_FORMAT: 'pretty' });
      // The service waits for the lock, in the middle of its preparation.
      await until(async () => {
        const { rows } = await holder.query(`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'`);
        return rows.length > 0;
      }, 'the service waits for the lock');
      await other.stop();
      await service.url();
      expect(await service.key()).toMatch(/^slipway_/);
      expect(service.output()).toContain('it is started again');
    },
    SLOW_MS,
  );
});
