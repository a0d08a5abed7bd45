import { readFile, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build as esbuild, type BuildFailure, type Message, type OnResolveResult, type Plugin } from 'esbuild';
import { checkModule, InvalidModuleError } from '../../../hosting/hosted-module.js';
import type { SourceDiagnostic } from '../core/connections.errors.js';

/** The answer of the process, which compiles the file of its first argument into that of the second; the third is the name. */
export type SourceCompileAnswer = { isStateful: boolean } | { diagnostics: SourceDiagnostic[] };

/** Packages that every module may import; their own dependencies are bundled with them. */
const PACKAGE = /^(?:zod|@modelcontextprotocol\/sdk)(?:\/|$)/;

/** Faults of one answer. */
const DIAGNOSTICS_MAX = 20;

// The parent ends this process. A signal to the whole service would look like a fault of the module.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

async function compile(contents: string): Promise<SourceCompileAnswer> {
  try {
    const { outputFiles } = await esbuild({
      stdin: { contents, sourcefile: name, loader: name.endsWith('x') ? 'tsx' : 'ts' },
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
      plugins: [allowedImports],
    });
    const [{ text }] = outputFiles;
    await writeFile(to, text, { mode: 0o600 });
    const { form, stateful } = checkModule(text);
    return { isStateful: form !== 'fetch' && stateful === true };
  } catch (error) {
    if (error instanceof InvalidModuleError) return { diagnostics: [at(error.message, null)] };
    const { errors } = error as BuildFailure;
    if (!Array.isArray(errors)) throw error;
    return { diagnostics: errors.slice(0, DIAGNOSTICS_MAX).map(({ text, location }) => at(text, location)) };
  }
}

/** Allows imports that exist when the module runs, and no other file of this machine. */
const allowedImports: Plugin = {
  name: 'allowed-imports',
  setup(build) {
    build.onResolve(
      { filter: /.*/ },
      async ({ path, importer, kind, pluginData }): Promise<OnResolveResult | undefined> => {
        if (pluginData === allowedImports || importer.includes('/node_modules/')) return undefined;
        if (isBuiltin(path)) return { path, external: true };
        if (PACKAGE.test(path)) {
          return build.resolve(path, {
            kind,
            pluginData: allowedImports,
            resolveDir: fileURLToPath(new URL('.', import.meta.url)),
          });
        }
        return { errors: [{ text: refusal(path) }] };
      },
    );
  },
};

function refusal(path: string): string {
  const available = 'Node built-ins, zod and @modelcontextprotocol/sdk';
  return path.startsWith('.')
    ? `It imports "${path}", but a source is one file: bundle the import into it.`
    : `It imports "${path}", but only ${available} are available at run time: bundle the import into the file.`;
}

function at(message: string, location: Message['location']): SourceDiagnostic {
  return { path: name, line: location?.line ?? 1, column: (location?.column ?? 0) + 1, message };
}

const [, , from, to, name] = process.argv;
const answer = await compile(await readFile(from, 'utf8'));
process.send?.(answer, () => process.disconnect());
