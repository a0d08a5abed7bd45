import { isBuiltin } from 'node:module';
import { text } from 'node:stream/consumers';
import { build as esbuild, type BuildFailure, type Message, type Plugin } from 'esbuild';
import { checkModule } from '../../../hosting/hosted-module.js';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';
import type { SourceDiagnostic } from '../core/connections.errors.js';

export interface SourceCompileRequest {
  name: string;
  contents: string;
}

export type SourceCompileAnswer = { code: string; isStateful: boolean } | { diagnostics: SourceDiagnostic[] };

/** Packages that every module can import, bundled with their own dependencies. */
const PACKAGE = /^(?:zod|@modelcontextprotocol\/sdk)(?:\/|$)/;

const PACKAGE_FILE = /\/node_modules\/(?:zod|@modelcontextprotocol\/sdk)\//;

const ENTRY = 'module';

const DIAGNOSTICS_MAX = 20;

// Only the parent stops this process: a signal to the whole service would look like an error of the module.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

async function compile({ name, contents }: SourceCompileRequest): Promise<SourceCompileAnswer> {
  const toDiagnostic = (message: string, location: Message['location']): SourceDiagnostic => {
    return { path: name, line: location?.line ?? 1, column: (location?.column ?? 0) + 1, message };
  };
  try {
    const code = await bundle({ name, contents }, false);
    // Bundling with the packages would take four times the CPU time.
    const { form, stateful } = checkModule(await bundle({ name, contents }, true), PACKAGE);
    return { code, isStateful: form !== 'fetch' && stateful === true };
  } catch (error) {
    if (error instanceof InvalidModuleError) return { diagnostics: [toDiagnostic(error.message, null)] };
    const { errors } = error as BuildFailure;
    if (!Array.isArray(errors)) throw error;
    return { diagnostics: errors.slice(0, DIAGNOSTICS_MAX).map(({ text, location }) => toDiagnostic(text, location)) };
  }
}

/** @throws BuildFailure */
async function bundle(request: SourceCompileRequest, isWithoutPackages: boolean): Promise<string> {
  const { outputFiles } = await esbuild({
    entryPoints: [ENTRY],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    define: { 'process.env.NODE_ENV': '"production"' },
    // No file of this machine may change the result.
    tsconfigRaw: {},
    absWorkingDir: '/',
    logLevel: 'silent',
    plugins: [moduleOnly(request, isWithoutPackages)],
  });
  return outputFiles[0].text;
}

/**
 * Returns a plugin that allows only the module, and imports that exist when it runs. esbuild resolves the imports of packages itself: a call
 * to this plugin for each of 240 files takes as long as bundling them.
 */
function moduleOnly({ name, contents }: SourceCompileRequest, isWithoutPackages: boolean): Plugin {
  return {
    name: 'module-only',
    setup(build) {
      build.onResolve({ filter: /.*/, namespace: ENTRY }, async ({ path, kind, pluginData }) => {
        if (pluginData === moduleOnly) return undefined;
        if (isBuiltin(path)) return { path, external: true };
        if (!PACKAGE.test(path)) return { errors: [{ text: refusal(path) }] };
        if (isWithoutPackages) return { path, external: true };
        const resolveDir = import.meta.dirname;
        const resolution = await build.resolve(path, { kind, resolveDir, namespace: ENTRY, pluginData: moduleOnly });
        if (resolution.errors.length > 0) return { errors: resolution.errors };
        if (!PACKAGE_FILE.test(resolution.path)) return { errors: [{ text: refusal(path) }] };
        return { ...resolution, pluginData: undefined };
      });
      build.onResolve({ filter: new RegExp(`^${ENTRY}$`) }, ({ path, kind }) => {
        return kind === 'entry-point' ? { path, namespace: ENTRY } : undefined;
      });
      build.onLoad({ filter: /.*/, namespace: ENTRY }, () => {
        return { contents, loader: name.endsWith('x') ? 'tsx' : 'ts' };
      });
    },
  };
}

function refusal(path: string): string {
  const available = 'Node built-ins, zod and @modelcontextprotocol/sdk';
  return path.startsWith('.')
    ? `It imports "${path}", but a source is one file: bundle the import into it.`
    : `It imports "${path}", but only ${available} are available at run time: bundle the import into the file.`;
}

process.stdout.write(JSON.stringify(await compile(JSON.parse(await text(process.stdin)) as SourceCompileRequest)));
