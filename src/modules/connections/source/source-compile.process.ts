import { readFile, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build as esbuild, type BuildFailure, type Message, type OnResolveResult, type Plugin } from 'esbuild';
import { checkModule, InvalidModuleError } from '../../../hosting/hosted-module.js';
import type { SourceDiagnostic } from '../core/connections.errors.js';

/** What the process answers: it compiles the file named first into the one named second; the third is what it is called. */
export type SourceCompileAnswer = { isStateful: boolean } | { diagnostics: SourceDiagnostic[] };

/** Packages that are there for every module; what they use themselves comes with them. */
const PACKAGE = /^(?:zod|@modelcontextprotocol\/sdk)(?:\/|$)/;

/** As many faults as a person reads. */
const DIAGNOSTICS_MAX = 20;

// Who started it ends it. A stop of the service reaches both, and would look like a fault of the module.
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
      // No file of this machine has a say: neither its settings nor what lies beside the module.
      tsconfigRaw: {},
      absWorkingDir: '/',
      logLevel: 'silent',
      plugins: [onlyGiven],
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

/** Lets the module import what is there when it runs, and nothing else of this machine. */
const onlyGiven: Plugin = {
  name: 'only-given',
  setup(build) {
    build.onResolve(
      { filter: /.*/ },
      async ({ path, importer, kind, pluginData }): Promise<OnResolveResult | undefined> => {
        if (pluginData === onlyGiven || importer.includes('/node_modules/')) return undefined;
        if (isBuiltin(path)) return { path, external: true };
        if (PACKAGE.test(path)) {
          return build.resolve(path, {
            kind,
            pluginData: onlyGiven,
            resolveDir: fileURLToPath(new URL('.', import.meta.url)),
          });
        }
        return { errors: [{ text: refusal(path) }] };
      },
    );
  },
};

function refusal(path: string): string {
  const given = 'Node built-ins, zod and @modelcontextprotocol/sdk';
  return path.startsWith('.')
    ? `It imports "${path}", but a source is one file: bundle what it imports into it.`
    : `It imports "${path}", and only ${given} are there when it runs: bundle it into the file.`;
}

function at(message: string, location: Message['location']): SourceDiagnostic {
  return { path: name, line: location?.line ?? 1, column: (location?.column ?? 0) + 1, message };
}

const [, , from, to, name] = process.argv;
const answer = await compile(await readFile(from, 'utf8'));
process.send?.(answer, () => process.disconnect());
