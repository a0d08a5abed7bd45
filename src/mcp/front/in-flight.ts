/** A call that can be cancelled by its caller's notification, or by its caller leaving. */
export interface RunningCall {
  signal: AbortSignal;
  /** Must be called when the call is over. */
  end(): void;
}

/**
 * Calls that run, by caller and JSON-RPC id, only so that `notifications/cancelled` finds them. Ids are not unique, not
 * even for one caller (some clients number every request 1): when two calls match, neither is cancelled.
 */
export class InFlight {
  private readonly running = new Map<string, AbortController[]>();

  /** @param id JSON text */
  begin(caller: string, id: string, left: AbortSignal): RunningCall {
    const key = `${caller}\n${id}`;
    const controller = new AbortController();
    const onLeft = () => controller.abort();
    if (left.aborted) controller.abort();
    else left.addEventListener('abort', onLeft);
    const same = this.running.get(key);
    if (same) same.push(controller);
    else this.running.set(key, [controller]);
    return {
      signal: controller.signal,
      end: () => {
        left.removeEventListener('abort', onLeft);
        const others = this.running.get(key)?.filter((other) => other !== controller) ?? [];
        if (others.length === 0) this.running.delete(key);
        else this.running.set(key, others);
      },
    };
  }

  cancel(caller: string, id: string): void {
    const [only, ...others] = this.running.get(`${caller}\n${id}`) ?? [];
    if (only && others.length === 0) only.abort();
  }
}
