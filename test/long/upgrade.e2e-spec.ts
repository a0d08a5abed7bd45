import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import supertest from 'supertest';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';

const SLOW_MS = 300_000;

/** The operator's key in the backup, and what seals its values. */
const KEY = `slipway_${'u'.repeat(43)}`;
const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

afterAll(cleanUpPrograms, SLOW_MS);

describe('a backup of 0.1.0', () => {
  it(
    'is restored, migrated by the start, and used',
    async () => {
      const settings = { DATA_DIR: await dataFolder(), ENCRYPTION_KEYS };
      // The permissions of a backup are not those that a checkout has.
      const folder = join(await dataFolder(), 'backup');
      await cp('test/upgrade/0.1.0', folder, { recursive: true });
      const restore = runProgram('cli/slipway.js', settings, { args: ['restore', folder] });
      expect([await restore.ended, restore.output()]).toEqual([0, expect.stringMatching(/^Restored \d+ rows/)]);
      const service = runProgram('main.js', settings);
      const get = async (path: string) =>
        (
          await supertest(await service.url())
            .get(path)
            .set('authorization', `Bearer ${KEY}`)
        ).body as object;
      expect(await get('/connect/acme/weather')).toMatchObject({
        connectionId: 'weather',
        metadata: { userId: 'u-1' },
      });
      expect(await get('/servers/acme%2Ftracker')).toMatchObject({ displayName: 'Tracker' });
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
    SLOW_MS,
  );
});
