/**
 * Preconditions of the compiled application, for every script: a supported Node, installed packages, a current build.
 *
 * Imports nothing outside Node, because on a fresh clone nothing else is there. A start that finds everything in place
 * must stay cheap: the three checks together take about 10 ms.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** The folder of package.json; the scripts work from any current directory. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const modules = join(root, 'node_modules');
const dist = join(root, 'dist');
const lockFile = join(root, 'package-lock.json');

/** The oldest Node that can `require` the ESM packages of the stack. Same as `engines` in package.json. */
const nodeMin = [20, 19];

/** Prints a message for the user and exits with code 1. */
export function fail(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

/** Exits with a message when this Node is too old. */
export function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < nodeMin[0] || (major === nodeMin[0] && minor < nodeMin[1])) {
    fail(`Slipway needs Node ${nodeMin.join('.')} or newer, and this is ${process.versions.node}.`);
  }
}

/** True if the packages are those of the lock file, as the last {@link ensureInstalled} found. */
export function isInstalled() {
  return readText(join(modules, '.slipway-lock')) === installHash();
}

/**
 * Runs `npm ci` unless node_modules holds what package-lock.json asks for. Which lock file was last found to match is
 * kept in node_modules/.slipway-lock, so the comparison is done once per install.
 */
export function ensureInstalled() {
  if (isInstalled()) return;
  if (!lockMatchesInstalled()) {
    process.stdout.write('Installing packages…\n');
    // NODE_ENV=production must not drop the compiler.
    const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
    const result = npm(args, { cwd: root, encoding: 'utf8' });
    if (result.error || result.status !== 0) {
      fail(`Installing packages failed: ${npmReason(result)} (Run "npm ci" to see all of its output.)`);
    }
  }
  try {
    writeFileSync(join(modules, '.slipway-lock'), installHash());
  } catch {
    // node_modules is read-only: compare again at the next start.
  }
}

/**
 * Runs `nest build` and writes the description of the API, unless dist was built from exactly the sources at hand. Compares contents, not times, so a branch
 * switched forth and back does not rebuild; dist itself is compared by name, size and time, so a build made by another
 * tool (`nest build`) is not mistaken for this one.
 */
export function ensureBuilt() {
  const stamp = join(dist, '.stamp');
  if (readText(stamp) === `${sourceHash()} ${distHash()}`) return;
  const release = buildLock();
  try {
    // Another process may have built while this one waited for the lock.
    const sources = sourceHash();
    if (readText(stamp) === `${sources} ${distHash()}`) return;
    process.stdout.write('Building… This may take a minute, and is done again only after the sources have changed.\n');
    // An incremental build keeps decorator metadata of files whose imported types changed, so start from nothing.
    rmSync(join(dist, '.tsbuildinfo'), { force: true });
    const nest = join(modules, '@nestjs', 'cli', 'bin', 'nest.js');
    const result = spawnSync(process.execPath, [nest, 'build'], { cwd: root, encoding: 'utf8' });
    if (result.status !== 0) {
      process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
      fail('Building failed; the compiler says why above.');
    }
    removeOrphans();
    describeApi();
    packModule();
    writeFileSync(stamp, `${sources} ${distHash()}`);
  } finally {
    release();
  }
}

/** Runs npm to its end: the one that started us, else the one on the PATH. @returns what `spawnSync` returns */
export function npm(args, options) {
  const started = process.env.npm_execpath;
  if (started && started.endsWith('.js')) return spawnSync(process.execPath, [started, ...args], options);
  return spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
}

/** All three, in the order a fresh clone needs them. */
export function prepare() {
  checkNode();
  ensureInstalled();
  try {
    ensureBuilt();
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].includes(error.code)) throw error;
    fail(`The build cannot be written here (${error.message}).`);
  }
}

/** The file's text, or undefined when there is none. */
export function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Every file below a folder of the repository, as absolute paths in a stable order; empty when the folder is missing. */
export function filesUnder(folder) {
  const files = [];
  const walk = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = join(path, entry.name);
      if (entry.isDirectory()) walk(child);
      else files.push(child);
    }
  };
  if (existsSync(join(root, folder))) walk(join(root, folder));
  return files.sort();
}

/** True for a test file of which all tests belong to `npm run test:long` alone. */
export function isLong(file) {
  return /\/(docs|extension|long|soak)\//.test(repoPath(file));
}

