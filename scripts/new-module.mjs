/**
 * `npm run new:module stars` copies a module in `scripts/new-module` under another name: source, migration and
 * tests. It adds the module to `src/app.module.ts` and `docs/explanation/scope.md`, writes `openapi.summary.txt` again, and names the command of the new tests.
 *
 * `npm run new:module -- <plural> [<singular>] [--of namespace|server]`, names in lower case with hyphens; the singular is
 * guessed without one. The module stores notes of a namespace, or a mark that accounts put on a server.
 *
 * `npm run new:module -- --outside ../stars` writes a package of its own instead, named after its folder: notes of accounts. It has
 * the archive of `@slipway/module` next to its package.json.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, filesUnder, npm, prepare, root } from './lib.mjs';

const NAME = /^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$/;
const owners = ['namespace', 'server'];
const { of: owner, outside, names } = asked();
const [plural = '', singular = guessSingular(plural)] = names;
if (!owners.includes(owner)) fail(`--of takes ${owners.join(' or ')}, not "${owner}".`);
// Without the separator npm takes --of for its own --offline, and leaves the word that follows.
if (owners.includes(names[1])) fail(`Separate the options with --: npm run new:module -- ${plural} --of ${names[1]}`);
if (!NAME.test(plural) || !NAME.test(singular) || plural === singular) {
  fail('Name the module in the plural, in lower case: npm run new:module stars (or: npm run new:module people person)');
}
if (outside !== undefined) {
  await writePackage();
  process.exit(0);
}
if (existsSync(join(root, 'src/modules', plural))) fail(`src/modules/${plural} exists already.`);

const stamp = newestStamp();
const template = join('scripts/new-module', owner);
const written = filesUnder(template).map((file) => {
  const target = renamed(relative(join(root, template), file)).replace(/^migrations\//, `migrations/${stamp}-`);
  mkdirSync(dirname(join(root, target)), { recursive: true });
  writeFileSync(join(root, target), renamed(readFileSync(file, 'utf8')).replaceAll('1000000000000', stamp));
  return target;
});
addToApp();
addToScope();
prettier(...written, 'src/app.module.ts');
process.stdout.write(`${['src/app.module.ts', ...written].join('\n')}\n`);
prepare();
const { status } = npm(['run', '--silent', 'openapi'], { cwd: root, stdio: 'inherit' });
if (status !== 0) fail('openapi.summary.txt could not be written: fix the error above, then run `npm run openapi`.');
process.stdout.write(`openapi.summary.txt\nNext: npm test -- test/e2e/${plural}\n`);

function asked() {
  try {
    const options = { of: { type: 'string', default: 'namespace' }, outside: { type: 'string' } };
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    const { of, outside: folder } = values;
    return { of, outside: folder, names: folder === undefined ? positionals : [basename(folder), ...positionals] };
  } catch (error) {
    return fail(error.message);
  }
}

/** Writes a package outside the tree, with the versions of Slipway's own packages. */
async function writePackage() {
  const folder = resolve(process.env.INIT_CWD ?? '', outside);
  if (existsSync(folder)) fail(`${folder} exists already.`);
  prepare();
  const { MODULE_API } = await import(join(root, 'dist/src/platform/external-modules/load-external-modules.js'));
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const installed = { ...dependencies, ...devDependencies };
  const [source, stamp] = ['scripts/new-module/outside', String(Date.now())];
  const files = filesUnder(source).map((file) => {
    const target = join(folder, renamed(relative(join(root, source), file)).replace(/\.template$/, ''));
    const text = renamed(readFileSync(file, 'utf8'))
      .replaceAll('1000000000000', stamp)
      .replaceAll('0.0.0', MODULE_API)
      .replace(/"([^"]+)": "\*"/g, (_, name) => `"${name}": "${installed[name]}"`);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
    return target;
  });
  const archive = join(folder, `module-${MODULE_API}.tgz`);
  copyFileSync(join(root, 'dist', basename(archive)), archive);
  prettier('--config', join(root, '.prettierrc.json'), ...files.filter((file) => /\.(ts|mjs|json|md)$/.test(file)));
  process.stdout.write(
    `${[...files, archive].join('\n')}\nNext, there: npm install && SLIPWAY_HOME=${root} npm test\n`,
  );
}

function guessSingular(name) {
  return name.replace(/ies$/, 'y').replace(/(?<=[sxz]|ch|sh)es$|s$/, '');
}

/** The name of the template has two words, so that every spelling of it is different. */
function renamed(text) {
  const [many, one] = [plural.split('-'), singular.split('-')];
  const pascal = (words) => words.map((word) => word[0].toUpperCase() + word.slice(1)).join('');
  const camel = (words) => pascal(words).replace(/^./, (first) => first.toLowerCase());
  const sentence = (words) => words.join(' ').replace(/^./, (first) => first.toUpperCase());
  const names = {
    'sample-note': (words) => words.join('-'),
    sample_note: (words) => words.join('_'),
    'sample note': (words) => words.join(' '),
    'Sample note': sentence,
    SampleNote: pascal,
    sampleNote: camel,
  };
  return Object.entries(names).reduce(
    (result, [name, form]) => result.replaceAll(`${name}s`, form(many)).replaceAll(name, form(one)),
    text,
  );
}

/** A timestamp after that of every migration, so that the new one runs last. */
function newestStamp() {
  const stamps = filesUnder('migrations').map((file) => Number(/(\d{13})-/.exec(file)?.[1] ?? 0));
  return String(Math.max(Date.now(), ...stamps.map((existing) => existing + 1)));
}

/** Adds the import and the line to the list of modules. */
function addToApp() {
  const file = join(root, 'src/app.module.ts');
  const source = readFileSync(file, 'utf8');
  const name = renamed('SampleNotesModule');
  const imports = source.lastIndexOf('\nimport ', source.indexOf("from './platform/"));
  const list = /\nconst modules = \[[^\]]*/.exec(source);
  if (imports < 0 || !list) fail('src/app.module.ts has another form than this script knows: add the module by hand.');
  const end = list.index + list[0].length;
  writeFileSync(
    file,
    `${source.slice(0, imports)}\nimport { ${name} } from './modules/${plural}/${plural}.module.js';` +
      `${source.slice(imports, end)}  ${name},\n${source.slice(end)}`,
  );
}

/** Adds a line to the page that says what each module promises. */
function addToScope() {
  const file = join(root, 'docs/explanation/scope.md');
  const page = readFileSync(file, 'utf8');
  const promises = page.match(/^- .*\[`[\w-]+`\]$/gm);
  const last = promises?.at(-1);
  if (!last) fail('docs/explanation/scope.md has another form than this script knows: add the module by hand.');
  writeFileSync(
    file,
    page.replace(last, () => `${last}\n- Write here what ${plural} promise. [\`${plural}\`]`),
  );
}

function prettier(...files) {
  spawnSync(process.execPath, [join(root, 'node_modules/prettier/bin/prettier.cjs'), '--write', ...files], {
    cwd: root,
  });
}
