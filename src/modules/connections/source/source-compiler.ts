import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { ChildProcessKilledError, runInChildProcess } from '../../../platform/child-process/run-in-child-process.js';
import type { StoredSource } from '../core/connection.entity.js';
import { InvalidSourceError } from '../core/connections.errors.js';
import type { SourceCompileAnswer } from './source-compile.process.js';

/** A module with the MCP SDK and zod in it takes 1 s and 300 MB; 128 KB of other code need less. */
const LIMITS = { memoryMbMax: 512, timeoutMs: 20_000 };

/** Concurrent compilations of this process, of which one namespace may have half, and the wait for a slot. */
const CONCURRENT_MAX = 2;
const SLOT_WAIT_MS = 15_000;

/** Compiled modules on disk, about 1.4 MB each; those used least recently are removed. */
const CACHED_MAX = 200;

/** Part of every cache key; a change of the compilation counts it up. */
const VERSION = '1';

/** Compiles the modules of connections, in child processes, and caches the result on disk. */
@Injectable()
export class SourceCompiler {
  private readonly logger = new Logger('connections');
  private readonly slots = new FairSemaphore(CONCURRENT_MAX, SLOT_WAIT_MS);
  private readonly folder: string;

  constructor(env: Env) {
    this.folder = join(env.dataDir, 'cache', 'sources');
  }

  /**
   * Compiles a module, also if a compiled one is cached.
   *
   * @param namespaceId one namespace has half of the slots at most
   * @returns `isStateful` is true for a module that keeps sessions
   * @throws InvalidSourceError, NoSlotError
   */
  async check(source: StoredSource, namespaceId: string): Promise<{ isStateful: boolean }> {
    return this.slots.run(namespaceId, () => this.compile(source));
  }

  /**
   * The file of the compiled module, which is compiled first if it is not cached.
   *
   * @throws InvalidSourceError, NoSlotError
   */
  async compiledFile(source: StoredSource, namespaceId: string): Promise<string> {
    const file = this.fileOf(source);
    const now = new Date();
    // The time of use decides which files are removed.
    await utimes(file, now, now).catch(() => this.check(source, namespaceId));
    return file;
  }

  private async compile(source: StoredSource): Promise<{ isStateful: boolean }> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const work = await mkdtemp(join(this.folder, 'work-'));
    try {
      const [from, to] = [join(work, 'in'), join(work, 'out.mjs')];
      await writeFile(from, source.sourceFiles[0].contents, { mode: 0o600 });
      const answer = await this.compileInChildProcess([from, to, source.entrypoint]);
      if ('diagnostics' in answer) {
        const { length } = answer.diagnostics;
        const count = length === 1 ? 'one fault' : `${length} faults`;
        // Published clients print the diagnostics as a list.
        const message = `The module ${source.entrypoint} cannot be compiled: ${count}.`;
        throw new InvalidSourceError(message, answer.diagnostics);
      }
      await rename(to, this.fileOf(source));
      await this.sweep();
      return answer;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  private async compileInChildProcess(args: string[]): Promise<SourceCompileAnswer> {
    const [, , path] = args;
    try {
      const { signal } = new AbortController();
      const file = 'modules/connections/source/source-compile.process.js';
      return await runInChildProcess<SourceCompileAnswer>(file, args, { ...LIMITS, signal });
    } catch (error) {
      if (!(error instanceof ChildProcessKilledError)) throw error;
      const most = error.reason === 'memory' ? `${LIMITS.memoryMbMax} MB of memory` : `${LIMITS.timeoutMs / 1000} s`;
      const message = `Compiling needs more than ${most}: make the module smaller.`;
      return { diagnostics: [{ path: path, line: 1, column: 1, message }] };
    }
  }

  /** Named by content, so that equal modules of several connections are compiled once. */
  private fileOf({ entrypoint, sourceFiles }: StoredSource): string {
    const key = createHash('sha256').update(JSON.stringify([VERSION, entrypoint, sourceFiles[0].contents]));
    return join(this.folder, `${key.digest('hex')}.mjs`);
  }

  /** Removes the surplus of compiled modules. */
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