/** True for a test file of which at least some tests run only with the long tests. */
export function hasLongTests(file) {
  return isLong(file) || /^import \{[^}]*\blong(It|Verifies)\b/m.test(readFileSync(file, 'utf8'));
}

/** Hashes the lock file and npm's own record of installed packages: a prune or a partial install changes the latter. */
function installHash() {
  const hash = createHash('sha256');
  hash.update(readText(lockFile) ?? '');
  hash.update(readText(join(modules, '.package-lock.json')) ?? '');
  return hash.digest('hex');
}

/** True if npm's record has every package of the lock file, except optional ones of other platforms. */
function lockMatchesInstalled() {
  try {
    const locked = JSON.parse(readFileSync(lockFile, 'utf8')).packages;
    const installed = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')).packages;
    return Object.entries(locked).every(([path, entry]) => {
      if (path === '') return true;
      const present = installed[path];
      if (!present) return entry.optional === true;
      return present.version === entry.version && present.integrity === entry.integrity;
    });
  } catch {
    return false;
  }
}

/** The line of npm's output that says what went wrong. */
function npmReason(result) {
  if (result.error?.code === 'ENOENT') return 'npm was not found on the PATH.';
  const lines = `${result.stderr ?? ''}\n${result.stdout ?? ''}`
    .split('\n')
    .map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim())
    .filter((line) => line !== '' && !/^(code|errno|syscall|A complete log)\b/.test(line));
  return lines[0] ? `${lines[0].replace(/\.?$/, '.')}` : `npm ended with code ${result.status}.`;
}

/** Everything the compiler reads. Specs are left out: the build leaves them out too. */
function sourceHash() {
  const hash = createHash('sha256');
  const inputs = [...filesUnder('src'), ...filesUnder('migrations')].filter((file) => !file.endsWith('.spec.ts'));
  const config = readdirSync(root).filter((name) =>
    /^tsconfig.*\.json$|^nest-cli\.json$|^package-lock\.json$/.test(name),
  );
  inputs.push(
    ...filesUnder('packages'),
    ...['swagger-plugin/plugin.js', 'pack-module.mjs'].map((file) => join(root, 'scripts', file)),
  );
  for (const file of [...inputs, ...config.sort().map((name) => join(root, name))]) {
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

function distHash() {
  const hash = createHash('sha256');
  for (const file of [...filesUnder('dist/src'), ...filesUnder('dist/migrations')]) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${relative(dist, file)} ${size} ${mtimeMs}\0`);
  }
  return hash.digest('hex');
}

/** Writes the documents of the API as they are served: making them at the first request would block the service. */
function describeApi() {
  const cli = join(dist, 'src', 'cli', 'openapi.js');
  const args = ['--conditions=api-docs', cli, join(dist, 'openapi')];
  const result = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  fail('The description of the API could not be written.');
}

/** Writes the package `@slipway/module`, which the service serves. */
function packModule() {
  const script = join(root, 'scripts/pack-module.mjs');
  const result = spawnSync(process.execPath, [script], { cwd: root, encoding: 'utf8' });
  if (result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`);
  fail('The package @slipway/module could not be written.');
}

/** Deletes compiled files without a source: a deleted migration would still run. */
function removeOrphans() {
  for (const file of [...filesUnder('dist/src'), ...filesUnder('dist/migrations')]) {
    if (existsSync(join(root, relative(dist, file)))) continue; // copied as it is
    const source = join(root, relative(dist, file).replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts'));
    if (/\.(js|d\.ts)(\.map)?$/.test(file) && (!existsSync(source) || source.endsWith('.spec.ts'))) rmSync(file);
  }
}

/**
 * Keeps two scripts in the same directory from writing dist concurrently, since the second would import half-written files.
 * The lock holds the owner's process id; the lock of a process that has exited is taken over.
 */
function buildLock() {
  const path = join(modules, '.cache', 'slipway-build.lock');
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    try {
      const handle = openSync(path, 'wx');
      writeFileSync(handle, String(process.pid));
      closeSync(handle);
      // fail() exits without unwinding, so the lock is also released there.
      const release = () => rmSync(path, { force: true });
      process.once('exit', release);
      return () => {
        process.removeListener('exit', release);
        release();
      };
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const owner = Number(readText(path));
      if (owner && !isAlive(owner)) rmSync(path, { force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** `src/a/b.ts` on every platform. */
export function repoPath(file) {
  return relative(root, file).split(sep).join('/');
}
