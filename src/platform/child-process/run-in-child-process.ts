import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A child process was killed before it answered, because of its memory or its time. */
export class ChildProcessKilledError extends Error {
  constructor(readonly reason: 'memory' | 'time') {
    super(`A child process was killed before it answered: too much ${reason}`);
  }
}

/** Limits of a child process. */
export interface ChildProcessLimits {
  memoryMbMax: number;
  timeoutMs: number;
  /** Kills it; the promise fails with the signal's reason. */
  signal: AbortSignal;
}

/** Tests run the sources, and Node starts compiled code only: there the child runs the last build. */
const compiledRoot = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/' : '../../', import.meta.url);

/** Signals and exit codes of processes that ran out of memory: V8's and the system's. */
const OUT_OF_MEMORY = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL', 134];

/**
 * Runs a file of this service in a child process without settings and secrets, for work whose CPU time and memory are
 * unbounded. Not in a thread: V8 may abort the whole process when the heap of a thread is full.
 *
 * @param file below `src`, compiled; it answers with `process.send` once
 * @throws ChildProcessKilledError past the limits
 */
export async function runInChildProcess<T>(
  file: string,
  args: string[],
  { memoryMbMax, timeoutMs, signal }: ChildProcessLimits,
): Promise<T> {
  signal.throwIfAborted();
  const child = fork(fileURLToPath(new URL(file, compiledRoot)), args, {
    execArgv: [`--max-old-space-size=${memoryMbMax}`],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let isLate = false;
  const end = () => child.kill('SIGKILL');
  const timer = setTimeout(() => (isLate = end()), timeoutMs);
  signal.addEventListener('abort', end);
  try {
    return await new Promise<T>((resolve, reject) => {
      child.once('message', (answer) => resolve(answer as T));
      child.once('error', reject);
      child.once('exit', (code, killedBy) => {
        const why = killedBy ?? code ?? 0;
        if (signal.aborted) reject(signal.reason as Error);
        else if (isLate) reject(new ChildProcessKilledError('time'));
        else if (OUT_OF_MEMORY.includes(why)) reject(new ChildProcessKilledError('memory'));
        else reject(new Error(`${file} ended with ${why} and did not answer`));
      });
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    end();
  }
}
