/**
 * `npm test` (also `npm run check`): everything a contribution must pass, in order, stopping at the first failure.
 *
 * `npm test -- <pattern>` builds and passes the arguments to Jest, for work on one thing:
 * `npm test -- connections -t "another owner"`.
 *
 * Each step prints one line with its time; a failing step prints all of its output. The last line counts tests:
 * `N passed, N failed` or `N passed, N failed, N skipped`. A failed check that is no test counts as one failure.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { checkNode, ensureInstalled, filesUnder, readText, repoPath, root } from './lib.mjs';

/** A step that hangs must fail, not stall a pipeline for hours. */
const stepTimeoutMs = 30 * 60_000;
/** More failed files than these are no accident, and not run again. */
const RERUN_FILES_MAX = 3;
/** Two at least: the tests mostly wait for databases and sockets. */
const jestWorkers = Math.max(2, cpus().length - 1);

const bin = (path) => join(root, 'node_modules', path);
const cache = bin('.cache');
const temp = mkdtempSync(join(tmpdir(), 'slipway-test-'));
const children = new Set();
const counts = { passed: 0, failed: 0, skipped: 0 };
const notes = [];
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
  // No cache here: the rules read types, so a file can become wrong while its own text stays the same.
  lint: node('lint', bin('eslint/bin/eslint.js'), '.', '--max-warnings=0'),
  boundaries: node(
    'boundaries',
    bin('dependency-cruiser/bin/dependency-cruise.mjs'),
    '--config',
    '.dependency-cruiser.cjs',
    '--output-type=err-long',
    ...['src', 'migrations'].filter((folder) => existsSync(join(root, folder))),
  ),
  types: node(
    'types',
    bin('typescript/bin/tsc'),
    ...['--noEmit', '-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', join(cache, 'types.tsbuildinfo')],
  ),
  // A process of its own, so that the other lane goes on meanwhile.
  build: node('build', '--input-type=module', '-e', "(await import('./scripts/lib.mjs')).ensureBuilt()"),
  openapi: { name: 'OpenAPI drift', run: checkOpenApi },
  migrations: node('migration drift', join(root, 'scripts/migration-generate.mjs'), '--check'),
};

if (process.argv.length > 2) await runPattern(process.argv.slice(2));
else await runAll();
finish();

async function runAll() {
  const kinds = specsByKind();
  await runPool([steps.format, steps.lint, steps.boundaries, steps.types, steps.build]);
  await runPool([steps.openapi, steps.migrations]);
  await runJest('unit', kinds.unit);
  // In one run: each would start a database of its own, and wait at its end for the slowest file with one worker alone.
  const services = [...kinds.e2e, ...kinds.contract];
  if (chromium()) services.push(...kinds.browser);
  else notes.push('skipped: browser tests (no chromium)');
  await runJest(chromium() ? 'e2e, contract, browser' : 'e2e, contract', services, browserEnv());

  // What never meets a job or another process behaves the same wherever the queue lives.
  const queued = kinds.e2e.filter((file) => readText(file)?.startsWith('// Also run with the queue on Redis'));
  if (onPath('redis-server')) await runJest('e2e on Redis', queued, { TEST_REDIS_URL: await startRedis() });
  else notes.push('skipped: e2e on Redis (no redis-server)');
  if (kinds.soak.length > 0) notes.push('skipped: soak tests (hours, not seconds: npm test -- test/soak)');
}

async function runPattern(args) {
  await runPool([steps.build]);
  const ignored = ['/node_modules/'];
  if (!chromium()) {
    ignored.push('/test/browser/');
    notes.push('skipped: browser tests (no chromium)');
  }
  if (!args.some((arg) => arg.includes('soak'))) ignored.push('/test/soak/');
  const result = await jestOnce('tests', [...args, '--testPathIgnorePatterns', ...ignored], browserEnv());
  conclude('tests', result, [result.summary]);
}

/**
 * Spec files by the step that runs them. Whatever lies in no special folder is a unit test, so a file in a new folder
 * is run rather than forgotten.
 */
function specsByKind() {
  const kinds = { unit: [], e2e: [], contract: [], browser: [], soak: [] };
  for (const file of [...filesUnder('src'), ...filesUnder('test')]) {
    if (!/\.(spec|e2e-spec)\.ts$/.test(file)) continue;
    const folder = /^test\/(e2e|contract|browser|soak)\//.exec(repoPath(file))?.[1] ?? 'unit';
    kinds[folder].push(file);
  }
  return kinds;
}

/** Runs steps that do not need each other, two at a time, started in order, until all are done or one fails. */
async function runPool(pool) {
  const queue = [...pool];
  const lane = async () => {
    for (let step = queue.shift(); step; step = queue.shift()) {
      const result = await timed(step.run);
      if (!result.ok) stop(step.name, result);
      report(step.name, result);
    }
  };
  await Promise.all([lane(), lane()]);
}

