import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second on every machine it runs on. */
const TICK_MS = 10;

/** Processes that are looked at: one of Node's takes 150 µs, and a session of a bundle has three as a rule. */
const LOOKED_AT_MAX = 256;

/** Threads whose children are looked for, at 10 µs each: an owner that is an account of its own has no more of them. */
const THREADS_MAX = 1_024;

/** The next look is this many times as far away as the last one took: many threads take a twentieth of a core, no more. */
const LOOK_SHARE = 20;

/** The CPU time of one process and all it started, looked at as often as its size allows. */
export class CpuSample {
  private last: number | null = null;
  /** By `performance.now()`: the last one is good until then. */
  private goodUntil = 0;

  constructor(private readonly pid: number | undefined) {}

  usedMs(): number | null {
    const now = performance.now();
    if (now < this.goodUntil) return this.last;
    this.last = cpuMsOf(this.pid);
    const seenAt = performance.now();
    this.goodUntil = seenAt + LOOK_SHARE * (seenAt - now);
    return this.last;
  }
}

/**
 * CPU time a process and all it started have used, with all their threads and those of them that are gone and were reaped,
 * in milliseconds; null where the system does not say, or the process is gone. Of more than 256 processes or 1,024 threads
 * that live at once the others are left out. Read in place: nothing may happen between the look and what follows.
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
  // Grows while it is walked.
  for (const child of pids) {
    ticks += ticksOf(child) ?? 0;
    if (pids.length < LOOKED_AT_MAX) pids.push(...childrenOf(child).slice(0, LOOKED_AT_MAX - pids.length));
  }
  return ticks * TICK_MS;
}

function ticksOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name stands in brackets and may hold anything; times are the 12th to 15th value behind it (proc(5)).
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return values.slice(11, 15).reduce((sum, value) => sum + Number(value), 0);
}

/** Each thread has those it started; what nobody waits for any more comes to the first process. */
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
