// Runs alone: it kills processes.
import { afterAll, describe, expect } from '@jest/globals';
import { query } from '../support/database/query.js';
import { cleanUpPrograms, databaseUrlOf, runProgram, usedDataFolder } from '../support/program.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

afterAll(cleanUpPrograms, SLOW_MS);

describe('two processes on one data folder', () => {
  verifies(
    'health:embedded-restart',
    'when the one that started the embedded Postgres stops, the other starts it again and is ready',
    async () => {
      const { dataDir } = await usedDataFolder();
      const first = runProgram('main.js', { DATA_DIR: dataDir, ROLES: 'api' });
      await first.url();
      const url = await databaseUrlOf(dataDir);
      const second = runProgram('main.js', { DATA_DIR: dataDir, ROLES: 'api' });
      const ready = `${await second.url()}/ready`;
      first.kill('SIGTERM');
      expect(await first.ended).toBe(0);
      await until(async () => (await query(url, 'SELECT 1')).length === 1, 'Postgres runs again at the same address');
      const database = async () => ((await (await fetch(ready)).json()) as { database: string }).database;
      await until(async () => (await database()) === 'ok', 'the second one is ready');
      second.kill('SIGTERM');
      expect(await second.ended).toBe(0);
      await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    },
    SLOW_MS,
  );
});
