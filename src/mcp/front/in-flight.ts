import type { Cancellation } from '../cancellation.js';

/**
 * Calls that run, by caller and JSON-RPC id, only so that `notifications/cancelled` finds them. Ids are not unique, not
 * even for one caller (some clients number every request 1): when two calls match, neither is cancelled.
 */
export class InFlight {
  private readonly running = new Map<string, Cancellation[]>();

  /**
   * @param id JSON text
   * @returns to be called when the call is over
   */
  begin(caller: string, id: string, call: Cancellation): () => void {
    const key = `${caller}\n${id}`;
    const same = this.running.get(key);
    if (same) same.push(call);
    else this.running.set(key, [call]);
    return () => {
      const others = this.running.get(key)?.filter((other) => other !== call) ?? [];
      if (others.length === 0) this.running.delete(key);
      else this.running.set(key, others);
    };
  }

  cancel(caller: string, id: string): void {
    const [only, ...others] = this.running.get(`${caller}\n${id}`) ?? [];
    if (only && others.length === 0) only.cancel();
  }
}
