/**
 * Runs a few tasks in each turn of the event loop and the rest, in order, in later turns, so that other work runs in
 * between. Without a rush a task runs at once.
 */
export class PerTickQueue {
  private started = 0;
  private readonly waiting: (() => void)[] = [];

  /** @param perTick how many tasks start in one turn */
  constructor(private readonly perTick: number) {}

  run(task: () => void): void {
    if (this.started === this.perTick) {
      this.waiting.push(task);
      return;
    }
    if (this.started === 0) {
      setImmediate(() => {
        this.started = 0;
        for (const next of this.waiting.splice(0, this.perTick)) this.run(next);
      });
    }
    this.started += 1;
    task();
  }
}
