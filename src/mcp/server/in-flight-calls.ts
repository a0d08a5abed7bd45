import type { Cancellation } from '../protocol/cancellation.js';

/** A call that runs. */
interface Running {
  caller: string;
  /** JSON text. */
  id: string;
  call: Cancellation;
  /** Where it stands among those that run. */
  at: number;
}

/**
 * Calls that run, by caller and JSON-RPC id, only so that `notifications/cancelled` finds them. Ids are not unique, not
 * even for one caller (some clients number every request 1): when two calls match, neither is cancelled.
 *
 * A list, which is searched for the few that are cancelled: a Map is made anew after every few that come and go, and its
 * old forms keep the new ones, with the calls in them, until the next full collection.
 */
export class InFlight {
  private readonly running: Running[] = [];

  /**
   * @param id JSON text
   * @returns to be called once when the call is over
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
