/**
 * Everything a contribution must pass. Every step runs, even after one has failed; without a build, the steps that need one
 * are `not run`.
 *
 *   npm test              format, lint, boundaries, types, build, drift, and all tests but the long ones
 *   npm test -- <args>    Jest with these arguments: `npm test -- connections -t "another owner"`
 *   npm run test:quick    unit tests, and the e2e tests of what differs from `main`
 *   npm run test:long     what takes minutes: kills, published programs, documentation, generated module, soak, conformance
 *   npm test -- --all     npm test and then test:long, with one count at the end; writes test/GREEN when nothing failed
 *   npm test -- --landing npm test, and of test:long what differs from the commit of test/GREEN can break (landing.mjs)
 *   --strict              with any of these: failed tests are not repeated
 *
 * Everything that tests draw follows from `TEST_SEED`, which is a constant unless it is set. A repetition draws the same.
 *
 * Each step prints one line with its time; a failing step prints its output, of Jest only what failed. A test file that
 * failed runs a second time, alone: if it passes then, `FLAKY <file>` is printed before the last line, and it counts as passed.
 * The last line counts tests: `N passed, N failed` or `N passed, N failed, N skipped`. A failed check that is not a
 * test is one failure.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { longTestsOfChange, writeGreen } from './landing.mjs';
import { openApiSummary, summaryFile } from './openapi-summary.mjs';
import { checkNode, ensureInstalled, filesUnder, readText, repoPath, root } from './lib.mjs';

/** A step that hangs must fail, not stall a pipeline for hours. */
const stepTimeoutMs = 40 * 60_000;
/** One more than there are processors: tests wait for leases, caches and the processes that they start. */
const jestWorkers = cpus().length + 1;

/** Failed files that are repeated, each alone. */
const repeatedFilesMax = 10;

const oneWorker = ['--maxWorkers=1'];

/** The e2e tests of everything that stores files. `npm run test:long` repeats them with the files in S3. */
const filesTests = [
  'contract/(mcpb|publish-cli|skills)',
  'e2e/releases/(hosted-bundles|hosted-releases|publish|release-blobs|releases)\\.',
  'e2e/servers/server-icons',
  'e2e/skills',
];

const bin = (path) => join(root, 'node_modules', path);
const cache = bin('.cache');
const temp = mkdtempSync(join(tmpdir(), 'slipway-test-'));
const children = new Set();
const counts = { passed: 0, failed: 0, skipped: 0 };
const notes = [];
/** The outcome of the build; undefined before it begins. */
let built;
const started = Date.now();
let finished = false;

