import { readdirSync, readFileSync } from 'node:fs';
import { OWNER_PROCESSES_MAX } from '../sandbox/isolation-checks.js';

/** Linux reports CPU time in hundredths of a second. */
const TICK_MS = 10;

/**
 * Processes that a session may have: a usual one has three, a sample of one takes 150 µs. A session with more is
 * closed.
 */
export const PROCESSES_MAX = 64;

/** The next sample waits for this multiple of the last one's duration, so that sampling uses at most 1/20 of a core. */
const PAUSE_FACTOR = 20;

export interface Usage {
  /** CPU time in ms, with all threads and reaped children. */
  cpuMs: number;
  /** Anonymous memory in MB. Pages that a child shares with its parent after `fork` are counted for both. */
  memoryMb: number;
  /** Number of processes; {@link PROCESSES_MAX} + 1 when there are more. */
  processes: number;
}

export class SessionUsage {
  private last: Usage | null = null;
  private goodUntil = 0;

  constructor(private readonly pid: number | undefined) {}

  /** Returns the usage; null after the exit, or where the system does not report it. */
  readUsage(): Usage | null {
    const now = performance.now();
    if (now < this.goodUntil) return this.last;
    this.last = usageOf(this.pid);
    const seenAt = performance.now();
    this.goodUntil = seenAt + PAUSE_FACTOR * (seenAt - now);
    return this.last;
  }
}

/**
 * Measures a process and its children. It does not search threads above 1,024, which an owner with its own account cannot have: each costs 10 µs.
 * Synchronous: nothing may run between the sample and its evaluation.
 */
function usageOf(pid: number | undefined): Usage | null {
  if (pid === undefined || ticksOf(pid) === null) return null;
  let [ticks, memoryKb, threadsLeft] = [0, 0, OWNER_PROCESSES_MAX];
  const pids = [pid];
  for (const each of pids) {
    ticks += ticksOf(each) ?? 0;
    memoryKb += Number(/^RssAnon:\s+(\d+)/m.exec(read(`/proc/${each}/status`) ?? '')?.[1] ?? 0);
    const threads = threadsOf(each).slice(0, threadsLeft);
    threadsLeft -= threads.length;
    // Orphaned processes belong to the first process.
    const children = threads.flatMap((thread) =>
      (read(`/proc/${each}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
    );
    pids.push(...children.slice(0, PROCESSES_MAX + 1 - pids.length));
  }
  return { cpuMs: ticks * TICK_MS, memoryMb: memoryKb / 1_024, processes: pids.length };
}

function ticksOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name is in brackets and may contain anything; times are values 12 to 15 after it (proc(5)).
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return values.slice(11, 15).reduce((sum, value) => sum + Number(value), 0);
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
