import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifies } from '../support/verifies.js';

/** All checks, all unit tests and some e2e tests of a copy of this project. */
const COPY_MS_MAX = 20 * 60_000;
const notCopied = new Set(['.git', '.data', 'coverage', 'dist', 'node_modules']);

/** `npm run boundaries` */
const boundaries = [
  ...['node_modules/dependency-cruiser/bin/dependency-cruise.mjs', '--config', '.dependency-cruiser.cjs'],
  ...['src', 'migrations'],
];

let copy = '';
let written: string[];

/** Runs Node in the copy. @returns what it wrote */
function run(...args: string[]): string {
  // Without the variables of Jest and of its database.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TEST_|JEST_)/.test(name));
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: copy,
    encoding: 'utf8',
    env: Object.fromEntries(inherited),
  });
  expect([args[0], status, status === 0 ? '' : stdout + stderr]).toEqual([args[0], 0, '']);
  return stdout;
}

beforeAll(async () => {
  // Through the links below, an installation in the copy would replace our own packages.
  const check = "process.exit((await import('./scripts/lib.mjs')).isInstalled() ? 0 : 1)";
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', check]);
  if (status !== 0) throw new Error('The packages are not those of package-lock.json: run the tests with npm.');
  copy = await mkdtemp(path.join(tmpdir(), 'slipway-new-module-'));
  for (const name of readdirSync('.').filter((one) => !notCopied.has(one))) {
    await cp(name, path.join(copy, name), { recursive: true });
  }
  // Each package by itself, so that the caches of the copy are its own.
  await mkdir(path.join(copy, 'node_modules'));
  for (const name of readdirSync('node_modules').filter((one) => one !== '.cache')) {
    await symlink(path.resolve('node_modules', name), path.join(copy, 'node_modules', name));
  }
  const output =
    run('scripts/new-module.mjs', 'saved-searches') + run('scripts/new-module.mjs', 'likes', '--of', 'server');
  written = output.split('\n').filter((line) => line.endsWith('.ts'));
}, COPY_MS_MAX);

afterAll(async () => {
  if (copy !== '') await rm(copy, { recursive: true, force: true });
}, COPY_MS_MAX);

describe('npm run new:module', () => {
  verifies(
    'extension:generated',
    'writes modules that pass npm test as they are: each check, and each test that lists routes, tables or files',
    async () => {
      // With openapi.summary.txt these are 12 files each.
      expect(written).toHaveLength(2 * 11);
      run('node_modules/prettier/bin/prettier.cjs', '--check', '.');
      run('node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json');
      run('node_modules/eslint/bin/eslint.js', '--max-warnings=0', ...written);
      run(...boundaries);
      run('scripts/migration-generate.mjs', '--check');
      run('node_modules/jest/bin/jest.js', '--selectProjects', 'unit', '--maxWorkers=2');
      const listing = 'test/(e2e/(auth/access|likes|saved-searches)|contract/(openapi|contract-page))';
      run('node_modules/jest/bin/jest.js', '--selectProjects', 'e2e', '--maxWorkers=2', '--testPathPatterns', listing);
      const { paths } = JSON.parse(await readFile(path.join(copy, 'dist/openapi/openapi.json'), 'utf8'));
      expect(Object.keys(paths['/saved-searches/{namespace}/{name}'])).toEqual(['put', 'get', 'delete']);
      expect(Object.keys(paths['/servers/{qualifiedName}/likes'])).toEqual(['put', 'get', 'delete']);
      expect(Object.keys(paths['/likes'])).toEqual(['get']);
    },
    COPY_MS_MAX,
  );

  it.each([
    [['servers'], 'src/modules/servers exists already.'],
    [['Stars'], 'Name the module in the plural'],
    [['a b'], 'Name the module in the plural'],
    [['stars', '--of', 'release'], '--of takes namespace or server, not "release".'],
    [['stars', '--off', 'server'], "Unknown option '--off'"],
    // What npm passes of `npm run new:module stars --of server`.
    [['stars', 'server'], 'Separate the options with --: npm run new:module -- stars --of server'],
  ])('refuses %j and says why', (args, reason) => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/new-module.mjs', ...args], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, expect.stringContaining(reason)]);
  });
});