process.on('exit', () => {
  for (const child of children) kill(child);
  rmSync(temp, { recursive: true, force: true });
  // Interrupted, or the packages could not be installed: the last line must not be missing, nor look like success.
  if (!finished) process.stdout.write(`${counts.passed} passed, ${counts.failed + 1} failed\n`);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

checkNode();
ensureInstalled();
mkdirSync(cache, { recursive: true });

/** A step that runs one program of node_modules. */
const node = (name, ...args) => ({ name, run: () => command(process.execPath, args) });

const steps = {
  format: node(
    'format',
    bin('prettier/bin/prettier.cjs'),
    '--check',
    '.',
    '--cache',
    '--cache-strategy=content',
    // Not at "prettier", which must be a folder for Prettier itself.
    `--cache-location=${join(cache, 'format')}`,
  ),
  lint: { name: 'lint', run: lint },
  language: node('language', join(root, 'scripts/language.mjs')),
  boundaries: node(
    'boundaries',
    bin('dependency-cruiser/bin/dependency-cruise.mjs'),
    '--config',
    '.dependency-cruiser.cjs',
    `--cache=${join(cache, 'boundaries')}`,
    '--cache-strategy=content',
    '--output-type=err-long',
    ...['src', 'migrations'].filter((folder) => existsSync(join(root, folder))),
  ),
  types: node(
    'types',
    bin('typescript/bin/tsc'),
    ...['--noEmit', '-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', join(cache, 'types.tsbuildinfo')],
  ),
  // A process of its own, so that the other steps go on meanwhile.
  build: node('build', '--input-type=module', '-e', "(await import('./scripts/lib.mjs')).ensureBuilt()"),
  openapi: { name: 'OpenAPI drift', run: checkOpenApi },
  migrations: node('migration drift', join(root, 'scripts/migration-generate.mjs'), '--check'),
};

/** Steps of `npm run test:long` in addition to Jest's, each with the paths that can break it. */
const longSteps = [
  {
    name: 'e2e tests with files in S3',
    subject: /^src\/platform\/(blobs|files|zip)\/|^src\/modules\/(releases|skills)\//,
    run: (name) => runJest(name, ['e2e'], filesTests, { TEST_FILES: 's3' }),
  },
  {
    name: 'image',
    subject: /^(docker|scripts)\/|^src\/(main|supervisor|config)/,
    run: (name) => runScript(name, 'scripts/test-image.mjs'),
  },
  {
    name: 'tests of the last release',
    subject: /^migrations\//,
    run: (name) => runScript(name, 'scripts/previous-release.mjs'),
  },
  { name: 'conformance', subject: /^src\/mcp\//, run: (name) => runScript(name, 'scripts/conformance.mjs') },
];

const args = process.argv.slice(2).filter((arg) => arg !== '--strict');
const isStrict = process.argv.includes('--strict');
if (args[0] === '--quick') await runQuick();
else if (args[0] === '--long') await runLong();
else if (args[0] === '--all') await runAll().then(runLong).then(recordGreen);
else if (args[0] === '--landing') await runLanding();
else if (args.length > 0) await runSome(args);
else await runAll();
finish();

/** Jest with these arguments. Long tests run only when an argument names them: `npm test -- test/docs`. */
async function runSome(args) {
  const projects = args.some((arg) => /\b(docs|extension|long|soak)\b/.test(arg))
    ? ['unit', 'e2e', 'alone', 'long', 'long-alone']
    : ['unit', 'e2e', 'alone'];
  await runJest('tests', args.includes('--selectProjects') ? [] : projects, args);
}

/** The tests begin as soon as there is a build; the checks use the processors while tests wait. */
async function runAll() {
  await Promise.all([
    withBuild('tests', () => runJestOn('redis', 'tests', [], 'unit', 'e2e')),
    runSteps(steps.types, steps.lint, steps.language, steps.boundaries, steps.format),
    withBuild('OpenAPI and migration drift', () => runSteps(steps.openapi, steps.migrations)),
  ]);
  await withBuild('tests alone', (name) => runJest(name, ['alone'], oneWorker));
}

/** `npm test`, and of the long tests what the change can break. */
async function runLanding() {
  await runAll();
  const { reason, files, all, pages, changed, since } = longTestsOfChange();
  if (reason !== undefined) {
    notes.push(`all long tests ran: ${reason}`);
    await runLong();
    return;
  }
  const paths = (list) => ['--runTestsByPath', ...list];
  // One start of processes with kills, whatever has changed.
  const kills = join(root, 'test/long/workers.e2e-spec.ts');
  const chosen = [...new Set([...files, kills])];
  await withBuild('long tests', (name) => runJest(name, ['long'], paths(chosen)));
  await withBuild('long tests alone', (name) => runJest(name, ['long-alone'], [...oneWorker, ...paths(chosen)]));
  if (pages.length > 0) {
    const docs = paths([join(root, 'test/docs/commands.e2e-spec.ts')]);
    const named = ['-t', `(${pages.map((page) => page.replaceAll('.', '\\.')).join('|')}) work`];
    await withBuild('commands of pages', (name) => runJest(name, ['long'], [...docs, ...named]));
  }
  const steps = longSteps.filter(({ subject }) => changed.some((path) => subject.test(path)));
  for (const { name, run } of steps) await withBuild(name, run);
  const left = longSteps.filter((step) => !steps.includes(step)).map(({ name }) => name);
  notes.push(
    `full run: ${since.commit.slice(0, 8)} of ${since.date}; ${changed.length} files differ from it`,
    `ran ${chosen.length} of ${all.length} files with long tests and the commands of ${pages.length} pages; ` +
      `left out what the change does not reach${left.length > 0 ? `, and: ${left.join(', ')}` : ''}`,
  );
}

/** Records a run of everything, with its counts. */
function recordGreen() {
  const seconds = Math.round((Date.now() - started) / 1000);
  if (counts.failed === 0) writeGreen({ ...counts, seconds });
}

/** The unit tests, the e2e tests in the folders of changed modules, and those that were changed themselves. */
async function runQuick() {
  const changed = changedFiles();
  const modules = new Set(changed.flatMap((file) => /^src\/(?:modules\/)?([\w-]+)\//.exec(file)?.[1] ?? []));
  const isWanted = (file) => modules.has(/^test\/e2e\/([\w-]+)\//.exec(file)?.[1]) || changed.includes(file);
  const services = filesUnder('test')
    .map(repoPath)
    .filter((file) => file.endsWith('.e2e-spec.ts') && isWanted(file));
  await Promise.all([
    runJest('unit tests', ['unit'], [`--maxWorkers=${cpus().length}`]),
    withBuild(
      'e2e tests',
      () => services.length > 0 && runJest('e2e tests', ['e2e'], ['--runTestsByPath', ...services]),
    ),
  ]);
}

async function runLong() {
  if (!hasNginx()) notes.push('skipped: the nginx sample, a rolling restart (no nginx)');
  if (!hasPgBouncer()) notes.push('skipped: a pooler, a standby (no pgbouncer or no postgresql)');
  await withBuild('long tests', () => runJestOn('redis-long', 'long tests', [], 'long'));
  await withBuild('long tests alone', () => runJestOn('redis-long-alone', 'long tests alone', oneWorker, 'long-alone'));
  for (const { name, run } of longSteps) await withBuild(name, run);
}

/** Runs what needs a build, which is made once. */
async function withBuild(name, run) {
  built ??= runSteps(steps.build);
  if (await built) await run(name);
  else process.stdout.write(`not run  ${name}: the build failed\n`);
}

/** Runs a script as a step; a line of it that begins with `skipped: ` is repeated at the end. */
async function runScript(name, file) {
  const result = await timed(() => command(process.execPath, [join(root, file)]));
  report(name, result);
  notes.push(...(result.output.match(/^skipped: .*/m) ?? []));
}

/** Files that differ from the branch `main`, committed or not. Without that branch, the uncommitted ones. */
function changedFiles() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  const base = git('merge-base', 'main', 'HEAD').stdout?.trim() || 'HEAD';
  const lines = (result) => (result.stdout ?? '').split('\n').filter((line) => line !== '');
  return [
    ...lines(git('diff', '--name-only', '--relative', base)),
    ...lines(git('ls-files', '--others', '--exclude-standard')),
  ];
}

/** Runs the steps in order. @returns true when none failed */
async function runSteps(...steps) {
  let isOk = true;
  for (const step of steps) {
    const result = await timed(step.run);
    report(step.name, result);
    isOk &&= result.ok;
  }
  return isOk;
}

/**
 * Lints what changed since it last passed. ESLint's own cache does not fit: the rules read types, so a file can become
 * wrong while its own text stays the same. The key of a file holds everything it imports, directly or not.
 */
async function lint() {
  const file = join(cache, 'lint.json');
  const before = JSON.parse(readText(file) ?? '{}');
  const keys = lintKeys();
  const changed = Object.keys(keys).filter((path) => keys[path] !== before[path]);
  if (changed.length === 0) return { ok: true, output: '' };
  const result = await command(process.execPath, [
    bin('eslint/bin/eslint.js'),
    '--max-warnings=0',
    '--no-warn-ignored',
    ...changed,
  ]);
  if (result.ok) writeFileSync(file, JSON.stringify(keys));
  return result;
}

/** The linted files, each with a hash of its text, of the files that it imports, and of the configuration. */
function lintKeys() {
  const ignored = new Set(['.git', '.data', 'coverage', 'dist', 'node_modules']);
  const paths = readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !ignored.has(name))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(entry.name) : [join(root, entry.name)]))
    .filter((path) => /\.([cm]?[jt]s)$/.test(path) || /^(tsconfig.*|package-lock)\.json$/.test(repoPath(path)));
  const texts = new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  // Imports of examples and templates do not resolve here: these files are linted again after every change.
  const isElsewhere = (path) => /^(examples|scripts)\//.test(repoPath(path));
  const imports = new Map(paths.map((path) => [path, isElsewhere(path) ? paths : importsOf(path, texts.get(path))]));
  const sha = (text) => createHash('sha256').update(text).digest('base64');
  const hashes = new Map(paths.map((path) => [path, sha(`${repoPath(path)}\0${texts.get(path)}`)]));
  const isForAll = (path) => /\.json$|\.d\.[cm]?ts$|eslint\.config/.test(path);
  const common = [process.version, ...paths.filter(isForAll).map((path) => hashes.get(path))];
  const keyOf = (path) => {
    const reached = new Set([path]);
    for (const file of reached) for (const next of imports.get(file) ?? []) reached.add(next);
    return sha([...common, ...[...reached].map((file) => hashes.get(file))].join());
  };
  const linted = paths.filter((path) => /\.([cm]?js|ts)$/.test(path));
  return Object.fromEntries(linted.map((path) => [repoPath(path), keyOf(path)]));
}

/** The TypeScript files of this repository that a file imports. */
function importsOf(path, text) {
  return [...text.matchAll(/(?:from|import|import\()\s*'(\.{1,2}\/[^']+)\.js'/g)].map(
    ([, specifier]) => `${join(dirname(path), specifier)}.ts`,
  );
}

/** Runs Jest as a step, with these projects and, where there is a Redis, the project that needs one. */
async function runJestOn(redisProject, name, args, ...projects) {
  if (!onPath('redis-server')) {
    const note = 'skipped: e2e on Redis (no redis-server)';
    if (!notes.includes(note)) notes.push(note);
    return runJest(name, projects, args);
  }
  const redis = await startRedis();
  await runJest(name, [...projects, redisProject], args, { REDIS_FOR_TESTS: redis.url });
  kill(redis.child);
}

/** Runs Jest as a step, and counts its tests. Without projects, nothing that failed is repeated. */
async function runJest(name, projects, args = [], env = {}) {
  const begin = Date.now();
  const first = await jest(projects, args, env);
  const broken = [...new Set(first.files.filter(isFailed).map((file) => file.name))];
  // More failures have a common cause, such as a database that stopped: a repetition of all files would take hours.
  const failed = isStrict || projects.length === 0 || broken.length > repeatedFilesMax ? [] : broken;
  let files = first.files;
  const flaky = [];
  for (const path of failed) {
    const again = await jest(projects, ['--runTestsByPath', path], env);
    if (!again.ok || again.files.length === 0) continue;
    files = [...files.filter((file) => file.name !== path), ...again.files];
    flaky.push(path);
    notes.push(`FLAKY ${repoPath(path)}`);
  }
  const count = (status) => files.flatMap((file) => file.assertionResults).filter((test) => status(test.status)).length;
  const passed = count((status) => status === 'passed');
  counts.passed += passed;
  counts.skipped += count((status) => status !== 'passed' && status !== 'failed');
  // A file that does not load has no tests to count, and Jest can end without a result: neither must look like success.
  const isOk = first.ok || (failed.length > 0 && !files.some(isFailed));
  const failedTests = ({ assertionResults }) => assertionResults.filter(({ status }) => status === 'failed').length;
  const failures = files.filter(isFailed).reduce((sum, file) => sum + Math.max(failedTests(file), 1), 0);
  const seconds = ((Date.now() - begin) / 1000).toFixed(1);
  if (flaky.length > 0) {
    process.stdout.write(`${failuresOf(first.files.filter((file) => flaky.includes(file.name)))}\n\n`);
  }
  report(
    name,
    { ok: isOk, seconds, output: failuresOf(files) || first.output },
    `${passed} tests`,
    Math.max(failures, 1),
  );
}

function isFailed(file) {
  return file.status === 'failed';
}

/** Runs Jest. @returns `files`: the results of each file, for each project */
async function jest(projects, args, env) {
  const outputFile = join(temp, `${randomUUID()}.json`);
  const workers = args.some((arg) => arg.startsWith('--maxWorkers')) ? [] : [`--maxWorkers=${jestWorkers}`];
  const options = ['--json', `--outputFile=${outputFile}`, ...workers, '--passWithNoTests'];
  const ignored = ['/node_modules/'];
  const note = (text) => notes.includes(text) || notes.push(text);
  if (chromium()) {
    env = { ...env, CHROMIUM_PATH: chromium() };
  } else {
    ignored.push('/test/browser/');
    if (projects.some((project) => project !== 'unit')) note('skipped: browser tests (no chromium)');
  }
  if (!hasNginx()) ignored.push('/test/long/nginx', '/test/long/rolling');
  if (!hasPgBouncer()) ignored.push('/test/long/pgbouncer');
  if (!onPath('promtool')) {
    ignored.push('/test/promtool');
    if (projects.includes('unit')) note('skipped: the expressions of dashboard and alerts (no promtool)');
  }
  if (!onPath('systemd-analyze')) {
    ignored.push('/test/systemd');
    if (projects.includes('unit')) note('skipped: the unit for systemd (no systemd-analyze)');
  }
  if (!onPath('kubectl')) {
    ignored.push('/test/e2e/platform/kubernetes');
    if (projects.includes('e2e')) note('skipped: the rendered kustomization (no kubectl)');
  }
  // First: an option that may be repeated takes the paths that follow it, too.
  if (ignored.length > 1) options.unshift(...ignored.map((path) => `--testPathIgnorePatterns=${path}`));
  if (projects.length > 0) options.unshift('--selectProjects', ...projects);
  const jestArgs = [bin('jest/bin/jest.js'), ...options, `--cacheDirectory=${join(cache, 'jest')}`, ...args];
  const result = await command(process.execPath, jestArgs, env);
  return { ...result, files: JSON.parse(readText(outputFile) ?? 'null')?.testResults ?? [] };
}

/**
 * The failed files with the messages of their failed tests. Jest's own output begins with the
 * files that passed, which hides the failures where only the first lines of a run are shown.
 */
function failuresOf(files) {
  return files
    .filter(isFailed)
    .map(({ name, message }) => `FAIL ${repoPath(name)}\n\n${stripVTControlCharacters(message).trim()}`)
    .join('\n\n');
}

async function checkOpenApi() {
  const generated = openApiSummary();
  const committed = readText(summaryFile) ?? '';
  if (generated === committed) return { ok: true, output: '' };
  const [was, is] = [committed.split('\n'), generated.split('\n')];
  const line = is.findIndex((text, index) => text !== was[index]);
  const at = line < 0 ? is.length : line;
  const output =
    'openapi.summary.txt no longer describes the code: run `npm run openapi`, read the difference, commit it.\n' +
    `First difference, line ${at + 1}:\n- ${was[at] ?? '(end of file)'}\n+ ${is[at] ?? '(end of file)'}\n`;
  return { ok: false, output };
}

/** Runs a program to its end with its output kept. A group of its own, so that stopping it reaches its children. */
function command(program, args, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
    });
    children.add(child);
    let output = '';
    const timer = setTimeout(() => {
      output += `\nStopped after ${stepTimeoutMs / 60_000} minutes.\n`;
      kill(child);
    }, stepTimeoutMs);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => (output += chunk));
    }
    child.on('error', (error) => (output += error.message));
    child.on('close', (code) => {
      clearTimeout(timer);
      children.delete(child);
      resolve({ ok: code === 0, output });
    });
  });
}

