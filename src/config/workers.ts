/**
 * The processes of one start (`WORKERS`). A supervisor starts them (`src/supervisor.ts`); each learns its place from
 * `--worker <json>` on its command line.
 *
 * Limits of the service that each process counts alone, and budgets of the container's memory, are divided by their number
 * with {@link shareOf}: `KeyedLimiter`, `Tuning`, the log rows of a connection. `Env` divides the database connections.
 * Requests and failures in a minute are not divided: `RateCounter` adds them up.
 */

/** The place of a process among the workers of one start. */
export interface WorkerPlace {
  /** From 1. The first one has all roles, the others `api`; a process that replaces another takes over its number. */
  number: number;
  /** Port of the service. */
  port: number;
  /** Port for requests of other processes. */
  internalPort: number;
  /** The internal ports of all workers, including their replacements: hosted code reaches none of them. */
  internalPorts: number[];
}

let processes = 1;

/** Sets the number of processes that share the limits, before the first limit is made. */
export function useWorkers(count: number): void {
  processes = count;
}

/** The share of this process in a limit of all: rounded up, so that it is never 0. */
export function shareOf(max: number): number {
  return Math.ceil(max / processes);
}

/** The place that the supervisor gave this process; null in a process that it did not start. */
export function workerPlace(args: readonly string[]): WorkerPlace | null {
  const at = args.indexOf('--worker');
  return at < 0 ? null : (JSON.parse(args[at + 1] ?? '') as WorkerPlace);
}
