import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { EndedApartError, runApart } from '../../../platform/child-process/run-in-child-process.js';
import type { StoredSource } from '../core/connection.types.js';
import { InvalidSourceError } from '../core/connections.errors.js';
import type { SourceCompileAnswer } from './source-compile.process.js';

/** A module with the MCP SDK and zod in it takes 1 s and 300 MB; 128 KB of anything else takes less. */
const LIMITS = { memoryMbMax: 512, timeoutMs: 20_000 };

/** Compilations at once in this process, of which one namespace may have half, and how long one waits for its turn. */
const AT_ONCE_MAX = 2;
const TURN_MS_MAX = 15_000;

/** Compiled modules kept on disk, about 1.4 MB each; the ones used least recently go. */
const KEPT_MAX = 200;

/** Part of every key: what is compiled otherwise from now on is compiled anew. */
const VERSION = '1';

/** Turns the modules of connections into what can be run. */
@Injectable()
export class SourceCompiler {
  private readonly logger = new Logger('connections');
  private readonly slots = new FairSemaphore(AT_ONCE_MAX, TURN_MS_MAX);
  private readonly folder: string;

  constructor(env: Env) {
    this.folder = join(env.dataDir, 'cache', 'sources');
  }

  /**
   * Compiles a module, whether it was compiled before or not.
   *
   * @param whose who waits: one of them has half of the places at most
   * @returns whether it keeps sessions
   * @throws InvalidSourceError, NoSlotError
   */
  async check(source: StoredSource, whose: string): Promise<{ isStateful: boolean }> {
    return this.slots.run(whose, () => this.compile(source));
  }

  /**
   * Runs `use` with the compiled module in a file, which is compiled first where that is not kept.
   *
   * @throws InvalidSourceError, NoSlotError
   */
  async withCompiled<T>(source: StoredSource, whose: string, use: (file: string) => Promise<T>): Promise<T> {
    const file = this.fileOf(source);
    const now = new Date();
    // Also says that it is used, which is what keeps it.
    const isKept = await utimes(file, now, now).then(
      () => true,
      () => false,
    );
    if (!isKept) await this.check(source, whose);
    return use(file);
  }

  private async compile(source: StoredSource): Promise<{ isStateful: boolean }> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const work = await mkdtemp(join(this.folder, 'work-'));
    try {
      const [from, to] = [join(work, 'in'), join(work, 'out.mjs')];
      await writeFile(from, source.sourceFiles[0].contents, { mode: 0o600 });
      const answer = await this.runApart([from, to, source.entrypoint]);
      if ('diagnostics' in answer) throw invalid(source, answer.diagnostics);
      await rename(to, this.fileOf(source));
      await this.sweep();
      return answer;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  private async runApart(args: string[]): Promise<SourceCompileAnswer> {
    const [, , path] = args;
    try {
      const { signal } = new AbortController();
      const file = 'modules/connections/source/source-compile.process.js';
      return await runApart<SourceCompileAnswer>(file, args, { ...LIMITS, signal });
    } catch (error) {
      if (!(error instanceof EndedApartError)) throw error;
      const most = error.reason === 'memory' ? `${LIMITS.memoryMbMax} MB of memory` : `${LIMITS.timeoutMs / 1000} s`;
      const message = `It takes more than ${most} to compile: make it smaller.`;
      return { diagnostics: [{ path: path, line: 1, column: 1, message }] };
    }
  }

  /** By content, so that the same module is compiled once for all connections that have it. */
  private fileOf({ entrypoint, sourceFiles }: StoredSource): string {
    const key = createHash('sha256').update(JSON.stringify([VERSION, entrypoint, sourceFiles[0].contents]));
    return join(this.folder, `${key.digest('hex')}.mjs`);
  }

  /** Removes what is more than is kept. */
  private async sweep(): Promise<void> {
    const names = (await readdir(this.folder)).filter((name) => name.endsWith('.mjs'));
    if (names.length <= KEPT_MAX) return;
    const files = await Promise.all(
      names.map(async (name) => {
        const file = join(this.folder, name);
        return {
          file,
          at: await stat(file).then(
            ({ mtimeMs }) => mtimeMs,
            () => 0,
          ),
        };
      }),
    );
    const surplus = files.toSorted((a, b) => b.at - a.at).slice(KEPT_MAX);
    await Promise.all(surplus.map(({ file }) => rm(file, { force: true })));
    this.logger.debug(`${surplus.length} compiled modules were removed`);
  }
}

/** @returns what published clients print as a list */
function invalid(
  { entrypoint }: StoredSource,
  diagnostics: Extract<SourceCompileAnswer, { diagnostics: unknown }>['diagnostics'],
) {
  const count = diagnostics.length === 1 ? 'one fault' : `${diagnostics.length} faults`;
  return new InvalidSourceError(`The module ${entrypoint} cannot be compiled: ${count}.`, diagnostics);
}
