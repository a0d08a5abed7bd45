import { copyFile, mkdir, rm, writeFile, mkdtemp } from 'node:fs/promises';
import path from 'node:path';
import type { Program } from '../hosting.types.js';
import type { EngineContext } from '../engine.js';
import { FILES, MAIN, workerdConfig } from './workerd-config.js';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { tmpdir } from 'node:os';

/** Only its owner reads what lies in a run folder. */
const PRIVATE = { mode: 0o600 };

/** Bytes of the path of a unix socket, less the closing zero (Linux 108, macOS 104). */
const PATH_BYTES_MAX = process.platform === 'darwin' ? 103 : 107;

/** The longest name of a socket, and its slash. */
const NAME_BYTES = 4;

/** Where the sockets of one program lie. */
export interface SocketFolder {
  path: string;
  /** The folder as the program writes it, from its run folder. */
  fromRunDir: string;
  /** Removes it when it is not the run folder itself. Never rejects. */
  remove(): Promise<void>;
}

/** What of ours runs inside a program's workerd, as ES modules. */
interface WorkerCode {
  prelude: string;
  wrapper: string;
  tail: string;
}

/** Tests run the sources; esbuild reads both. */
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

let made: Promise<WorkerCode> | undefined;

/** Makes the folder of sessions within an owner's state, and returns it. */
export async function makeSessionsDir(stateDir: string): Promise<string> {
  const folder = path.join(stateDir, 'sessions');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/**
 * Writes all that workerd reads at start into the run folder.
 *
 * @param at where workerd finds the sockets, from its run folder, and the state; null without sessions
 */
export async function writeRunFiles(
  program: Program,
  { runDir, limits }: Pick<EngineContext, 'runDir' | 'limits'>,
  at: { sockets: string; state: string | null },
): Promise<void> {
  const code = await workerCode();
  const secrets = Object.entries(program.secrets);
  const write = (name: string, text: string) => writeFile(path.join(runDir, name), text, PRIVATE);
  await Promise.all([
    write(FILES.main, MAIN),
    write(FILES.prelude, code.prelude),
    write(FILES.wrapper, code.wrapper),
    write(FILES.tail, code.tail),
    write(FILES.schema, JSON.stringify(program.configSchema)),
    copyFile(program.file, path.join(runDir, FILES.module)),
    ...secrets.map(([, value], index) => write(FILES.secret(index), value)),
    write(
      FILES.config,
      workerdConfig({
        secretNames: secrets.map(([name]) => name),
        sessions: at.state === null ? null : { uniqueKey: `${program.ref.ownerId}-McpSession`, stateDir: at.state },
        memoryMb: limits.memoryMb,
        socketsAt: at.sockets,
      }),
    ),
  ]);
}

/** Removes what workerd has read: the secrets, the code and the configuration. */
export async function removeRunFiles(program: Program, runDir: string): Promise<void> {
  const { secret, ...others } = FILES;
  const names = [...Object.values(others), ...Object.keys(program.secrets).map((_, index) => secret(index))];
  await Promise.all(names.map((name) => rm(path.join(runDir, name), { force: true })));
}

/** Bundled once in the life of this process, at the first start of a program. @throws what esbuild throws */
function workerCode(): Promise<WorkerCode> {
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

/**
 * The run folder, when its path leaves room for the name of a socket. A longer one, such as under a deep data folder,
 * cannot hold sockets: then they lie in a short folder of their own in the system's place for temporary files.
 */
export async function socketFolder(runDir: string): Promise<SocketFolder> {
  if (Buffer.byteLength(runDir) + NAME_BYTES <= PATH_BYTES_MAX) {
    return { path: runDir, fromRunDir: '', remove: () => Promise.resolve() };
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'sw-'));
  return {
    path: folder,
    fromRunDir: `${folder}/`,
    remove: () => rm(folder, { recursive: true, force: true }).catch(() => undefined),
  };
}
