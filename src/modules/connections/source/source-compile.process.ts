import { isBuiltin } from 'node:module';
import { text } from 'node:stream/consumers';
import { build as esbuild, type BuildFailure, type Message, type Plugin } from 'esbuild';
import { checkModule } from '../../../hosting/hosted-module.js';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';
import type { SourceDiagnostic } from '../core/connections.errors.js';

/** The input of the process, which runs in the sandbox. */
export interface SourceCompileRequest {
  name: string;
  contents: string;
}

/** Its output. */
export type SourceCompileAnswer = { code: string; isStateful: boolean } | { diagnostics: SourceDiagnostic[] };

/** Packages that every module may import; their own dependencies are bundled with them. */
const PACKAGE = /^(?:zod|@modelcontextprotocol\/sdk)(?:\/|$)/;

/** Files that these names may lead to. */
const PACKAGE_FILE = /\/node_modules\/(?:zod|@modelcontextprotocol\/sdk)\//;

/** Name of the module for esbuild. */
const ENTRY = 'module';

/** Faults of one answer. */
const DIAGNOSTICS_MAX = 20;

// The parent ends this process. A signal to the whole service would look like a fault of the module.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

async function compile({ name, contents }: SourceCompileRequest): Promise<SourceCompileAnswer> {
  const at = (message: string, location: Message['location']): SourceDiagnostic => {
    return { path: name, line: location?.line ?? 1, column: (location?.column ?? 0) + 1, message };
  };
  try {
    const { outputFiles } = await esbuild({
      // Not the tenant's name, which could be that of an allowed file.
      stdin: { contents, sourcefile: ENTRY, loader: name.endsWith('x') ? 'tsx' : 'ts' },
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
    const [{ text: code }] = outputFiles;
    const { form, stateful } = checkModule(code);
    return { code, isStateful: form !== 'fetch' && stateful === true };
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
    /** Files of packages: what was resolved here, from the module or from another such file. */
    const files = new Set<string>();
    build.onResolve({ filter: /.*/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === allowedImports) return undefined;
      if (isBuiltin(path)) return { path, external: true };
      const isOfPackage = files.has(importer);
      if (!isOfPackage && !PACKAGE.test(path)) return { errors: [{ text: refusal(path) }] };
      const from = isOfPackage ? resolveDir : import.meta.dirname;
      const found = await build.resolve(path, { importer, kind, resolveDir: from, pluginData: allowedImports });
      if (found.errors.length > 0) return { errors: found.errors };
      if (!isOfPackage && !PACKAGE_FILE.test(found.path)) return { errors: [{ text: refusal(path) }] };
      files.add(found.path);
      return { ...found, pluginData: undefined };
    });
  },
};

function refusal(path: string): string {
  const available = 'Node built-ins, zod and @modelcontextprotocol/sdk';
  return path.startsWith('.')
    ? `It imports "${path}", but a source is one file: bundle the import into it.`
    : `It imports "${path}", but only ${available} are available at run time: bundle the import into the file.`;
}

process.stdout.write(JSON.stringify(await compile(JSON.parse(await text(process.stdin)) as SourceCompileRequest)));
