import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { cleanUpPrograms, dataFolder } from '../support/program.js';
import { endAfterTest } from '../support/jest/leftovers.mjs';
import { until } from '../support/until.js';

const SLOW_MS = 300_000;
afterAll(cleanUpPrograms);

it(
  'npm run dev restarts the service after a change, and its database goes on',
  async () => {
    const dataDir = await dataFolder();
    const env = { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0', LOG_FORMAT: 'json' };
    const dev = spawn(process.execPath, ['scripts/dev.mjs'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    endAfterTest(() => void dev.kill('SIGTERM'));
    let output = '';
    dev.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const starts = (count: number) =>
      until(() => output.split('Slipway listens').length > count, `it listens for the ${count}. time`, 150_000);
    const postgres = async () => (await readFile(join(dataDir, 'pg/postmaster.pid'), 'utf8')).split('\n')[0];
    await starts(1);
    const before = await postgres();
    const now = new Date();
    await utimes('src/main.ts', now, now);
    await starts(2);
    expect(await postgres()).toBe(before);
    dev.kill('SIGTERM');
    await once(dev, 'exit');
    await expect(postgres()).rejects.toThrow('ENOENT');
  },
  SLOW_MS,
);
