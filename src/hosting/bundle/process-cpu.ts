import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports CPU time in hundredths of a second. */
const TICK_MS = 10;

/** Limit of processes per sample: one of Node takes 150 µs, and a bundle session usually has three. */
const PROCESSES_MAX = 256;

/** Limit of threads whose children are read, at 10 µs each. An owner with an account of its own has no more. */
const THREADS_MAX = 1_024;

/** The next sample waits for this multiple of the last one's duration, so that sampling uses at most 1/20 of a core. */
const PAUSE_FACTOR = 20;

/** CPU time of a process and its descendants, sampled as often as its cost allows. */
export class CpuSample {
  private last: number | null = null;
  /** End of validity of the last sample, by `performance.now()`. */
  private goodUntil = 0;

  constructor(private readonly pid: number | undefined) {}

  usedMs(): number | null {
    const now = performance.now();
    if (now < this.goodUntil) return this.last;
    this.last = cpuMsOf(this.pid);
    const seenAt = performance.now();
    this.goodUntil = seenAt + PAUSE_FACTOR * (seenAt - now);
    return this.last;
  }
}

/**
 * CPU time of a process and its descendants in milliseconds, with all threads and reaped children; null where the
 * system does not report it, or after the exit. Processes above 256 and threads above 1,024 are not counted.
 * Synchronous: nothing may run between the sample and its evaluation.
 */
function cpuMsOf(pid: number | undefined): number | null {
  if (pid === undefined) return null;
  const own = ticksOf(pid);
  if (own === null) return null;
  let ticks = own;
  let threadsLeft = THREADS_MAX;
  const childrenOf = (parent: number) => {
    const threads = threadsOf(parent).slice(0, threadsLeft);
    threadsLeft -= threads.length;
    return threads.flatMap((thread) => startedBy(parent, thread));
  };
  const pids = childrenOf(pid);
  // Grows during the iteration.
  for (const child of pids) {
    ticks += ticksOf(child) ?? 0;
    if (pids.length < PROCESSES_MAX) pids.push(...childrenOf(child).slice(0, PROCESSES_MAX - pids.length));
  }
  return ticks * TICK_MS;
}

function ticksOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name is in brackets and may contain anything; times are values 12 to 15 after it (proc(5)).
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return values.slice(11, 15).reduce((sum, value) => sum + Number(value), 0);
}

/** Children of each thread; orphans belong to the first process. */
function startedBy(pid: number, thread: string): number[] {
  const words = read(`/proc/${pid}/task/${thread}/children`)?.split(' ') ?? [];
  return words.filter((word) => word !== '').map(Number);
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
