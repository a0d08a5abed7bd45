import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A process of its own was ended before it answered: it took too much memory, or too long. */
export class EndedApartError extends Error {
  constructor(readonly reason: 'memory' | 'time') {
    super(`A process was ended before it answered: too much ${reason}`);
  }
}

/** Limits of a child process. */
export interface ApartLimits {
  memoryMbMax: number;
  timeoutMs: number;
  /** Ends it early; the promise fails with the signal's reason. */
  signal: AbortSignal;
}

/** Tests run the sources, and Node can start compiled code only: they start what was built from them before. */
const compiledRoot = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/' : '../../', import.meta.url);

/** How V8 ends a process that is out of memory, and how the system does. */
const OUT_OF_MEMORY = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL', 134];

/**
 * Runs a file of ours in a process of its own, without any setting or secret, for work that may take all CPU and memory
 * it gets. A thread would not do: V8 aborts the whole process when a thread's heap is full at the wrong moment.
 *
 * @param file below `src`, compiled; it answers with `process.send` once
 * @throws EndedApartError past the limits
 */
export async function runApart<T>(
  file: string,
  args: string[],
  { memoryMbMax, timeoutMs, signal }: ApartLimits,
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
        else if (isLate) reject(new EndedApartError('time'));
        else if (OUT_OF_MEMORY.includes(why)) reject(new EndedApartError('memory'));
        else reject(new Error(`${file} ended with ${why} and did not answer`));
      });
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    end();
  }
}
