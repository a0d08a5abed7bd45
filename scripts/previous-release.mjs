#!/usr/bin/env node
/**
 * Runs e2e tests of the last release, the newest tag `v*`, on a database with the migrations of this version: during an
 * upgrade, processes of that release serve requests after the new version has migrated.
 *
 *   node scripts/previous-release.mjs               the tests of stored data: about five minutes
 *   node scripts/previous-release.mjs e2e           Jest patterns of other tests
 *
 * Part of `npm run test:long`. Without a tag it prints a line that begins with `skipped: `.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt, root } from './lib.mjs';

const stored = ['e2e/(namespaces|servers|connections|releases|run|logs|skills|tool-schemas)/'];

const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
const tag = git('describe', '--tags', '--abbrev=0', '--match', 'v*').stdout?.trim();

if (tag) process.exitCode = test(tag);
else process.stdout.write('skipped: the e2e tests of the last release on this database (no tag v*)\n');

/** @returns the exit code of the first step that fails, else 0 */
function test(release) {
  ensureBuilt();
  const folder = mkdtempSync(join(tmpdir(), 'slipway-release-'));
  const run = (...command) => {
    const env = { ...process.env, TEMPLATE_DIST: join(root, 'dist') };
    return spawnSync(command[0], command.slice(1), { cwd: folder, env, stdio: 'inherit' }).status ?? 1;
  };
  const patterns = process.argv.length > 2 ? process.argv.slice(2) : stored;
  try {
    process.stdout.write(`The e2e tests of ${release} on the database of this version\n`);
    return (
      git('worktree', 'add', '--detach', '--force', folder, release).status ||
      run('npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error') ||
      run('npm', 'run', 'jest', '--', '--selectProjects', 'e2e', '--', ...patterns)
    );
  } finally {
    git('worktree', 'remove', '--force', folder);
    rmSync(folder, { recursive: true, force: true });
  }
}
