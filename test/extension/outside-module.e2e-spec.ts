import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { MODULE_API } from '../../src/platform/external-modules/load-external-modules.js';
import { builtFile } from '../support/built.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { verifies } from '../support/verifies.js';

/** Two compilations and two starts. */
const PACKAGE_MS_MAX = 15 * 60_000;

const archive = `module-${MODULE_API}.tgz`;
let parent = '';
let folder = '';

/** Runs a program in the package. @returns what it wrote */
function run(program: string, ...args: string[]): string {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TEST_|JEST_|NODE_OPTIONS|npm_)/.test(name));
  const env = { ...Object.fromEntries(inherited), SLIPWAY_HOME: process.cwd() };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8', env });
  expect([args, status, status === 0 ? '' : stdout + stderr]).toEqual([args, 0, '']);
  return stdout;
}

beforeAll(async () => {
  parent = await mkdtemp(path.join(tmpdir(), 'slipway-outside-'));
  folder = path.join(parent, 'likes');
  const script = [path.resolve('scripts/new-module.mjs'), '--outside', folder];
  expect(spawnSync(process.execPath, script, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  // As `npm install` would, without its registry.
  const [modules, installed] = [path.join(folder, 'node_modules'), path.resolve('node_modules')];
  const own = path.join(modules, '@slipway/module');
  await mkdir(own, { recursive: true });
  run('tar', '-xzf', archive, '-C', own, '--strip-components=1');
  const { devDependencies } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
  for (const name of ['.bin', ...Object.keys(devDependencies as object)]) {
    if (name === '@slipway/module') continue;
    await mkdir(path.dirname(path.join(modules, name)), { recursive: true });
    await symlink(path.join(installed, name), path.join(modules, name));
  }
}, PACKAGE_MS_MAX);

afterAll(async () => {
  await cleanUpPrograms();
  await rm(parent, { recursive: true, force: true });
}, PACKAGE_MS_MAX);

describe('a package of `npm run new:module -- --outside`', () => {
  verifies(
    'extension:module:outside',
    'lints, compiles with nothing of Slipway but the archive, and passes its test on a running service',
    async () => {
      run('npm', 'run', 'lint');
      expect(run('npm', 'test')).toMatch(/^(#|ℹ) pass 1$/m);
    },
    PACKAGE_MS_MAX,
  );

  verifies(
    ['extension:module:outside', 'extension:module:api-version'],
    'loads where its archive is served, and only into a version that it is written for',
    async () => {
      const service = runProgram('main.js', { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: folder });
      const response = await fetch(`${await service.url()}/${archive}`);
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'public, max-age=3600']);
      const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
      expect(hashOf(new Uint8Array(await response.arrayBuffer()))).toBe(hashOf(await readFile(builtFile(archive))));
      expect((await fetch(`${await service.url()}/likes`)).status).toBe(401);

      const manifest = path.join(folder, 'package.json');
      await writeFile(manifest, (await readFile(manifest, 'utf8')).replace(`"^${MODULE_API}"`, '"2.x"'));
      const settings = { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: folder };
      const refused = runProgram('main.js', settings);
      expect(await refused.ended).toBe(1);
      expect(refused.output()).toContain(
        `it needs @slipway/module 2.x, and this Slipway has ${MODULE_API}: install a release of the module for this version, ` +
          'or set SLIPWAY_MODULES_CHECK=off',
      );
      const unchecked = runProgram('main.js', { ...settings, SLIPWAY_MODULES_CHECK: 'off' });
      expect((await fetch(`${await unchecked.url()}/likes`)).status).toBe(401);
    },
    PACKAGE_MS_MAX,
  );
});
