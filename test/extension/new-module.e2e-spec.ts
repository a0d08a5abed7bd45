import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifies } from '../support/verifies.js';

/** A build, the type check, the linter and the tests of a whole copy of this project. */
const COPY_MS_MAX = 900_000;
const notCopied = new Set(['.git', '.data', 'coverage', 'dist', 'node_modules']);

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
  // Through the link below, an installation in the copy would replace our own packages.
  const check = "process.exit((await import('./scripts/lib.mjs')).isInstalled() ? 0 : 1)";
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', check]);
  if (status !== 0) throw new Error('The packages are not those of package-lock.json: run the tests with npm.');
  copy = await mkdtemp(path.join(tmpdir(), 'slipway-new-module-'));
  for (const name of readdirSync('.').filter((one) => !notCopied.has(one))) {
    await cp(name, path.join(copy, name), { recursive: true });
  }
  await symlink(path.resolve('node_modules'), path.join(copy, 'node_modules'));
  const output = run('scripts/new-module.mjs', 'saved-searches');
  written = output.split('\n').filter((line) => line.endsWith('.ts'));
}, COPY_MS_MAX);

afterAll(async () => {
  if (copy !== '') await rm(copy, { recursive: true, force: true });
}, COPY_MS_MAX);

describe('npm run new:module', () => {
  verifies(
    'extension:generated',
    'writes a module that is formatted, typed, allowed where it stands, and has its table and its tests',
    async () => {
      expect(written).toHaveLength(11);
      run('node_modules/prettier/bin/prettier.cjs', '--check', 'openapi.json', ...written);
      run('node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json');
      run('node_modules/eslint/bin/eslint.js', '--max-warnings=0', ...written);
      const cruiser = 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs';
      run(cruiser, '--config', '.dependency-cruiser.cjs', 'src', 'migrations');
      run('scripts/migration-generate.mjs', '--check');
      const tests = ['test/e2e/saved-searches/saved-searches.e2e-spec.ts', 'test/requirements.spec.ts'];
      const jest = ['node_modules/jest/bin/jest.js', '--runTestsByPath'];
      run(...jest, ...tests, 'test/contract/openapi.e2e-spec.ts');
      const { paths } = JSON.parse(await readFile(path.join(copy, 'openapi.json'), 'utf8'));
      expect(Object.keys(paths['/saved-searches/{namespace}/{name}'])).toEqual(['put', 'get', 'delete']);
    },
    COPY_MS_MAX,
  );

  it('refuses a name that is taken or cannot be one', () => {
    for (const name of ['servers', 'Stars', 'a b']) {
      const script = path.resolve('scripts/new-module.mjs');
      expect(spawnSync(process.execPath, [script, name]).status).toBe(1);
    }
  });
});
