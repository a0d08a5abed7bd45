/**
 * One-time signal that the result of an operation is no longer needed. Replaces `AbortController`: in Node 20 one with
 * a listener survives young-generation garbage collections, which then take 5 ms instead of 0.05 ms, a fifth of the CPU
 * of a call.
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

  /** Calls `listener` immediately if already cancelled. {@link forget} removes it. */
  notify(listener: () => void): void {
    if (this.isCancelled) listener();
    else this.listeners.push(listener);
  }

  forget(listener: () => void): void {
    const at = this.listeners.indexOf(listener);
    if (at >= 0) this.listeners.splice(at, 1);
  }
}
