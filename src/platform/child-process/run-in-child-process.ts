import { fork, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A child process was killed because of its memory or its time. */
export class ChildProcessKilledError extends Error {
  constructor(readonly reason: 'memory' | 'time') {
    super(`A child process was killed before it answered: too much ${reason}`);
  }
}

export interface ChildProcessLimits {
  memoryMbMax: number;
  timeoutMs: number;
  /** Signal on which the promise rejects with its reason. */
  signal: AbortSignal;
}

/** Directory of compiled code, which Node can start; for tests, which run the sources, that of the last build. */
export const compiledRoot = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/' : '../../', import.meta.url),
);

/** Signals and exit codes of processes that ran out of memory: V8's and the system's. */
const OUT_OF_MEMORY = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL', 134];

const OUTPUT_CHARS_MAX = 16 * 1024 * 1024;

const WORDS_CHARS_MAX = 500;

/**
 * Runs work with unbounded CPU time and memory in a process without settings and secrets. A thread is not enough: V8
 * can abort the whole process when the heap of a thread is full.
 *
 * @param file under `src`, compiled; it responds with `process.send` once
 * @throws ChildProcessKilledError above the limits
 */
export async function runInChildProcess<T>(
  file: string,
  args: string[],
  { memoryMbMax, timeoutMs, signal }: ChildProcessLimits,
): Promise<T> {
  signal.throwIfAborted();
  const child = fork(compiledRoot + file, args, {
    execArgv: [`--max-old-space-size=${memoryMbMax}`],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const killChild = () => child.kill('SIGKILL');
  signal.addEventListener('abort', killChild);
  try {
    return await answerOf<T>(child, timeoutMs, (answer) => child.once('message', (message) => answer(message as T)));
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', killChild);
  }
}

/**
 * Runs a command that reads its standard input and responds on its standard output.
 *
 * @throws ChildProcessKilledError above the limits
 */
export function runProcess(
  { file, args, options }: { file: string; args: string[]; options: SpawnOptions },
  input: string,
  timeoutMs: number,
): Promise<string> {
  const child = spawn(file, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  // A process that exits early does not read its input.
  child.stdin?.on('error', () => undefined).end(input);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.length > OUTPUT_CHARS_MAX) child.kill('SIGKILL');
  });
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(0, WORDS_CHARS_MAX)));
  const answering = answerOf<string>(child, timeoutMs, (answer) => {
    child.once('close', (code) => code === 0 && answer(output));
  });
  return answering.catch((error: unknown) => {
    if (error instanceof Error && !(error instanceof ChildProcessKilledError)) error.message += `: ${words.trim()}`;
    throw error;
  });
}

/** Returns the response of a process, which is then killed. @param listen calls its argument with the response */
async function answerOf<T>(
  child: ChildProcess,
  timeoutMs: number,
  listen: (answer: (value: T) => void) => void,
): Promise<T> {
  let isLate = false;
  const timer = setTimeout(() => (isLate = child.kill('SIGKILL')), timeoutMs);
  try {
    return await new Promise<T>((resolve, reject) => {
      listen(resolve);
      child.once('error', reject);
      child.once('close', (code, killedBy) => {
        const cause = killedBy ?? code ?? 0;
        if (isLate) reject(new ChildProcessKilledError('time'));
        else if (OUT_OF_MEMORY.includes(cause)) reject(new ChildProcessKilledError('memory'));
        else reject(new Error(`${child.spawnargs.at(-1)} ended with ${cause} and did not answer`));
      });
    });
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
