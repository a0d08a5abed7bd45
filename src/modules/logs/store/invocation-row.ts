import type { InvocationOutcome } from '../invocation.types.js';

/** A console line as it is kept in `lines`. */
export interface LineRow {
  /** Milliseconds since 1970. */
  at: number;
  level: string;
  message: string;
}

/** What was thrown, as it is kept in `exceptions`. */
export interface ExceptionRow {
  /** Milliseconds since 1970. */
  at: number;
  name: string;
  message: string;
}

/**
 * What one flush of one process knows of an invocation, on its way through the queue. Everything but the ids is null
 * or empty while its record has not come, which `method` tells.
 */
export interface InvocationRow {
  id: string;
  serverId: string;
  releaseId: string | null;
  /** Milliseconds since 1970. */
  at: number | null;
  method: string | null;
  url: string | null;
  rpcMethod: string | null;
  toolName: string | null;
  status: number | null;
  outcome: InvocationOutcome | null;
  cpuMs: number | null;
  wallMs: number | null;
  lines: LineRow[];
  exceptions: ExceptionRow[];
  payload: { arguments: string | null; result: string | null } | null;
  /** Lines and exceptions that were not kept: there were too many. */
  leftOut: number;
}

/** Lines, and exceptions, one invocation keeps; the earliest ones. */
export const LINES_MAX = 1_000;

/** Characters of an invocation that search reads. */
export const SEARCH_CHARS_MAX = 65_536;

/** What search reads of an invocation: its messages and exceptions, one below the other, in lower case. */
export function searchTextOf({ lines, exceptions }: Pick<InvocationRow, 'lines' | 'exceptions'>): string {
  const messages = lines.map(({ message }) => message);
  const thrown = exceptions.map(({ name, message }) => `${name}: ${message}`);
  return searchForm([...messages, ...thrown].join('\n'))
    .slice(0, SEARCH_CHARS_MAX)
    .toWellFormed();
}

/** The form in which texts are searched, and the words that are searched for. */
export function searchForm(text: string): string {
  return text.toLowerCase();
}
