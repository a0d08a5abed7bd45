import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { root } from '../../../scripts/lib.mjs';
import { aloneIt } from '../../support/jest/globals.mjs';
import { cleanUpPrograms, readySettings, runProgram } from '../../support/program.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;
const TURN_MS_MAX = 150;

afterAll(cleanUpPrograms, SLOW_MS);

/** CPU time of the main thread of a process, in milliseconds. */
async function cpuMs(pid: number): Promise<number> {
  const [ns] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(ns) / 1e6;
}

/** Addresses that answer GET without a key: the documents first, since others might prepare them. */
async function publicPaths(): Promise<string[]> {
  const { paths } = JSON.parse(await readFile(join(root, 'dist/openapi/openapi.json'), 'utf8')) as {
    paths: Record<string, { get?: object }>;
  };
  const operations = Object.entries(paths).filter(([path, { get }]) => get && !path.includes('{'));
  const files = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  const guides = files.filter((file) => file.includes('.')).map((file) => `/docs/${file}`);
  const script = '/docs/swagger-ui-init.js';
  const pages = ['/docs', '/', '/README.md', ...guides];
  return ['/openapi.yaml', '/openapi.json', script, `/docs${script}`, ...pages, ...operations.map(([path]) => path)];
}

aloneIt(
  'the first GET of every address that needs no key takes at most 150 ms of the main thread',
  async () => {
    const settings = await readySettings(generateApiKey());
    let slow = await publicPaths();
    // The least of three counts.
    for (let run = 0; run < 3 && slow.length > 0; run += 1) {
      const service = runProgram('main.js', settings);
      const url = await service.url();
      const tried = slow;
      slow = [];
      for (const path of tried) {
        const before = await cpuMs(service.pid);
        const response = await fetch(url + path, { headers: { accept: 'text/html, */*' } });
        const size = (await response.arrayBuffer()).byteLength;
        if ((await cpuMs(service.pid)) - before > TURN_MS_MAX) slow.push(path);
        if (/openapi|init\.js$/.test(path)) expect([path, response.status, size > 100_000]).toEqual([path, 200, true]);
      }
      service.kill('SIGTERM');
      await service.ended;
    }
    expect(slow).toEqual([]);
  },
  SLOW_MS,
);
