import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifies } from '../support/verifies.js';

/** A build, the type check, the linter and the tests of a whole copy of this project. */
const COPY_MS_MAX = 900_000;
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
  // Through the link below, an installation in the copy would replace our own packages.
  const check = "process.exit((await import('./scripts/lib.mjs')).isInstalled() ? 0 : 1)";
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', check]);
  if (status !== 0) throw new Error('The packages are not those of package-lock.json: run the tests with npm.');
  copy = await mkdtemp(path.join(tmpdir(), 'slipway-new-module-'));
  for (const name of readdirSync('.').filter((one) => !notCopied.has(one))) {
    await cp(name, path.join(copy, name), { recursive: true });
  }
  await symlink(path.resolve('node_modules'), path.join(copy, 'node_modules'));
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
    'writes modules that are formatted, typed, allowed where they stand, and have their tables and their tests',
    async () => {
      // With openapi.json these are 12 files each.
      expect(written).toHaveLength(2 * 11);
      run('node_modules/prettier/bin/prettier.cjs', '--check', 'openapi.json', ...written);
      run('node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json');
      run('node_modules/eslint/bin/eslint.js', '--max-warnings=0', ...written);
      run(...boundaries);
      run('scripts/migration-generate.mjs', '--check');
      const modules = ['test/e2e/saved-searches/saved-searches.e2e-spec.ts', 'test/e2e/likes/likes.e2e-spec.ts'];
      const tests = [
        'test/e2e/auth/access.e2e-spec.ts',
        'test/contract/openapi.e2e-spec.ts',
        'test/requirements.spec.ts',
      ];
      run('node_modules/jest/bin/jest.js', '--runTestsByPath', ...modules, ...tests);
      const { paths } = JSON.parse(await readFile(path.join(copy, 'openapi.json'), 'utf8'));
      expect(Object.keys(paths['/saved-searches/{namespace}/{name}'])).toEqual(['put', 'get', 'delete']);
      expect(Object.keys(paths['/servers/{qualifiedName}/likes'])).toEqual(['put', 'get', 'delete']);
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

/** Moves `examples/stars-module` into the tree of the copy, as docs/extend.md says. @returns the files there */
async function moveExample(): Promise<string[]> {
  const folder = path.join(copy, 'src/modules/stars');
  await cp('examples/stars-module/src', folder, { recursive: true });
  const migration = 'migrations/1795300000000-create-stars.ts';
  await rename(path.join(folder, 'create-stars.migration.ts'), path.join(copy, migration));
  const rows = (await readFile('docs/extend.md', 'utf8')).matchAll(/^\| (`.*`) +\| `(\.\..*\.js)` +\|$/gm);
  const fileOf = new Map(
    [...rows].flatMap(([, names, file]) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name, file])),
  );
  const files = readdirSync(folder).map((name) => `src/modules/stars/${name}`);
  for (const file of files) {
    const source = await readFile(path.join(copy, file), 'utf8');
    const moved = source
      .replace(/^export default defineModule\([^]*?^\}\);$/m, '')
      .replace(/^import .*create-stars\.migration\.js';$/m, '')
      .replace('defineModule, ', '')
      .replace(/^import \{ (.*) \} from 'slipway';$/m, (_, names: string) =>
        names
          .split(', ')
          .map((name) => `import { ${name} } from '${fileOf.get(name.replace('type ', ''))}';`)
          .join('\n'),
      );
    await writeFile(path.join(copy, file), moved);
  }
  return [...files, migration];
}

describe('the example of a module outside of the source tree', () => {
  verifies(
    'extension:moved',
    'passes the type check, the linter and the boundaries in the tree',
    async () => {
      const moved = await moveExample();
      run('node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json');
      run('node_modules/eslint/bin/eslint.js', '--max-warnings=0', ...moved);
      run(...boundaries);
    },
    COPY_MS_MAX,
  );
});