function kill(child) {
  try {
    if (process.platform === 'win32') child.kill();
    else process.kill(-child.pid, 'SIGTERM');
  } catch {
    // Already gone.
  }
}

async function timed(run) {
  const begin = Date.now();
  const result = await run();
  return { ...result, seconds: ((Date.now() - begin) / 1000).toFixed(1) };
}

/** Prints a step, and counts its failures if it failed. */
function report(name, { ok, output, seconds }, extra = '', failures = 1) {
  process.stdout.write(
    `${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(22)} ${seconds.padStart(6)} s  ${extra}`.trimEnd() + '\n',
  );
  if (ok) return;
  counts.failed += failures;
  process.stdout.write(`\n${output.trim()}\n\n`);
  notes.push(`failed: ${name}`);
}

function finish() {
  finished = true;
  const { passed, failed, skipped } = counts;
  const lines = ['', ...notes, `took ${((Date.now() - started) / 1000).toFixed(1)} s`];
  lines.push(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.stdout.write(`${lines.join('\n')}\n`);
  process.exit(failed > 0 ? 1 : 0);
}

/** The browser for the Swagger UI tests, or undefined. */
function chromium() {
  return [process.env.CHROMIUM_PATH, '/usr/bin/chromium'].find((path) => path && isExecutable(path));
}

/** Debian installs it where only root looks. */
function hasNginx() {
  return onPath('nginx') || isExecutable('/usr/sbin/nginx');
}

/** Debian keeps both off the PATH. */
function hasPgBouncer() {
  return isExecutable('/usr/sbin/pgbouncer') && isExecutable('/usr/lib/postgresql');
}

function onPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * A real Redis on a free port, in memory, set up the way production must be (`noeviction`). Tests fail where it does not
 * start. Redis ends with this process at the latest.
 */
async function startRedis() {
  const port = await freePort();
  const persistence = ['--save', '', '--appendonly', 'no', '--dir', temp];
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--maxmemory-policy', 'noeviction', ...persistence];
  const child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  children.add(child);
  let output = '';
  await new Promise((resolve) => {
    const timer = setTimeout(() => child.kill(), 10_000);
    child.on('error', (error) => (output += error.message));
    child.on('close', () => {
      clearTimeout(timer);
      children.delete(child);
      if (!output.includes('Ready to accept connections')) process.stdout.write(`Redis did not start.\n${output}\n`);
      resolve();
    });
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
      if (!output.includes('Ready to accept connections')) return;
      clearTimeout(timer);
      resolve();
    });
  });
  return { url: `redis://127.0.0.1:${port}`, child };
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
