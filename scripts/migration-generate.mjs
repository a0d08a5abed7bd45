/**
 * `npm run migration:generate -- add-skill-files` compares the entities with what the existing migrations build and
 * writes the difference as a new migration; `--check` writes nothing and ends with code 1 when there is a difference.
 *
 * Works on a throwaway database of its own, so a developer's data never decides what a migration contains.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fail, filesUnder, prepare, root } from './lib.mjs';

const check = process.argv.includes('--check');
const name = process.argv.slice(2).find((argument) => !argument.startsWith('-'));
if (!check && !/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(name ?? '')) {
  fail('Name the change as verb-noun in lower case: npm run migration:generate -- add-skill-files');
}

prepare();
const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
const { migrate } = await import('../dist/src/platform/database/migrations.js');

const folder = mkdtempSync(join(tmpdir(), 'slipway-migration-'));
const database = await startEmbeddedPostgres({ dataDir: folder, log: () => {}, throwaway: true });
let code;
try {
  await migrate(database.url);
  code = check ? runTypeorm('check', '--check') : generate();
} finally {
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (check && code !== 0) {
  fail(
    'Entities and migrations disagree: run `npm run migration:generate -- <verb-noun>`, read the result, commit it.',
  );
}
process.exit(code);

function generate() {
  const before = new Set(filesUnder('migrations'));
  const status = runTypeorm(name);
  for (const file of filesUnder('migrations').filter((path) => !before.has(path))) {
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('import { MigrationInterface', 'import type { MigrationInterface'),
    );
    spawnSync(process.execPath, [join(root, 'node_modules/prettier/bin/prettier.cjs'), '--write', file], { cwd: root });
  }
  return status;
}

function runTypeorm(migration, ...flags) {
  const cli = join(root, 'node_modules', 'typeorm', 'cli.js');
  const dataSource = 'dist/src/platform/database/data-source.js';
  const args = [cli, 'migration:generate', `migrations/${migration}`, '-d', dataSource, '--esm', ...flags];
  // The settings ask for a key as soon as there is a DATABASE_URL; nothing is sealed here, so any will do.
  const env = {
    ...process.env,
    DATABASE_URL: database.url,
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  };
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}
