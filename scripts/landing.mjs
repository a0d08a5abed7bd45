/**
 * Selects the long tests that a change can break: compares the commit with that of the last full run (`test/GREEN`).
 *
 * A long test file has a subject, a folder of `src` (its own folder's name, or a row of {@link subjects}). It is run if the
 * change touches the file, what it imports, its subject, or what the subject imports. Imports of the files that put the whole
 * application together are not followed: through them everything would reach everything.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesUnder, hasLongTests, readText, repoPath, root } from './lib.mjs';

const greenFile = join(root, 'test/GREEN');
const ageDaysMax = 3;
const commitsMax = 100;

/** Files whose change can break anything: packages, and what runs the tests. */
const global =
  /^(package(-lock)?\.json|tsconfig.*|nest-cli\.json|jest\.config\.mjs|scripts\/(lib|test|landing)\.mjs|test\/support\/(jest\/|app\.ts))/;

/** Files that put the application together. Their imports are not followed. */
const roots = /^src\/(app\.|main|supervisor|infrastructure|extension)|^src\/cli\/|\.module\.ts$/;

/** By the path of a long test file, the folders that it is about, where its own folder's name does not say it. */
const subjects = [
  [/^test\/long\/(backup|doctor|hosted-cli|people-program)/, ['src/cli', 'src/platform/checks']],
  [/^test\/long\/embedded/, ['src/platform/embedded']],
  [/^test\/long\/dev/, ['scripts/dev.mjs', 'src/platform/embedded']],
  [/^test\/long\/pgbouncer/, ['src/platform/database', 'migrations']],
  [/^test\/long\/upgrade/, ['src/platform/database', 'migrations', 'test/upgrade']],
  [/^test\/long\/log-batches/, ['src/modules/logs', 'src/extensions/otlp']],
  [/^test\/long\/mock-fairness/, ['src/modules/connections/mock', 'src/platform/threads']],
  [/^test\/long\/nginx/, ['docker', 'src/platform/http']],
  [/^test\/long\/oauth-processes/, ['src/modules/oauth', 'src/mcp/oauth']],
  [/^test\/long\/release-kills/, ['src/modules/releases']],
  [
    /^test\/long\/(rolling|session-restart|workers|chaos)/,
    ['src/platform/processes', 'src/mcp/server', 'src/supervisor.ts'],
  ],
  [/^test\/long\/fuzz/, ['src/platform/http', 'src/platform/errors', 'src/modules']],
  [/^test\/soak\//, ['src/hosting']],
  [/^test\/extension\//, ['src/platform/external-modules', 'src/extension.ts', 'scripts/new-module', 'examples']],
  [
    /^test\/browser\/long\/sign-in-oidc/,
    ['src/extensions/sign-in-oidc', 'src/modules/people', 'src/modules/authorization-server', 'src/platform/pages'],
  ],
  [
    /^test\/browser\//,
    [
      'src/modules/console',
      'src/extensions/console-pages',
      'src/extensions/recordings',
      'src/extensions/author-pages',
      'src/extensions/people-pages',
      'src/extensions/calls-pages',
      'src/extensions/tool-forms',
      'src/platform/pages',
      'src/modules/connections/setup',
      'src/app.docs.ts',
    ],
  ],
  [/^test\/contract\//, ['src/modules', 'src/mcp']],
];

const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? '';

/** Records a full run in which nothing failed. */
export function writeGreen({ passed, skipped, seconds }) {
  if (git('status', '--porcelain') !== '') return;
  const lines = [`commit ${git('rev-parse', 'HEAD')}`, `date ${new Date().toISOString().slice(0, 10)}`];
  writeFileSync(greenFile, [...lines, `passed ${passed}`, `skipped ${skipped}`, `seconds ${seconds}`, ''].join('\n'));
}

/**
 * Returns what of the long tests is to run: `reason` says why it is everything, or else `files` are the test files, `pages` the
 * changed pages of the documentation, and `changed` the changed paths.
 */
export function longTestsOfChange() {
  const green = Object.fromEntries((readText(greenFile) ?? '').split('\n').map((line) => line.split(' ')));
  if (!green.commit) return { reason: 'no full run is recorded' };
  if (git('cat-file', '-t', green.commit) !== 'commit') return { reason: 'the commit of the last full run is unknown' };
  const ageDays = (Date.now() - Date.parse(green.date)) / 86_400_000;
  if (ageDays > ageDaysMax + 1) return { reason: `the last full run was on ${green.date}` };
  const commits = Number(git('rev-list', '--count', `${green.commit}..HEAD`));
  if (commits > commitsMax) return { reason: `${commits} commits since the last full run` };
  const changed = git('diff', '--name-only', green.commit).split('\n').filter(Boolean);
  const cause = changed.find((path) => global.test(path));
  if (cause) return { reason: `${cause} changed since the last full run` };
  const files = filesUnder('test').filter((file) => file.endsWith('.e2e-spec.ts') && hasLongTests(file));
  const closure = importClosures();
  const isReached = (file) =>
    changed.some((path) => closure([repoPath(file)]).has(path)) ||
    subjectsOf(repoPath(file)).some((folder) =>
      changed.some((path) => path.startsWith(folder) || closure(sourcesIn(folder)).has(path)),
    );
  const pages = changed.filter((path) => /^(README|docs\/.*)\.?md$|^docs\/.*\.md$|^README\.md$/.test(path));
  return {
    files: files.filter((file) => !/\/test\/docs\//.test(file) && isReached(file)),
    all: files,
    pages,
    changed,
    since: green,
  };
}

function subjectsOf(path) {
  const [, folders] = subjects.find(([pattern]) => pattern.test(path)) ?? [];
  if (folders) return folders;
  const [, name] = /^test\/e2e\/([\w-]+)\//.exec(path) ?? [];
  const own = [`src/modules/${name}`, `src/extensions/${name}`, `src/${name}`].filter((folder) =>
    existsSync(join(root, folder)),
  );
  return own.length > 0 ? own : ['src'];
}

function sourcesIn(folder) {
  return sources().filter((path) => path.startsWith(folder) && !path.endsWith('.spec.ts'));
}

let allSources;
function sources() {
  allSources ??= [...filesUnder('src'), ...filesUnder('test')].map(repoPath).filter((path) => /\.(ts|mjs)$/.test(path));
  return allSources;
}

/** Returns a function that gives all files which some files import, directly or not. */
function importClosures() {
  const imports = new Map();
  for (const path of sources()) {
    const text = roots.test(path) ? '' : readFileSync(join(root, path), 'utf8');
    const found = [...text.matchAll(/(?:from|import|import\()\s*'(\.{1,2}\/[^']+)\.(m?js)'/g)];
    imports.set(
      path,
      found.map(([, specifier, type]) => join(dirname(path), `${specifier}${type === 'mjs' ? '.mjs' : '.ts'}`)),
    );
  }
  const known = new Map();
  return (paths) => {
    const key = paths.join();
    if (!known.has(key)) {
      const reached = new Set(paths);
      for (const path of reached) for (const next of imports.get(path) ?? []) reached.add(next);
      known.set(key, reached);
    }
    return known.get(key);
  };
}
