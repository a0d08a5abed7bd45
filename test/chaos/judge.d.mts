import type { Call } from './callers.mjs';

/** A fault that the run caused. */
export interface Fault {
  part: string;
  fault: string;
  startedAt: number;
  overAt: number;
  readyAt: number;
}

export type Verdict = 'unsaid' | 'notExecuted' | 'twice' | 'wrong' | 'unanswered';

export function judge(
  calls: readonly Call[],
  faults: readonly Fault[],
  executions: ReadonlyMap<string, number>,
): Record<Verdict, Call[]>;
