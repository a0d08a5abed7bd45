import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** What of ours runs inside a program's workerd, as ES modules. */
export interface WorkerCode {
  prelude: string;
  wrapper: string;
  tail: string;
}

/** Tests run the sources; esbuild reads both. */
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

let made: Promise<WorkerCode> | undefined;

/** Bundled once in the life of this process, at the first start of a program. @throws what esbuild throws */
export function workerCode(): Promise<WorkerCode> {
  made ??= bundle().catch((error: unknown) => {
    made = undefined;
    throw error;
  });
  return made;
}

async function bundle(): Promise<WorkerCode> {
  const entry = (name: string) => fileURLToPath(new URL(`./bootstrap/${name}.${extension}`, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: { prelude: entry('prelude'), wrapper: entry('wrapper'), tail: entry('tail') },
    outdir: 'out',
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*', 'cloudflare:*'],
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    // What is built stands beside the sources in tests, where their settings would be read.
    tsconfigRaw: '{}',
    logLevel: 'silent',
  });
  const text = (name: string) => outputFiles.find(({ path }) => path.endsWith(`${name}.js`))?.text ?? '';
  return { prelude: text('prelude'), wrapper: text('wrapper'), tail: text('tail') };
}
