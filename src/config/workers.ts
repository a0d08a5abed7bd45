/**
 * The processes of one start (`WORKERS`). A supervisor starts them (`src/supervisor.ts`); each learns its place from
 * `--worker <json>`.
 *
 * Limits that each process applies alone, and budgets of the container's memory, are divided by the number of processes
 * with {@link shareOf}. Requests and failures in a minute are not divided: `RateCounter` adds them up.
 */

export interface WorkerPlace {
  /** Number of the process, from 1. The first process has all roles, the others `api`; a replacement takes over the number. */
  number: number;
  port: number;
  internalPort: number;
  /** The internal ports of all workers, including their replacements: hosted code cannot reach any of them. */
  internalPorts: number[];
}

let processes = 1;

export function useWorkers(count: number): void {
  processes = count;
}

/** Returns the share of this process in a limit that all processes share: rounded up, so that it is never 0. */
export function shareOf(max: number): number {
  return Math.ceil(max / processes);
}

/** Returns the place that the supervisor gave this process; null in a process that it did not start. */
export function workerPlace(args: readonly string[]): WorkerPlace | null {
  const at = args.indexOf('--worker');
  return at < 0 ? null : (JSON.parse(args[at + 1] ?? '') as WorkerPlace);
}
