import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect } from '@jest/globals';
import { cleanUpPrograms, postgresOf, runProgram, usedDataFolder } from '../support/program.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

afterAll(cleanUpPrograms, SLOW_MS);

describe('an embedded Postgres that dies and cannot be started again', () => {
  verifies(
    'health:embedded-restart',
    'ends the process with code 1 and one fatal line, after five attempts',
    async () => {
      const { dataDir } = await usedDataFolder();
      const service = runProgram('main.js', { DATA_DIR: dataDir, ROLES: 'api' });
      await service.url();
      const postgres = (await postgresOf(dataDir)) as number;
      await rename(join(dataDir, 'pg', 'PG_VERSION'), join(dataDir, 'pg', 'LOST'));
      process.kill(postgres, 'SIGKILL');
      expect(await service.ended).toBe(1);
      const of = (level: string) =>
        service.logs().filter((line) => line.level === level && line.context === 'postgres');
      expect(of('fatal')).toMatchObject([{ msg: expect.stringContaining('cannot be started again') }]);
      expect(of('warn').length).toBeGreaterThan(0);
    },
    SLOW_MS,
  );
});
