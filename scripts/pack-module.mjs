/**
 * Writes the package `@slipway/module` to `dist/module` and as `dist/module-{version}.tgz`, from `packages/module` and the
 * declarations of the build.
 */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { fail, npm, root } from './lib.mjs';

const target = join(root, 'dist/module');
const loader = join(root, 'dist/src/platform/external-modules/load-external-modules.js');
const { MODULE_API: version } = await import(loader);

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const manifest = JSON.parse(readFileSync(join(root, 'packages/module/package.json'), 'utf8'));
writeFileSync(join(target, 'package.json'), `${JSON.stringify({ ...manifest, version }, null, 2)}\n`);
cpSync(join(root, 'packages/module/README.md'), join(target, 'README.md'));
await bundleTypes();
compileTesting();
pack();

/** Bundles the declarations of the entry point. Only packages that the manifest names remain imports. */
async function bundleTypes() {
  const isExternal = (id) => !/^[./]/.test(id);
  const bundle = await rollup({
    input: join(root, 'dist/src/extension.d.ts'),
    external: isExternal,
    plugins: [{ name: 'public-part', transform: publicPart }, dts()],
    onwarn: () => undefined,
  });
  const { output } = await bundle.generate({ format: 'es' });
  const { code, imports } = output[0];
  const unknown = imports.filter((name) => !(name in manifest.peerDependencies) && !/^(node:|net$)/.test(name));
  if (unknown.length > 0)
    fail(`The entry point needs types of ${unknown.join(', ')}: see packages/module/package.json.`);
  writeFileSync(join(target, 'index.d.ts'), `/// <reference types="node" />\n${code}`);
}

/**
 * Removes what only Slipway uses and what would pull in the types of half the service: the parameters of constructors that Nest
 * calls, and additions to the types of other files. Modules construct errors, markup and pages themselves, and have no
 * `#api-docs`.
 */
function publicPart(code, file) {
  const withoutAdditions = code
    .replace(/^declare module '\.[^]*?^}$/gm, '')
    .replaceAll("'#api-docs'", "'@nestjs/swagger'");
  if (/error|html|frame/.test(basename(file))) return withoutAdditions;
  return withoutAdditions.replace(/^ {4}constructor\([^;]*\);$/gm, '    private constructor();');
}

function compileTesting() {
  const source = readFileSync(join(root, 'packages/module/testing.ts'), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  writeFileSync(join(target, 'testing.js'), ts.transpileModule(source, { compilerOptions }).outputText);
  const { outputText, diagnostics = [] } = ts.transpileDeclaration(source, { compilerOptions });
  if (diagnostics.length > 0) fail(ts.flattenDiagnosticMessageText(diagnostics[0].messageText, '\n'));
  writeFileSync(join(target, 'testing.d.ts'), outputText);
}

function pack() {
  const args = ['pack', target, '--pack-destination', join(root, 'dist'), '--silent', '--ignore-scripts'];
  const { status, stderr, error } = npm(args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) fail(error?.message ?? stderr);
  renameSync(join(root, `dist/slipway-module-${version}.tgz`), join(root, `dist/module-${version}.tgz`));
}
