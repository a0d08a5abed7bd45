import type { McpCall } from '../protocol/channel.js';
import { asCallError, RestartingError } from '../protocol/mcp-errors.js';

/**
 * Running calls, in no particular order. A list with linear search, since only rare events search it: a Map or Set is
 * rehashed regularly under constant inserts and deletes, and its old tables keep the calls in them reachable until the
 * next full garbage collection.
 */
export class CallList<T> {
  private readonly entries: { call: T; at: number }[] = [];

  /** @returns function to call once when the call has ended */
  add(call: T): () => void {
    const entry = { call, at: this.entries.length };
    this.entries.push(entry);
    return () => {
      const last = this.entries.pop();
      if (!last || last === entry) return;
      last.at = entry.at;
      this.entries[entry.at] = last;
    };
  }

  filter(matches: (call: T) => boolean): T[] {
    return this.entries.map(({ call }) => call).filter(matches);
  }
}

/** Calls of this process that wait for an upstream. */
export const callsOfProcess = new CallList<{ call: McpCall; reject: (reason: unknown) => void }>();

/** Fails every waiting call, because the process is about to exit. */
export function failPendingCalls(): void {
  for (const { call, reject } of callsOfProcess.filter(() => true)) reject(asCallError(new RestartingError(), call));
}