async function runJest(name, files, env = {}) {
  if (files.length === 0) notes.push(`skipped: ${name} (no such tests)`);
  else await jest(name, ['--runTestsByPath', ...files], env);
}

async function jest(name, args, env) {
  const first = await jestOnce(name, args, env);
  const failed = first.summary?.testResults.filter(({ status }) => status === 'failed') ?? [];
  if (failed.length === 0 || failed.length > RERUN_FILES_MAX) return conclude(name, first, [first.summary]);
  // Tests that kill processes on a busy machine can meet a rare order of events. What fails alone, too, is broken; what
  // does not is said by name, since a test that fails now and then is a fault of its own.
  const again = await jestOnce(`${name} again`, ['--runTestsByPath', ...failed.map((file) => file.name)], env);
  for (const file of failed) {
    const titles = file.assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    notes.push(
      `failed at first, ${again.ok ? 'passed' : 'run'} again alone: ${repoPath(file.name)}: ${titles.join('; ')}`,
    );
  }
  const kept = first.summary.testResults.filter(({ status }) => status !== 'failed');
  const output = `${first.output}\n\nThe failed files again, alone:\n${again.output}`;
  conclude(name, { ...again, output, seconds: (+first.seconds + +again.seconds).toFixed(1) }, [
    countTests(kept),
    again.summary,
  ]);
}

/** Runs Jest. The summary is null when Jest itself could not run. */
async function jestOnce(name, args, env) {
  const outputFile = join(temp, `${name.replaceAll(/\W+/g, '-')}.json`);
  const own = [
    '--json',
    `--outputFile=${outputFile}`,
    `--maxWorkers=${jestWorkers}`,
    `--cacheDirectory=${join(cache, 'jest')}`,
  ];
  const nodeArgs = [bin('jest/bin/jest.js')];
  const result = await timed(() => command(process.execPath, [...nodeArgs, ...own, ...args], env));
  return { ...result, summary: JSON.parse(readText(outputFile) ?? 'null') };
}

/** The counts of a Jest summary, of some of its files. */
function countTests(files) {
  const statuses = files.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status));
  const count = (wanted) => statuses.filter((status) => status === wanted).length;
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: count('pending'),
    numTodoTests: count('todo'),
    numRuntimeErrorTestSuites: 0,
  };
}

function conclude(name, result, summaries) {
  const sum = (key) => summaries.reduce((total, summary) => total + (summary?.[key] ?? 0), 0);
  const passed = sum('numPassedTests');
  counts.passed += passed;
  counts.skipped += sum('numPendingTests') + sum('numTodoTests');
  // A file that does not load has no tests to count, and must not look like success.
  const failed = sum('numFailedTests') + sum('numRuntimeErrorTestSuites');
  if (!result.ok || summaries.includes(null)) stop(name, result, Math.max(failed, 1));
  report(name, result, `${passed} tests`);
}

async function checkOpenApi() {
  const file = join(temp, 'openapi.json');
  const result = await command(process.execPath, [join(root, 'dist/src/cli/openapi.js'), file]);
  if (!result.ok) return result;
  const generated = readFileSync(file, 'utf8');
  const committed = readText(join(root, 'openapi.json')) ?? '';
  if (generated === committed) return result;
  const [was, is] = [committed.split('\n'), generated.split('\n')];
  const line = is.findIndex((text, index) => text !== was[index]);
  const at = line < 0 ? is.length : line;
  const output =
    'openapi.json does not describe the code any more: run `npm run openapi`, read the difference, commit it.\n' +
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

function report(name, { seconds }, extra = '') {
  process.stdout.write(`ok    ${name.padEnd(22)} ${seconds.padStart(6)} s  ${extra}`.trimEnd() + '\n');
}

/** Prints a failed step and ends the run. */
function stop(name, { output, seconds }, failures = 1) {
  counts.failed += failures;
  process.stdout.write(`FAIL  ${name.padEnd(22)} ${seconds.padStart(6)} s\n\n${output.trim()}\n\n`);
  notes.push(`stopped at: ${name}`);
  finish();
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

function browserEnv() {
  return chromium() ? { CHROMIUM_PATH: chromium() } : {};
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
 * A real Redis on a free port, in memory, set up the way production must be (`noeviction`). Answers its URL.
 * It ends with this process.
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
    child.on('close', () => stop('redis-server', { output: `Redis ended or did not start.\n${output}`, seconds: '' }));
    child.on('error', (error) => (output += error.message));
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
      if (!output.includes('Ready to accept connections')) return;
      clearTimeout(timer);
      resolve();
    });
  });
  return `redis://127.0.0.1:${port}`;
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
