/**
 * Tells work that nobody waits for its result any more, once.
 *
 * Not an `AbortController`: in Node 20 one with a listener outlives the young generation's garbage collections, which
 * then take 5 ms instead of 0.05 ms each; on the path of a call that was a fifth of the CPU.
 */
export class Cancellation {
  isCancelled = false;
  private listeners: (() => void)[] = [];

  cancel(): void {
    if (this.isCancelled) return;
    this.isCancelled = true;
    const { listeners } = this;
    this.listeners = [];
    for (const listener of listeners) listener();
  }

  /** Calls `listener` when it is cancelled, at once when it was. {@link forget} takes it back. */
  notify(listener: () => void): void {
    if (this.isCancelled) listener();
    else this.listeners.push(listener);
  }

  forget(listener: () => void): void {
    const at = this.listeners.indexOf(listener);
    if (at >= 0) this.listeners.splice(at, 1);
  }
}
