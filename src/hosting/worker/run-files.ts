import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Program } from '../hosting.types.js';
import type { EngineContext } from '../engine.js';
import { FILES, MAIN, workerdConfig } from './workerd-config.js';
import { fileURLToPath } from 'node:url';

/** Files of a run folder are readable by their owner only. */
const PRIVATE = { mode: 0o600 };

const ENTRIES = ['prelude', 'wrapper', 'tail'] as const;

type WorkerCode = Record<(typeof ENTRIES)[number], string>;

/** Tests use the sources; esbuild reads both. */
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

let loadedCode: Promise<WorkerCode> | undefined;

export async function makeSessionsDir(stateDir: string): Promise<string> {
  const folder = path.join(stateDir, 'sessions');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** @param state path of the sessions; null without them */
export async function writeRunFiles(
  program: Program,
  { runDir, limits }: Pick<EngineContext, 'runDir' | 'limits'>,
  state: string | null,
): Promise<void> {
  // Bundled once per process, at the first start of a program.
  loadedCode ??= bundle().catch((error: unknown) => {
    loadedCode = undefined;
    throw error;
  });
  const code = await loadedCode;
  const secrets = Object.entries(program.secrets);
  const write = (name: string, text: string) => writeFile(path.join(runDir, name), text, PRIVATE);
  await Promise.all([
    write(FILES.main, MAIN),
    ...ENTRIES.map((name) => write(FILES[name], code[name])),
    write(FILES.schema, JSON.stringify(program.configSchema)),
    copyFile(program.file, path.join(runDir, FILES.module)),
    ...secrets.map(([, value], index) => write(FILES.secret(index), value)),
    write(
      FILES.config,
      workerdConfig({
        secretNames: secrets.map(([name]) => name),
        sessions: state === null ? null : { uniqueKey: `${program.ref.ownerId}-McpSession`, stateDir: state },
        memoryMb: limits.memoryMb,
      }),
    ),
  ]);
}

export async function removeRunFiles(program: Program, runDir: string): Promise<void> {
  const { secret, ...fixed } = FILES;
  const names = [...Object.values(fixed), ...Object.keys(program.secrets).map((_, index) => secret(index))];
  await Promise.all(names.map((name) => rm(path.join(runDir, name), { force: true })));
}

async function bundle(): Promise<WorkerCode> {
  const entry = (name: string) => fileURLToPath(new URL(`./bootstrap/${name}.${extension}`, import.meta.url));
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: ENTRIES.map(entry),
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
    // Prevents esbuild from reading the sources' tsconfig in tests.
    tsconfigRaw: '{}',
    logLevel: 'silent',
  });
  const text = (name: string) => outputFiles.find(({ path }) => path.endsWith(`${name}.js`))?.text ?? '';
  return Object.fromEntries(ENTRIES.map((name) => [name, text(name)])) as WorkerCode;
}
