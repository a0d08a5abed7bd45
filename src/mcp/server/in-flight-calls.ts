import type { Cancellation } from '../protocol/cancellation.js';

/** A running call. */
interface Running {
  caller: string;
  /** Request id as JSON text. */
  id: string;
  call: Cancellation;
  /** Index in the list of running calls. */
  at: number;
}

/**
 * Running calls by caller and JSON-RPC id, for `notifications/cancelled`. Ids are not unique even for one caller (some
 * clients number every request 1): when two calls match, neither is cancelled.
 * A list with linear search for the rare cancellations: a Map is rehashed regularly under constant inserts and deletes,
 * and its old tables keep the calls in them reachable until the next full garbage collection.
 */
export class InFlight {
  private readonly running: Running[] = [];

  /**
   * @param id request id as JSON text
   *
   * @returns function to call once when the call has ended
   */
  begin(caller: string, id: string, call: Cancellation): () => void {
    const one: Running = { caller, id, call, at: this.running.length };
    this.running.push(one);
    return () => {
      const last = this.running.pop();
      if (!last || last === one) return;
      last.at = one.at;
      this.running[one.at] = last;
    };
  }

  cancel(caller: string, id: string): void {
    const [only, ...others] = this.running.filter((one) => one.id === id && one.caller === caller);
    if (only && others.length === 0) only.call.cancel();
  }
}
