import { afterAll, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { PartitionsRepository } from '../../src/modules/logs/store/partitions.repository.js';
import { BlobStore } from '../../src/platform/blobs/blob-store.js';
import { startApp } from '../support/app.js';
import { blobFiles } from '../support/database/blob-files.js';
import { bundled } from '../support/hosting/hosted-programs.js';
import { publishHosted } from '../support/hosting/hosted-releases.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { insertRelease } from '../support/releases/releases.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;
const DAY_MS = 86_400_000;

afterAll(cleanUpPrograms, SLOW_MS);

const PROGRAM = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export default () => new McpServer({ name: 'kept', version: '1.0.0' }).server;`;

const dayAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

describe('slipway prune', () => {
  verifies(
    'prune:removes',
    'counts and then removes old days of the log, old releases and unused files while the service runs, and keeps the rest',
    async () => {
      const app = await startApp({
        DATA_DIR: await dataFolder(),
        LOG_RETENTION_DAYS: '30',
      });
      try {
        const prune = async (...args: string[]) => {
          const { dataDir, databaseUrl } = app.env;
          const settings = {
            DATA_DIR: dataDir,
            DATABASE_URL: databaseUrl ?? '',
            ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
            LOG_RETENTION_DAYS: '30',
            RELEASE_KEEP_DAYS: '30',
          };
          const command = runProgram('cli/slipway.js', settings, {
            args: ['prune', ...args],
            tuning: { releaseKeep: 1 },
          });
          return { code: await command.ended, output: command.output() };
        };
        const owner = await app.account();
        const { name, release: current } = await publishHosted(app, owner, await bundled(PROGRAM));
        const aged = (days: number) =>
          insertRelease(app, name, { status: 'FAILURE', created_at: new Date(Date.now() - days * DAY_MS) });
        await aged(60);
        const keptReleases = [await aged(20), current.id, await aged(10)].sort();
        const releases = () =>
          app.database
            .query<{ id: string }[]>('SELECT id FROM releases ORDER BY id')
            .then((rows) => rows.map(({ id }) => id));
        const [{ hash: used }] = await app.database.query<[{ hash: string }]>('SELECT hash FROM release_artifacts');
        const blobs = app.get(BlobStore);
        const makeOld = async (hash: string, days: number) => {
          const at = new Date(Date.now() - days * DAY_MS);
          await utimes(await blobs.withFile(hash, (file) => Promise.resolve(file)), at, at);
        };
        const store = async (age: number, bytes: number) => {
          const { hash } = await blobs.put(Readable.from([randomBytes(bytes)]), bytes);
          await makeOld(hash, age);
          return hash;
        };
        await makeOld(used, 2);
        const [old, young] = [await store(2, 1024 ** 2), await store(0.5, 10)];
        const incoming = join(app.env.dataDir, 'blobs', 'incoming');
        await mkdir(incoming, { recursive: true });
        await writeFile(join(incoming, 'cut-off'), 'half');
        await utimes(join(incoming, 'cut-off'), new Date(0), new Date(0));
        const days = app.get(PartitionsRepository);
        for (const age of [3, 10]) await days.make(dayAgo(age));
        const kept = async () => [await blobs.has(old), await blobs.has(young), await blobs.has(used)];
        const logDays = async () => (await days.list()).map(({ day }) => day).filter((day) => day <= dayAgo(3));

        const counted = await prune('--older-than', '7d', '--dry-run');
        expect(counted.output).toMatch(
          /^Would remove: 1 days of logs \(\d+\.\d MB\), 1 releases, 1 files \(1\.0 MB\)$/m,
        );
        expect([await kept(), await logDays()]).toEqual([
          [true, true, true],
          [dayAgo(10), dayAgo(3)],
        ]);
        expect((await blobFiles(app)).incoming).toEqual(['cut-off']);
        expect(await releases()).toHaveLength(4);

        const removed = await prune('--older-than', '7d');
        expect(removed.output).toContain(counted.output.replace('Would remove', 'Removed'));
        expect(removed.code).toBe(0);
        expect([await kept(), await logDays()]).toEqual([[false, true, true], [dayAgo(3)]]);
        expect((await blobFiles(app)).incoming).toEqual([]);
        expect(await releases()).toEqual(keptReleases);
        expect(await prune('--older-than', 'soon')).toMatchObject({ code: 2 });
      } finally {
        await app.close();
      }
    },
    SLOW_MS,
  );
});
