/**
 * Compiles the TypeScript modules of connections with esbuild, in a process with all isolation that this host has; of Slipway's files, it
 * sees only the code and the packages.
 *
 * A compiled module is a file in `<DATA_DIR>/cache/sources`, named by the hash of its content; the 200 used last are kept.
 *
 * Fails: InvalidSourceError with diagnostics, which published clients print as a list, and beyond 512 MB or 20 s. NoSlotError after waiting
 * 15 s.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import {
  ChildProcessKilledError,
  compiledRoot,
  runProcess,
} from '../../../platform/child-process/run-in-child-process.js';
import { FOLDER_INSIDE } from '../../../hosting/sandbox/pivot-root.js';
import { Sandbox } from '../../../hosting/sandbox/sandbox.js';
import type { StoredSource } from '../core/connection.entity.js';
import { requireSource } from '../core/connection-target.js';
import { InvalidSourceError } from '../core/connections.errors.js';
import type { SourceCompileAnswer, SourceCompileRequest } from './source-compile.process.js';

/** Limits of a compilation. A module that bundles the MCP SDK and zod takes 1 s and 300 MB; 128 KB of other code need less. */
const LIMITS = { memoryMbMax: 512, timeoutMs: 20_000 };

/** Memory that Node and esbuild reserve in addition to the heap. */
const RESERVED_MB = 512;

/** Directory of the script and its code in the sandbox. */
const CODE = 'dist/src';
const SCRIPT = 'modules/connections/source/source-compile.process.js';

/** Maximum number of concurrent compilations, of which each namespace gets at most half. */
const CONCURRENT_MAX = 2;
const SLOT_WAIT_MS = 15_000;

/** Maximum number of cached files of about 1.4 MB; the least recently used are removed. */
const CACHED_MAX = 200;

/** Version in every cache key: increment it when the compilation changes. */
const VERSION = '2';

@Injectable()
export class SourceCompiler {
  private readonly logger = new Logger('connections');
  private readonly slots = KeyedLimiter.fair(CONCURRENT_MAX, SLOT_WAIT_MS);
  private readonly folder: string;

  constructor(
    env: Env,
    private readonly sandbox: Sandbox,
  ) {
    this.folder = join(env.dataDir, 'cache', 'sources');
  }

  /**
   * Compiles a module even if it is cached.
   *
   * @returns `isStateful`: the module keeps sessions
   * @throws InvalidSourceError, NoSlotError
   */
  async check(source: StoredSource, namespaceId: string): Promise<{ isStateful: boolean }> {
    return this.slots.run(namespaceId, () => this.compile(source));
  }

  /** @throws InvalidSourceError, NoSlotError */
  async compiledFile(source: StoredSource, namespaceId: string): Promise<string> {
    const file = this.fileOf(source);
    const now = new Date();
    await utimes(file, now, now).catch(() => this.check(source, namespaceId));
    return file;
  }

  /** @throws as {@link compiledFile}; InvalidInputError for another kind of file */
  async compileFile(file: { path: string; contents: string }, namespaceId: string): Promise<Buffer> {
    const source = requireSource({ kind: 'module', entrypoint: file.path, sourceFiles: [file] });
    return readFile(await this.compiledFile(source, namespaceId));
  }

  private async compile(source: StoredSource): Promise<{ isStateful: boolean }> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const work = await mkdtemp(join(this.folder, 'work-'));
    try {
      const [{ contents }] = source.sourceFiles;
      const answer = await this.compileInSandbox({ name: source.entrypoint, contents }, work);
      if ('diagnostics' in answer) {
        const { length } = answer.diagnostics;
        const count = length === 1 ? 'one fault' : `${length} faults`;
        const message = `The module ${source.entrypoint} cannot be compiled: ${count}.`;
        throw new InvalidSourceError(message, answer.diagnostics);
      }
      const { code, isStateful } = answer;
      const outFile = join(work, 'out.mjs');
      await writeFile(outFile, code, { mode: 0o600 });
      await rename(outFile, this.fileOf(source));
      await this.sweep();
      return { isStateful };
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  private async compileInSandbox(request: SourceCompileRequest, work: string): Promise<SourceCompileAnswer> {
    const [dir, runDir] = [join(work, 'root'), join(work, 'run')];
    await mkdir(dir);
    await mkdir(runDir);
    const packages = dirname(dirname(createRequire(import.meta.url).resolve('esbuild/package.json')));
    const root = await this.sandbox.ownRoot({
      dir,
      folders: {
        [CODE]: await realpath(compiledRoot),
        'package.json': join(compiledRoot, '../../package.json'),
        node_modules: await realpath(packages),
      },
      runtime: process.execPath,
      scratchMb: 1,
    });
    const script = join(root ? join(FOLDER_INSIDE, CODE) : compiledRoot, SCRIPT);
    const { memoryMbMax: memoryMb, timeoutMs } = LIMITS;
    const launch = await this.sandbox.command(process.execPath, [`--max-old-space-size=${memoryMb}`, script], {
      ownerId: 'compiler of sources',
      runDir,
      // The compiler starts a child process in this directory, and other system accounts cannot read the data
      // directory.
      workDir: root ? FOLDER_INSIDE : '/',
      memoryMb,
      reservedMb: RESERVED_MB,
      alone: { root },
    });
    try {
      return JSON.parse(await runProcess(launch, JSON.stringify(request), timeoutMs)) as SourceCompileAnswer;
    } catch (error) {
      if (!(error instanceof ChildProcessKilledError)) throw error;
      const most = error.reason === 'memory' ? `${memoryMb} MB of memory` : `${timeoutMs / 1000} s`;
      const message = `Compiling needs more than ${most}: make the module smaller.`;
      return { diagnostics: [{ path: request.name, line: 1, column: 1, message }] };
    }
  }

  private fileOf({ entrypoint, sourceFiles }: StoredSource): string {
    const key = createHash('sha256').update(JSON.stringify([VERSION, entrypoint, sourceFiles[0].contents]));
    return join(this.folder, `${key.digest('hex')}.mjs`);
  }

  private async sweep(): Promise<void> {
    const names = (await readdir(this.folder)).filter((name) => name.endsWith('.mjs'));
    if (names.length <= CACHED_MAX) return;
    const files = await Promise.all(
      names.map(async (name) => {
        const file = join(this.folder, name);
        return { file, usedAt: (await stat(file).catch(() => null))?.mtimeMs ?? 0 };
      }),
    );
    const surplus = files.toSorted((a, b) => b.usedAt - a.usedAt).slice(CACHED_MAX);
    await Promise.all(surplus.map(({ file }) => rm(file, { force: true })));
    this.logger.debug(`${surplus.length} compiled modules were removed`);
  }
}
